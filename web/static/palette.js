"use strict";
/* The search field in the header as a combobox (ARIA Authoring Practices), and the shortcuts of the keyboard.
htmx fetches the results; this opens them, moves the choice, and goes there. */
(() => {
  const field = document.getElementById("search-field");
  const list = document.getElementById("search-results");
  const help = document.getElementById("shortcuts");
  if (!field) return;
  const options = () => [...list.querySelectorAll("a[role=option]")];
  let chosen = -1;

  // Only with script is it a combobox: without, it is a field that leads to a page
  for (const [name, value] of Object.entries({
    role: "combobox", "aria-autocomplete": "list", "aria-controls": list.id, "aria-expanded": "false",
  })) field.setAttribute(name, value);

  function choose(next) {
    const all = options();
    chosen = all.length && next >= 0 ? next % all.length : -1;
    all.forEach((option, at) => option.setAttribute("aria-selected", String(at === chosen)));
    if (chosen < 0) return field.removeAttribute("aria-activedescendant");
    field.setAttribute("aria-activedescendant", all[chosen].id);
    all[chosen].scrollIntoView({ block: "nearest" });
  }

  function show(open) {
    list.hidden = !open;
    field.setAttribute("aria-expanded", String(open));
    choose(-1);
  }

  function goToField() {
    if (!field.checkVisibility()) return location.assign(field.form.action); // a phone's header has no room for it
    field.focus();
    field.select();
  }

  list.addEventListener("htmx:afterSwap", () => {
    if (document.activeElement !== field) return;
    show(true);
    if (field.value.trim() && options().length) choose(0);
    const count = options().length;
    const told = document.getElementById("announce");
    told.textContent = count ? told.dataset.found.replace("{count}", count) : told.dataset.nothing;
  });

  field.addEventListener("keydown", (event) => {
    const all = options();
    const open = !list.hidden;
    if (event.key === "ArrowDown" && open) choose(chosen + 1);
    else if (event.key === "ArrowUp" && open) choose(chosen <= 0 ? all.length - 1 : chosen - 1);
    else if (event.key === "Enter" && open && chosen >= 0) location.assign(all[chosen].href);
    else if (event.key === "Escape" && open) show(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  field.form.addEventListener("focusout", ({ relatedTarget }) => {
    if (!field.form.contains(relatedTarget)) show(false);
  });
  list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus until the click

  document.addEventListener("keydown", (event) => {
    const { key, ctrlKey, metaKey, altKey, target } = event;
    if ((ctrlKey || metaKey) && !altKey && key.toLowerCase() === "k") {
      event.preventDefault();
      return goToField();
    }
    const typing = target.isContentEditable || target.matches("input, textarea, select");
    if (typing || ctrlKey || metaKey || altKey || document.querySelector("dialog[open]")) return;
    if (key === "/") {
      event.preventDefault();
      goToField();
    }
    if (key === "?") help.showModal();
  });
})();
