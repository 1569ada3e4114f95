/** Who reached what: a bar for each host, what passed and what was refused in red, with the numbers beside it. */

import { get } from "./api.js";
import { fill, h, say, svg } from "./dom.js";
import { bytes, many, place } from "./format.js";

const MOST = 12; // hosts that are shown
const WIDE = 100; // units of a bar
const AGAIN = 5000; // milliseconds between two readings, where something went by

/** Make the chart of what is at this address of the API. `draw()` reads it anew, soon. */
export function reach(address, title) {
  const rows = h("tbody", {});
  const sum = h("p", { class: "meta" });
  const table = h("table", { class: "reach" }, h("caption", { class: "spoken" }, title),
    h("thead", {}, h("tr", {}, ["Host", "Share", "Passed", "Refused"].map((name) => h("th", { scope: "col" }, name)))), rows);
  const node = h("section", { class: "panel", hidden: true, "aria-label": title }, h("h2", {}, title), table, sum);
  let timer = 0;
  let ended = false;

  async function read() {
    const found = await get(`${address}?limit=${MOST}`).catch(() => null); // the line at the top says what is wrong
    if (ended || !found) return;
    node.hidden = found.hosts.length === 0;
    const most = Math.max(...found.hosts.map((one) => one.reached + one.refused), 1);
    fill(rows, found.hosts.map((one) => row(one, most)));
    say(sum, found.more ? `and ${many(found.more, "more host")}` : "");
    sum.hidden = !found.more;
  }

  function draw() {
    timer ||= setTimeout(() => {
      timer = 0;
      read();
    }, AGAIN);
  }

  read();
  return { node, draw, end: () => {
    ended = true;
    clearTimeout(timer);
  } };
}

function row(one, most) {
  const passed = (WIDE * one.reached) / most;
  const refused = (WIDE * one.refused) / most;
  const name = one.host === "*" ? "all other hosts" : place(one.host, one.port);
  const bar = svg("svg", { viewBox: `0 0 ${WIDE} 10`, preserveAspectRatio: "none", class: "bars", "aria-hidden": "true" },
    svg("rect", { x: 0, width: seen(passed), height: 10, class: "moved" }),
    svg("rect", { x: seen(passed), width: seen(refused), height: 10, class: "refused" }));
  return h("tr", {},
    h("th", { scope: "row", title: one.bytes ? `${bytes(one.bytes)} moved` : "" }, name), h("td", {}, bar),
    h("td", {}, one.reached ? one.reached.toLocaleString() : "–"),
    h("td", { class: one.refused ? "red" : "" }, one.refused ? one.refused.toLocaleString() : "–"));
}

const seen = (width) => (width ? Math.max(width, 1) : 0); // one of a thousand is still seen
