/** Remembered hosts by folder, each with who said so and when; one can be forgotten. */

import { remove } from "./api.js";
import { fill, h, say } from "./dom.js";
import { searchField } from "./fields.js";
import { ago, many, moment, place } from "./format.js";
import { isOwner, known, listen } from "./store.js";
import { attempt, note } from "./voice.js";

/** Draw the page. */
export function rules(main) {
  const field = searchField("Search hosts and folders", draw);
  const sum = h("p", { class: "sum", role: "status" });
  const groups = h("div", { class: "groups" });
  const empty = h("p", { class: "empty" });
  fill(main, h("div", { class: "bar" }, h("h1", { tabindex: -1 }, "Rules"), field.node, sum),
    h("p", { class: "lead" }, "Hosts that somebody let through for good. Each counts for one folder, and not for those below it."), groups, empty);

  function draw() {
    const words = field.words();
    const folders = new Map();
    const found = known.rules.filter((rule) => `${place(rule.host, rule.port)} ${rule.folder}`.toLowerCase().includes(words));
    for (const rule of found) folders.set(rule.folder, [...(folders.get(rule.folder) || []), rule]);
    fill(groups, [...folders].sort(([a], [b]) => a.localeCompare(b)).map(([folder, ones]) =>
      h("section", {}, h("h2", { class: "path" }, folder), h("ul", { class: "rules" }, ones.map(row)))));
    say(sum, found.length ? many(found.length, "host") : "");
    say(empty, words ? "No rule matches." : "Nothing is remembered yet: “Always in this folder” on a question does it.");
    empty.hidden = found.length > 0;
  }

  draw();
  return { end: listen((changed) => changed.has("rules") && draw()) };
}

function row(rule) {
  const shown = place(rule.host, rule.port);
  const forget = async () => {
    await remove(`/api/rules/${rule.id}`);
    note(`${shown} is forgotten: the next attempt is asked about`);
  };
  return h("li", {}, h("span", { class: "where" }, shown),
    h("span", { class: "meta" }, `${rule.phase} · by ${rule.by} · `, h("time", { title: moment(rule.at) }, ago(rule.at))),
    isOwner() && h("button", { type: "button", "aria-label": `Forget ${shown}`, onclick: (event) => attempt(forget, event.currentTarget) }, "Forget"));
}
