/** The first page: what needs a person on top, then the tasks. */

import { MOD } from "./cards.js";
import { deck } from "./deck.js";
import { fill, h, keyed, say } from "./dom.js";
import { many } from "./format.js";
import { reach } from "./reach.js";
import { isOwner, known, listen, tasksInOrder, waiting } from "./store.js";
import { taskRow } from "./tasks.js";

const FEW = 12; // tasks on the first page

/** Draw it. */
export function home(main) {
  const keys = h("p", { class: "sum keys" });
  const none = h("div", { class: "empty" }, h("p", { class: "big" }, "Nothing waits for you"),
    h("p", {}, "What a policy would ask about appears here the moment a task started with ", h("code", {}, "--wait"), " tries it."));
  const cards = h("div", { class: "cards" });
  const list = h("ul", { class: "tasks" });
  const refused = h("p", { class: "sum" });
  const chart = reach("/api/hosts", "Who reached what, since the server began");
  const more = h("p", { class: "more" }, h("a", { href: "#/tasks" }, "All tasks"));
  fill(main, h("div", { class: "bar" }, h("h1", { tabindex: -1 }, "Needs you"), keys), none, cards,
    h("section", { "aria-labelledby": "tasks-title" }, h("div", { class: "bar" }, h("h2", { id: "tasks-title" }, "Tasks"), refused), list, more), chart.node);
  const pile = deck(cards);
  const rows = new Map();

  function draw() {
    chart.draw();
    none.hidden = pile.draw() > 0;
    const open = waiting().length;
    say(keys, open && isOwner() ? `${MOD}Y allows the card in front once, ${MOD}N denies it` : "");
    const tasks = tasksInOrder().slice(0, FEW);
    keyed(list, rows, tasks, (task) => task.id, taskRow);
    const total = [...known.tasks.values()].reduce((sum, task) => sum + task.refused, 0);
    say(refused, tasks.length ? (total ? `${many(total, "connection")} refused` : "nothing was refused") : "none yet: tidegate run -- COMMAND");
    refused.classList.toggle("red", total > 0);
    more.hidden = known.tasks.size <= FEW;
  }

  draw();
  const stop = listen((changed) => (changed.has("questions") || changed.has("tasks")) && draw());
  const end = () => {
    pile.end();
    chart.end();
    stop();
  };
  return { end, ready: pile.ready };
}
