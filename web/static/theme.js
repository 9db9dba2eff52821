"use strict";
// Loaded in <head>, before the first paint, so that a chosen theme does not flash.
try {
  const theme = localStorage.getItem("larder-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* storage is switched off: follow the system */ }
