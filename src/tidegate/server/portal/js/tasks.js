/** The list of tasks. */

import { fill, h, keyed, say } from "./dom.js";
import { searchField } from "./fields.js";
import { ago, many, moment, titleOf } from "./format.js";
import { known, listen, olderTasks, tasksInOrder } from "./store.js";
import { attempt } from "./voice.js";

const AGES = 20000; // milliseconds until "a minute ago" is looked at again

/** One task as a row that leads to its panel. */
export function taskRow(first) {
  const dot = h("span", { class: "dot", "aria-hidden": "true" });
  const title = h("span", { class: "title" });
  const folder = h("span", { class: "path" });
  const state = h("span", { class: "state" });
  const when = h("time", {});
  const asks = h("span", { class: "pill amber" });
  const refused = h("span", { class: "pill red" });
  const open = h("span", { class: "pill red" }, "no gate");
  const link = h("a", { class: "row", href: `#/task/${encodeURIComponent(first.id)}` }, dot, h("span", { class: "main" }, title, folder),
    h("span", { class: "pills" }, open, asks, refused), h("span", { class: "side" }, state, when));
  const node = h("li", {}, link);
  function update(task) {
    node.dataset.state = stateOf(task);
    say(title, titleOf(task));
    say(folder, task.folder);
    say(state, task.state === "living" && !task.paused ? task.phase : stateOf(task));
    state.title = task.outcome;
    say(when, ago(task.ended_at || task.created_at));
    when.title = moment(task.created_at);
    asks.hidden = !task.questions;
    say(asks, `${task.questions} waiting`);
    refused.hidden = !task.refused;
    say(refused, `${task.refused.toLocaleString()} refused`);
    open.hidden = !hasNoGate(task);
  }
  update(first);
  return { node, update };
}

/** living, paused or ended. */
export const stateOf = (task) => (task.state === "living" && task.paused ? "paused" : task.state);

/** Whether a command of it runs, or ran, with the machine's own network. */
export const hasNoGate = (task) => [task.hold, task.network, ...task.execs.map((one) => one.hold)].includes("open");

/** Draw the page. */
export function tasks(main) {
  const list = h("ul", { class: "tasks" });
  const sum = h("p", { class: "sum", role: "status" });
  const field = searchField("Search tasks", draw);
  const empty = h("p", { class: "empty" });
  const more = h("button", { type: "button", onclick: (event) => attempt(olderTasks, event.currentTarget) }, "Older tasks");
  fill(main, h("div", { class: "bar" }, h("h1", { tabindex: -1 }, "Tasks"), field.node, sum), list, empty, h("p", { class: "more" }, more));
  const rows = new Map();

  function draw() {
    const words = field.words();
    const found = tasksInOrder().filter((task) => `${titleOf(task)} ${task.folder} ${task.id}`.toLowerCase().includes(words));
    keyed(list, rows, found, (task) => task.id, taskRow);
    const living = found.filter((task) => task.state === "living").length;
    say(sum, found.length ? `${many(found.length, "task")}, ${living} living` : "");
    say(empty, words ? "No task matches." : "No task yet: tidegate run -- COMMAND begins one.");
    empty.hidden = found.length > 0;
    more.hidden = !known.moreTasks;
  }

  draw();
  const ages = setInterval(draw, AGES);
  const stop = listen((changed) => (changed.has("tasks") || changed.has("questions")) && draw());
  const end = () => {
    clearInterval(ages);
    stop();
  };
  return { end };
}
