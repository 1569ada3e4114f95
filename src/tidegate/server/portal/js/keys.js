/**
 * The keyboard: Mod+Shift+Y and Mod+Shift+N answer the card in front, `/` searches, arrows go from card to card and
 * from row to row. Some browsers keep Mod+Shift+N for themselves; Alt+Shift does the same there.
 */

import { answer } from "./cards.js";
import { isOwner } from "./store.js";
import { attempt } from "./voice.js";

const STOPS = ".card, .tasks a.row, .rules button";
const ANSWERS = { KeyY: "allow", KeyN: "deny" };

/** Listen for as long as the page lives. `ready()` is the question in front, if any; `search()` opens a search. */
export function keys({ ready, search }) {
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    const mod = event.ctrlKey || event.metaKey || event.altKey;
    const writing = event.target.closest?.("input:not([type=checkbox]), textarea, select");
    if (mod && event.shiftKey && event.code in ANSWERS) {
      event.preventDefault();
      const question = ready();
      if (question && isOwner() && !event.repeat) attempt(() => answer(question, ANSWERS[event.code]));
    } else if (mod) {
      return;
    } else if (event.key === "/" && !writing) {
      event.preventDefault();
      search();
    } else if (event.key === "Escape" && writing) {
      writing.blur();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !writing && !event.target.closest?.(".scroll")) {
      move(event.key === "ArrowDown" ? 1 : -1, event);
    }
  });
}

function move(step, event) {
  const stops = [...document.querySelectorAll(STOPS)].filter((node) => node.offsetParent !== null);
  if (!stops.length) return;
  const at = stops.findIndex((node) => node.contains(document.activeElement));
  const next = at < 0 ? stops.at(step > 0 ? 0 : -1) : stops[Math.min(stops.length - 1, Math.max(0, at + step))];
  event.preventDefault();
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}
