/** Tools: programs that run outside for a task, each with the hosts that it says it talks to. */

import { get } from "./api.js";
import { fill, h, say } from "./dom.js";
import { searchField } from "./fields.js";
import { many } from "./format.js";

/** Draw the page. */
export function tools(main) {
  const field = searchField("Search tools and hosts", draw);
  const sum = h("p", { class: "sum", role: "status" });
  const list = h("ul", { class: "rules tools" });
  const empty = h("p", { class: "empty", hidden: true });
  let found = null;
  let ended = false;
  fill(main, h("div", { class: "bar" }, h("h1", { tabindex: -1 }, "Tools"), field.node, sum),
    h("p", { class: "lead" }, "Programs that run outside of a task for it. A task has only those that its command line names or that it was created with, and the task's own hosts do not limit them unless it says so here."),
    list, empty);

  async function read() {
    found = await get("/api/tools").catch(() => null); // the line at the top says what is wrong
    if (!ended && found) draw();
  }

  function draw() {
    if (!found) return;
    const words = field.words();
    const shown = found.tools.filter((one) => `${one.name} ${one.description} ${one.hosts.join(" ")}`.toLowerCase().includes(words));
    fill(list, shown.map(row));
    say(sum, shown.length ? many(shown.length, "tool") : "");
    say(empty, found.problem || (words ? "No tool matches." : "No tool is declared: tools.yaml in the configuration folder does it."));
    empty.hidden = shown.length > 0;
  }

  read();
  return { end: () => { ended = true; } };
}

const row = (one) => h("li", {}, h("span", { class: "where" }, one.name),
  h("span", { class: "meta" }, one.hosts.length ? one.hosts.join(", ") : "names no host",
    one.apply_task_hosts ? " · only the task's hosts, no redirects" : " · not limited by the task's hosts",
    one.for_tasks && " · offered to created tasks",
    !one.works && " · its program is missing"),
  h("span", { class: "meta" }, one.description));
