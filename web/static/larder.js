"use strict";
/*
What the pages do beyond links, forms and htmx. Everything hangs on data attributes:

data-live="URL" [data-every="3"]   part fetched again while the page is visible; morphed, never jumps
data-freshness                     on <time>: when the facts were last checked
data-for="ID"                      in a live part: what belongs inside that element elsewhere on the page
data-relative                      on <time datetime>: "8 seconds ago", ticking
data-theme-toggle                  button between light and dark
data-copy="#ID"                    button that copies the text of that element
data-confirm-name="tank"           form whose submit buttons wait for that name in input[name=typed]
data-dismiss                       button that removes its .toast
*/
(() => {
  const STALE_AFTER = 120; // seconds
  const FAILURES_SHOWN = 3;
  const REQUEST_TIMEOUT = 20000; // milliseconds
  const root = document.documentElement;

  // Times

  const words = new Intl.RelativeTimeFormat("en-GB", { numeric: "always" });
  const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });
  const UNITS = [["year", 31557600], ["month", 2629800], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  let clockAhead = 0; // milliseconds by which this browser's clock is ahead of the box

  function relative(seconds) {
    if (Math.abs(seconds) < 2) return "just now";
    const [unit, size] = UNITS.find(([, length]) => Math.abs(seconds) >= length);
    return words.format(Math.trunc(seconds / size), unit);
  }

  function showTimes(within = document) {
    const now = Date.now() - clockAhead;
    for (const element of within.querySelectorAll("time[data-relative][datetime]")) {
      const then = Date.parse(element.dateTime);
      if (Number.isNaN(then)) continue;
      const seconds = (then - now) / 1000;
      const text = relative(seconds);
      if (element.textContent !== text) element.textContent = text;
      const title = absolute.format(then);
      if (element.title !== title) element.title = title;
      if (element.hasAttribute("data-freshness")) element.toggleAttribute("data-stale", seconds < -STALE_AFTER);
    }
  }

  function learnClock(response) {
    const theirs = Date.parse(response.headers.get("Date") ?? "");
    if (Number.isNaN(theirs)) return;
    const ahead = Date.now() - theirs;
    clockAhead = Math.abs(ahead) > 3000 ? ahead : 0; // the header counts whole seconds
  }

  function showFreshness(response) {
    const checked = response.headers.get("X-Larder-Checked");
    if (!checked) return;
    for (const element of document.querySelectorAll("time[data-freshness]")) element.dateTime = checked;
  }

  // Live parts

  const parts = new WeakMap(); // element -> {url, etag, due, busy}
  let failures = 0;

  function noteFailure() {
    failures += 1;
    if (failures >= FAILURES_SHOWN) showConnectionLost(true);
  }

  function showConnectionLost(lost) {
    const message = document.querySelector("#connection-lost > *");
    if (message && message.hidden === lost) message.hidden = !lost;
  }

  function typedInto(element) {
    if (element instanceof HTMLSelectElement) {
      const options = [...element.options];
      const untouched = options.some((option) => option.defaultSelected)
        ? options.every((option) => option.selected === option.defaultSelected)
        : element.selectedIndex <= 0;
      return !untouched;
    }
    if (element instanceof HTMLTextAreaElement) return element.value !== element.defaultValue;
    if (!(element instanceof HTMLInputElement) || element.type === "hidden") return false;
    if (element.type === "checkbox" || element.type === "radio") return element.checked !== element.defaultChecked;
    return element.value !== element.defaultValue;
  }

  function morph(element, html, morphStyle = "outerHTML") {
    const settled = Idiomorph.morph(element, html, {
      morphStyle,
      ignoreActiveValue: true,
      callbacks: {
        beforeNodeMorphed: (node) => !typedInto(node),
        beforeAttributeUpdated: (name, node) => !(name === "open" && (node instanceof HTMLDetailsElement || node instanceof HTMLDialogElement)),
      },
    });
    for (const node of settled) if (node instanceof Element) settle(node);
  }

  function settle(element) {
    if (window.htmx) htmx.process(element);
    showTimes(element);
    checkNames();
  }

  async function refresh(element, part) {
    part.busy = true;
    part.due = Date.now() + every(element) - 200; // a little early, or the next tick would just miss it
    try {
      const headers = { "X-Larder-Live": "1" };
      if (part.etag) headers["If-None-Match"] = part.etag;
      const response = await fetch(part.url, { headers, credentials: "same-origin", signal: AbortSignal.timeout(REQUEST_TIMEOUT) });
      const html = response.status === 200 ? await response.text() : "";
      receive(element, part, response, html);
    } catch {
      noteFailure();
    } finally {
      part.busy = false;
    }
  }

  function receive(element, part, response, html) {
    if (response.status >= 500) return noteFailure();
    failures = 0;
    showConnectionLost(false);
    if (response.redirected && new URL(response.url).pathname.includes("/login/")) {
      if (!location.pathname.includes("/login/")) location.reload();
      return;
    }
    if (response.status !== 200 && response.status !== 304) {
      part.gone = true; // what it showed has been removed or may not be seen: stop asking
      return;
    }
    learnClock(response);
    showFreshness(response);
    const go = response.headers.get("X-Larder-Go");
    if (go) {
      const target = new URL(go, location.href);
      if (target.origin === location.origin) return location.assign(target);
    }
    if (response.status === 200 && element.isConnected) {
      // A request of the part's own is under way: its answer will be newer than this one.
      if (element.matches(".htmx-request") || element.querySelector(".htmx-request")) return;
      part.etag = response.headers.get("ETag");
      morph(element, html);
      for (const brought of document.querySelectorAll("[data-for]")) {
        const place = document.getElementById(brought.dataset.for);
        if (place) morph(place, brought.innerHTML, "innerHTML");
      }
    }
    showTimes();
  }

  function every(element) {
    return Math.max(1, Number(element.dataset.every) || 3) * 1000;
  }

  function tick() {
    if (document.hidden) return;
    const now = Date.now();
    for (const element of document.querySelectorAll("[data-live]")) {
      const url = element.dataset.live;
      let part = parts.get(element);
      if (!part || part.url !== url) {
        part = { url, etag: null, due: now + every(element), busy: false, gone: false };
        parts.set(element, part);
      }
      if (!part.busy && !part.gone && now >= part.due) refresh(element, part);
    }
    showTimes();
  }

  let timer = 0;
  function followVisibility() {
    clearInterval(timer);
    if (document.hidden) return;
    for (const element of document.querySelectorAll("[data-live]")) {
      const part = parts.get(element);
      if (part) part.due = 0;
    }
    tick();
    timer = setInterval(tick, 1000);
  }

  // Theme

  function darkNow() {
    return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function toggleTheme() {
    const wanted = darkNow() ? "light" : "dark";
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    if (wanted === system) delete root.dataset.theme;
    else root.dataset.theme = wanted;
    try {
      if (wanted === system) localStorage.removeItem("larder-theme");
      else localStorage.setItem("larder-theme", wanted);
    } catch { /* storage is switched off: the choice lasts for this page */ }
    nameThemeToggle();
  }

  function nameThemeToggle() {
    for (const button of document.querySelectorAll("[data-theme-toggle]")) {
      button.setAttribute("aria-label", darkNow() ? "Use the light theme" : "Use the dark theme");
    }
  }

  // Copying

  function announce(text) {
    const status = document.getElementById("announce");
    if (status) status.textContent = text;
  }

  async function copy(button) {
    const source = document.querySelector(button.dataset.copy);
    if (!source) return;
    try {
      await navigator.clipboard.writeText(source.textContent.trim());
    } catch { // no clipboard here: select the text, so that one key press copies it
      getSelection().selectAllChildren(source);
      announce("The text is selected. Copy it with the keyboard.");
      return;
    }
    const label = button.querySelector("[data-copy-label]") ?? button;
    const before = label.dataset.before ?? label.textContent;
    label.dataset.before = before;
    label.textContent = "Copied";
    announce("Copied");
    setTimeout(() => { label.textContent = before; announce(""); }, 2000);
  }

  // Typed names

  function checkNames() {
    for (const form of document.querySelectorAll("form[data-confirm-name]")) {
      const matches = form.elements.typed?.value.trim() === form.dataset.confirmName;
      for (const button of form.querySelectorAll("button:not([type=button])")) button.disabled = !matches;
    }
  }

  // Events, all delegated

  document.addEventListener("click", (event) => {
    if (!(event.target instanceof Element)) return;
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
    if (event.target.closest("[data-theme-toggle]")) toggleTheme();
    event.target.closest("[data-dismiss]")?.closest(".toast")?.remove();
    const button = event.target.closest("[data-copy]");
    if (button) copy(button);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const menu = document.activeElement?.closest("details.menu[open]") ?? document.querySelector("details.menu[open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  document.addEventListener("input", checkNames);
  document.addEventListener("visibilitychange", followVisibility);
  document.addEventListener("htmx:load", () => { showTimes(); checkNames(); });
  window.addEventListener("pageshow", checkNames);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameThemeToggle);

  nameThemeToggle();
  checkNames();
  followVisibility();
  document.querySelector(".error-summary")?.focus();
})();
