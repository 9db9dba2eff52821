"use strict";
/* What htmx and plain HTML cannot do. It hangs on htmx's events and on these attributes:
data-relative on <time>    "8 seconds ago", ticking; with data-freshness: when the facts were last checked
data-theme-toggle          button between light and dark
data-copy="#ID"            button that copies the text of that element
data-confirm-name="tank"   form whose submit buttons wait for that name in input[name=typed]
data-browser-zone          list of time zones that starts at the browser's
data-dismiss               button that closes its .toast */
(() => {
  const all = (selector) => document.querySelectorAll(selector), on = (name, act) => document.addEventListener(name, act);

  // Times, by the clock of the box: live parts bring its time, and when the facts were checked
  const STALE_AFTER = 120; // seconds
  const UNITS = [["year", 31557600], ["month", 2629800], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const say = document.getElementById("announce").dataset; // words in the language of the page
  const { lang } = document.documentElement, own = navigator.languages.find((one) => one.startsWith(lang.slice(0, 2)));
  const words = new Intl.RelativeTimeFormat(lang, { numeric: "always" }); // own: en-US on a page in en-GB
  const absolute = new Intl.DateTimeFormat(own ?? lang, { dateStyle: "full", timeStyle: "medium" });
  let clockAhead = 0; // milliseconds
  function showTimes() {
    for (const time of all("time[data-relative][datetime]")) {
      const then = Date.parse(time.dateTime);
      if (Number.isNaN(then)) continue;
      const seconds = (then - Date.now() + clockAhead) / 1000;
      const [unit, size] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? UNITS.at(-1);
      const text = Math.abs(seconds) < 2 ? say.now : words.format(Math.trunc(seconds / size), unit);
      if (time.textContent !== text) Object.assign(time, { textContent: text, title: absolute.format(then) });
      if ("freshness" in time.dataset) time.toggleAttribute("data-stale", seconds < -STALE_AFTER);
    }
  }
  on("factsChecked", ({ detail }) => {
    const ahead = Date.now() - Date.parse(detail.now);
    clockAhead = Math.abs(ahead) > 3000 ? ahead : 0; // less is the time that the answer took
    for (const time of all("time[data-freshness]")) time.dateTime = detail.at;
    showTimes();
  });
  setInterval(() => { if (!document.hidden) showTimes(); }, 1000);

  // Live parts: a refresh changes nothing that somebody typed, chose or opened
  function isTyped(field) {
    if (field.matches("[type=checkbox], [type=radio]")) return field.checked !== field.defaultChecked;
    if (field.matches("input:not([type=hidden]), textarea")) return field.value !== field.defaultValue;
    const given = [...(field.options ?? [])].findIndex((option) => option.defaultSelected);
    return field.matches("select") && field.selectedIndex !== Math.max(0, given);
  }
  Object.assign(Idiomorph.defaults.callbacks, {
    beforeNodeMorphed: (node) => !(node instanceof Element && isTyped(node)),
    beforeAttributeUpdated: (name, node) => !(name === "open" && node.matches("details, dialog")),
  });

  // Requests: none for a hidden page or for what is gone; told when the box does not answer
  const FAILURES_SHOWN = 3;
  let failures = 0;
  const isLive = ({ detail }) => detail.elt.id === "live";
  const showLost = (lost) => { for (const message of all("#connection-lost > *")) message.hidden = !lost; };
  const fail = (event) => { if (++failures >= FAILURES_SHOWN || !isLive(event)) showLost(true); };
  on("htmx:beforeRequest", (event) => {
    if (isLive(event) && (document.hidden || "gone" in event.detail.elt.dataset)) event.preventDefault();
  });
  for (const name of ["htmx:sendError", "htmx:timeout"]) on(name, fail);
  on("htmx:beforeOnLoad", (event) => {
    const { xhr: { status }, elt } = event.detail;
    if (status >= 500) return fail(event);
    showLost(Boolean(failures = 0));
    if (status >= 400 && isLive(event)) elt.dataset.gone = "";
  });
  on("htmx:beforeSwap", ({ detail }) => { if (detail.xhr.getResponseHeader("HX-Retarget")) detail.shouldSwap = true; });

  // Theme: the system's, or the one chosen against it
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const chosen = document.documentElement.dataset;
  const other = (theme) => (theme === "dark" ? "light" : "dark");
  function toggleTheme() {
    const system = dark.matches ? "dark" : "light";
    const wanted = other(chosen.theme ?? system);
    if (wanted === system) delete chosen.theme; else chosen.theme = wanted;
    try { localStorage.setItem("larder-theme", chosen.theme ?? ""); } catch { /* it lasts for this page */ }
  }

  // Copying
  async function copy(button) {
    const source = document.querySelector(button.dataset.copy);
    const announce = (text) => { document.getElementById("announce").textContent = text; };
    try {
      await navigator.clipboard.writeText(source.textContent.trim());
    } catch { // no clipboard here: select the text, so that one key press copies it
      getSelection().selectAllChildren(source);
      return announce(say.selected);
    }
    const label = button.querySelector("[data-copy-label]") ?? button;
    const before = (label.dataset.before ??= label.textContent);
    announce(label.textContent = say.copied);
    setTimeout(() => { label.textContent = before; announce(""); }, 2000);
  }

  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  for (const list of all("[data-browser-zone]")) for (const zone of list.options) zone.selected ||= zone.value === timeZone;

  // Typed names, notices, menus
  function checkNames() {
    for (const form of all("form[data-confirm-name]")) {
      const matches = form.elements.typed?.value.trim() === form.dataset.confirmName;
      for (const button of form.querySelectorAll("button:not([type=button])")) button.disabled = !matches;
    }
  }
  on("input", checkNames);
  for (const name of ["htmx:load", "pageshow"]) addEventListener(name, () => { showTimes(); checkNames(); });
  on("animationend", ({ target, animationName }) => { if (animationName === "notice-ends") target.remove(); });
  on("click", ({ target }) => {
    for (const menu of all("details.menu[open]")) if (!menu.contains(target)) menu.open = false;
    if (target.closest("[data-theme-toggle]")) toggleTheme();
    if (target.closest("[data-copy]")) copy(target.closest("[data-copy]"));
    target.closest("[data-dismiss]")?.closest(".toast").remove();
  });
  on("keydown", ({ key }) => {
    const menu = key === "Escape" && document.querySelector("details.menu[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  });
})();
