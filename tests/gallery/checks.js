/* What is wrong with how the page looks now: [{kind, where, text, detail}]. Nothing here knows which page it is. */
(exempt) => {
  const found = [];
  const width = document.documentElement.clientWidth;
  const style = (one) => getComputedStyle(one);
  const short = (text) => text.replace(/\s+/g, " ").trim().slice(0, 70);
  const name = (one) => {
    const parts = [];
    for (let at = one; at && at !== document.body && parts.length < 4; at = at.parentElement) {
      const id = at.id && !/\d{3}/.test(at.id) ? `#${at.id}` : "";
      parts.unshift(at.localName + (id || [...at.classList].slice(0, 2).map((word) => `.${word}`).join("")));
      if (id) break;
    }
    return parts.join(" > ");
  };
  const tell = (kind, one, detail, text) => {
    if (!(exempt[kind] ?? []).some((selector) => one.closest(selector)))
      found.push({ kind, where: name(one), text: short(text ?? one.textContent), detail });
  };
  const hidden = (one) => {
    if (!one.checkVisibility({ contentVisibilityAuto: true, opacityProperty: true, visibilityProperty: true })) return true;
    for (let at = one; at && at !== document.body; at = at.parentElement) {
      const now = style(at);
      if (now.clipPath === "inset(50%)") return true; // for screen readers
    }
    return false;
  };
  const scrolls = (one) => {
    for (let at = one; at && at !== document.body; at = at.parentElement)
      if (/auto|scroll/.test(style(at).overflowX + style(at).overflowY)) return at;
    return null;
  };
  const above = "[popover], .menu-list, dialog, #search-results, .connection-lost, .skip-link";

  // Nothing is wider than the window
  if (document.documentElement.scrollWidth > width) {
    let worst = document.body;
    for (const one of document.body.querySelectorAll("*"))
      if (!hidden(one) && !scrolls(one) && one.getBoundingClientRect().right > worst.getBoundingClientRect().right + 0.5) worst = one;
    tell("wider than the window", worst, `${document.documentElement.scrollWidth} of ${width} px`);
  }

  const lines = []; // of all text that is seen: {left, right, top, bottom, owner, text}
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.data.trim(), owner = node.parentElement;
    if (!text || owner.closest("svg, script, style, option, noscript") || hidden(owner)) continue;
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter((rect) => rect.width > 1 && rect.height > 1);
    if (!rects.length) continue;
    const rows = new Set(rects.map((rect) => Math.round(rect.top)));
    const over = owner.closest(above);
    let clipped = false;
    // Columns so narrow that lines hold under four letters, and words that are broken though they are short
    if (rows.size >= 3 && text.length / rows.size < 4) tell("squeezed column", owner, `${text.length} letters in ${rows.size} lines`, text);
    if (rows.size >= 2 && !owner.closest("pre, code, kbd, .break-anywhere"))
      for (const word of node.data.matchAll(/\S{2,19}(?!\S)/g)) { // longer ones, such as paths, have to break somewhere
        if (word.index && /\S/.test(node.data[word.index - 1])) continue;
        if (/[-–/…]/.test(word[0])) continue; // a line may end there
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((rect) => Math.round(rect.top))).size > 1) tell("broken word", owner, `“${word[0]}” stands in two lines`, text);
      }
    // Text beyond its box, or clipped by it or by one around it
    const left = Math.min(...rects.map((rect) => rect.left)), right = Math.max(...rects.map((rect) => rect.right));
    const top = Math.min(...rects.map((rect) => rect.top)), bottom = Math.max(...rects.map((rect) => rect.bottom));
    for (let box = owner; box && box !== document.body; box = box.parentElement) {
      const now = style(box);
      if (now.display === "inline" || now.display === "contents") continue;
      const edge = box.getBoundingClientRect();
      if (/auto|scroll/.test(now.overflowX) || /auto|scroll/.test(now.overflowY)) break;
      const beyond = Math.max(edge.left - left, right - edge.right);
      if (/hidden|clip/.test(now.overflowX) && (beyond > 1 || bottom - edge.bottom > 3 || edge.top - top > 3)) {
        clipped = true;
        if (!box.title.includes(text)) tell("clipped text", owner, `by ${name(box)}`, text);
        break;
      }
      if (beyond > (owner.localName === "pre" ? 12 : 1)) { // the space at which a line ends hangs
        tell("text beyond its box", owner, `by ${Math.round(beyond)} px beyond ${name(box)}`, text);
        break;
      }
      if (now.position === "absolute" || now.position === "fixed") break;
    }
    if (clipped) continue;
    for (const rect of rects) lines.push({ rect, owner, text, over });
    if (left < -1 || (right > width + 1 && !scrolls(owner))) tell("text beyond the window", owner, `from ${Math.round(left)} to ${Math.round(right)} of ${width} px`, text);
  }

  // No text lies over other text
  lines.sort((one, other) => one.rect.top - other.rect.top);
  for (let at = 0; at < lines.length; at++) {
    const one = lines[at];
    for (let next = at + 1; next < lines.length && lines[next].rect.top < one.rect.bottom; next++) {
      const other = lines[next];
      if (one.over !== other.over || scrolls(one.owner) !== scrolls(other.owner)) continue;
      const across = Math.min(one.rect.right, other.rect.right) - Math.max(one.rect.left, other.rect.left);
      const down = Math.min(one.rect.bottom, other.rect.bottom) - Math.max(one.rect.top, other.rect.top);
      if (across > 2 && down > 0.35 * Math.min(one.rect.height, other.rect.height)) tell("text over text", one.owner, `under “${short(other.text)}”`, one.text);
    }
  }

  // What is to be touched can be hit; links within a sentence are as high as its lines
  for (const one of document.querySelectorAll("a[href], button, summary, input:not([type=hidden]), select, textarea, label")) {
    if (hidden(one) || (one.localName === "label" && !one.querySelector("input"))) continue;
    if (one.localName === "input" && one.closest("label") && /checkbox|radio/.test(one.type)) continue;
    const box = one.getBoundingClientRect();
    if (Math.min(box.width, box.height) >= 23.5) continue;
    const inline = style(one).display === "inline" && short(one.parentElement.textContent) !== short(one.textContent);
    if (!inline) tell("small target", one, `${Math.round(box.width)} × ${Math.round(box.height)} px`);
  }

  // Nothing sticks out of the box around it
  for (const one of document.querySelectorAll("main *")) {
    const parent = one.parentElement;
    if (one.closest("svg") || hidden(one) || scrolls(one)) continue;
    const now = style(one);
    if (now.position !== "static" && now.position !== "relative") continue;
    if (now.display === "inline" || style(parent).display === "contents") continue;
    const inner = one.getBoundingClientRect(), outer = parent.getBoundingClientRect();
    if (outer.width && inner.width > 1 && inner.right - outer.right > 1.5 && parseFloat(now.marginRight) >= 0)
      tell("wider than its box", one, `${Math.round(inner.right - outer.right)} px beyond ${name(parent)}`);
  }

  // All pages have one left edge and one width, so that nothing jumps from step to step of a task
  const page = document.querySelector(".app-nav ~ main > .page");
  if (page) {
    const outer = page.parentElement.getBoundingClientRect(), inner = page.getBoundingClientRect();
    const most = 80 * parseFloat(style(document.documentElement).fontSize);
    if (Math.abs(inner.width - Math.min(outer.width, most)) > 1) tell("another width than other pages", page, `${Math.round(inner.width)} of ${Math.round(outer.width)} px`);
    const edge = inner.left + parseFloat(style(page).paddingInlineStart);
    for (const one of page.querySelectorAll(":scope > *, :scope > .live > *")) {
      const left = one.getBoundingClientRect().left;
      if (!hidden(one) && !/absolute|fixed/.test(style(one).position) && Math.abs(left - edge) > 1)
        tell("beside the edge of the page", one, `${Math.round(left - edge)} px from it`);
    }
  }

  // No sentence stands in two notices: whoever reads them takes it for two troubles
  const said = new Map(); // where each was seen first
  const notices = [...document.querySelectorAll(".attention, .toast, .note, .loss")].filter((one) => !hidden(one));
  for (const notice of notices.filter((one) => !one.parentElement.closest(".attention, .toast, .note, .loss"))) {
    const copy = notice.cloneNode(true);
    for (const one of copy.querySelectorAll("a.button, button, time, svg, form, [popover]")) one.remove();
    for (const one of copy.querySelectorAll("strong, small, p, li, h2, h3, div, dt, dd, tr")) one.append(". ");
    for (const words of new Set(copy.textContent.split(/[.!?…]+(?=\s|$)/).map((text) => text.replace(/\s+/g, " ").trim())))
      if (words.split(" ").length < 4 || /^(It|Its|They|Their) /.test(words)) continue; // of what that notice names
      else if (said.has(words)) tell("sentence in two notices", notice, `also in ${name(said.get(words))}`, words);
      else said.set(words, notice);
  }
  return found;
}
