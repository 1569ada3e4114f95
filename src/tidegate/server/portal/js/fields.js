/** Fields that several pages have. */

import { h } from "./dom.js";
import { span } from "./format.js";

const WAITS = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800]; // 1 minute to 8 hours (ASK-2)

/** How long a question may wait, to choose from; `now` is among it. */
export function waits(now) {
  const all = WAITS.includes(now) ? WAITS : [...WAITS, now].sort((a, b) => a - b);
  return all.map((seconds) => h("option", { value: seconds, selected: seconds === now }, span(seconds)));
}

/** A search field, which `/` goes to; `onChange` is called as it is written in, `words()` is what stands in it. */
export function searchField(label, onChange) {
  const node = h("input", {
    type: "search", placeholder: label, "aria-label": label, oninput: () => onChange(), spellcheck: "false", autocapitalize: "off", autocomplete: "off",
  });
  return { node, words: () => node.value.trim().toLowerCase() };
}

/** A control under its label, with a line of help. */
export function field(id, label, control, help = "") {
  control.id = id;
  if (help) control.setAttribute("aria-describedby", `${id}-help`);
  return h("div", { class: "field" }, h("label", { for: id }, label), control, help && h("p", { class: "meta", id: `${id}-help` }, help));
}
