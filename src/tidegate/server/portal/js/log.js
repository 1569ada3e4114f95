/** The action log, newest first, and whether its chain holds. */

import { get } from "./api.js";
import { fill, h, say } from "./dom.js";
import { clock, many, moment } from "./format.js";
import { attempt } from "./voice.js";

const PAGE = 200;
const KINDS = [
  ["", "Everything"], ["net.blocked", "Refused connections"], ["egress.refused", "Refused hosts"], ["question.answered", "Answers"],
  ["rule.remembered", "Remembered hosts"], ["task.created", "New tasks"], ["task.ended", "Ended tasks"], ["exec.started", "Commands"],
  ["tool.called", "Calls of tools"], ["settings.changed", "Settings"], ["token.created", "Tokens"],
];
const CHAIN = new Set(["seq", "at", "type", "task", "prev", "seal"]); // shown in columns, or of the chain itself
const RED = /^(net\.blocked|egress\.refused|journal\.|open\.network)/;

/** Draw the page. */
export function log(main) {
  const chain = h("p", { class: "chain", role: "status" });
  const findings = h("ul", { class: "warnings" });
  const kind = h("select", { "aria-label": "What to show", onchange: () => attempt(first) }, KINDS.map(([value, text]) => h("option", { value }, text)));
  const again = h("button", { type: "button", onclick: (event) => attempt(first, event.currentTarget) }, "Read again");
  const rows = h("ol", { class: "lines" });
  const more = h("button", { type: "button", hidden: true, onclick: (event) => attempt(page, event.currentTarget) }, "Older lines");
  fill(main, h("div", { class: "bar" }, h("h1", { tabindex: -1 }, "Log"), kind, again), chain, findings, rows, h("p", { class: "more" }, more));
  let last = 0;

  async function first() {
    last = 0;
    say(chain, "The chain is being verified…");
    delete chain.dataset.ok;
    await Promise.all([page(), verify()]);
  }

  async function page() {
    const query = new URLSearchParams({ limit: PAGE });
    if (last) query.set("before", last);
    if (kind.value) query.set("type", kind.value);
    const { lines } = await get(`/api/log?${query}`);
    if (!last) fill(rows, lines.length === 0 && h("li", { class: "none" }, "Nothing of this kind is on record."));
    rows.append(...lines.map(row));
    last = lines.at(-1)?.seq || last;
    more.hidden = lines.length < PAGE;
  }

  async function verify() {
    const found = await get("/api/log/verify");
    chain.dataset.ok = String(found.ok);
    say(chain, found.ok ? `The chain holds: ${many(found.lines, "line")}, sealed to line ${found.sealed_to}`
      : `This is not what was written: ${many(found.findings.length + found.more, "finding")}`);
    fill(findings, found.findings.map((one) => h("li", { class: "alarm" }, `${one.file}${one.line ? `, line ${one.line}` : ""}: ${one.what}`)));
  }

  attempt(first);
  return { end: () => {} };
}

function row(line) {
  const rest = Object.entries(line).filter(([name, value]) => !CHAIN.has(name) && value !== "" && value !== null);
  return h("li", { class: RED.test(line.type) ? "red" : "" },
    h("span", { class: "seq" }, line.seq), h("time", { title: moment(line.at) }, clock(line.at)), h("span", { class: "type" }, line.type),
    h("span", { class: "rest" }, rest.map(([name, value]) => h("span", {}, h("i", {}, name), " ", shown(value)))),
    line.task && h("a", { href: `#/task/${encodeURIComponent(line.task)}` }, line.task));
}

function shown(value) {
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(" ") || "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
