/** Light, dark, or as the system has it; kept in this browser. */

const KEY = "tidegate-theme";

export const THEMES = ["auto", "light", "dark"];

/** Return the one that is in force. */
export function theme() {
  const kept = localStorage.getItem(KEY);
  return THEMES.includes(kept) ? kept : "auto";
}

/** Keep another one, and use it. */
export function setTheme(name) {
  localStorage.setItem(KEY, name);
  applyTheme();
}

/** Use the one that is kept. */
export function applyTheme() {
  document.documentElement.dataset.theme = theme();
}
