/**
 * The connections of a task: those that are open now, then those that have ended, newest first. A filter, bars over
 * time, a pause, and all there is to know of one; an open one can be cut.
 */

import { post } from "./api.js";
import { bars } from "./bars.js";
import { older, watched } from "./connections.js";
import { fill, h, say } from "./dom.js";
import { searchField } from "./fields.js";
import { bytes, clock, isRefusal, many, moment, place } from "./format.js";
import { isOpen, opened } from "./open.js";
import { isOwner } from "./store.js";
import { virtual } from "./virtual.js";
import { attempt, note } from "./voice.js";

const narrow = matchMedia("(max-width: 700px)");
const CHART = 1000; // milliseconds between two drawings of the bars

/** Make the panel of a task. `draw()` shows what came. */
export function panel(id) {
  const chart = bars();
  const field = searchField("Filter by host", () => draw());
  const only = h("input", { type: "checkbox", onchange: () => draw() });
  const hold = h("button", { type: "button", "aria-pressed": "false", onclick: freeze }, "Pause the list");
  const sum = h("p", { class: "sum", role: "status" });
  const empty = h("p", { class: "none" });
  const detail = h("div", { class: "detail", role: "status", hidden: true });
  const about = h("dl", { class: "about" });
  const list = virtual({
    label: "Connections, open ones first, newest first; arrows choose one", height: () => (narrow.matches ? 60 : 36), make: row, onChoose: choose,
    onEnd: () => attempt(async () => (await older()) && draw()),
  });
  const node = h("section", { class: "panel", "aria-label": "Connections" }, chart.node,
    h("div", { class: "bar" }, field.node, h("label", { class: "check" }, only, "refused only"), hold, sum), list.node, empty, detail);

  let open = []; // those that are open and that the filter lets through, newest first
  let shown = null; // the open one whose facts are shown
  let found = []; // those of `seen` that the filter lets through, newest last
  let filter = null;
  let version = -1;
  let looked = 0; // how many of the lines have been looked at
  let frozen = 0; // when frozen, how many there were; 0 for not

  function freeze() {
    frozen = frozen ? 0 : watched.lines.length || 1;
    hold.setAttribute("aria-pressed", String(frozen !== 0));
    say(hold, frozen ? "Go on" : "Pause the list");
    if (!frozen) draw();
  }

  function draw() {
    const words = field.words();
    const wanted = `${only.checked} ${words}`;
    if (frozen && filter === wanted) {
      total(frozen);
      return;
    }
    if (filter !== wanted || version !== watched.version) {
      chart.draw(watched.lines);
      found = [];
      looked = 0;
    }
    filter = wanted;
    version = watched.version;
    const end = frozen ? Math.min(frozen, watched.lines.length) : watched.lines.length;
    for (; looked < end; looked += 1) {
      const line = watched.lines[looked];
      if (only.checked && !isRefusal(line)) continue;
      if (fits(line, words)) found.push(line);
    }
    open = only.checked ? [] : opened.lines.filter((line) => fits(line, words));
    list.show(open.length + found.length, (at) => open[at] || found[open.length + found.length - 1 - at]);
    total(frozen);
    if (shown) choose(shown);
  }

  function total(at) {
    const parts = [many(found.length, "connection")];
    if (watched.before !== null) parts[0] += " so far";
    if (at) parts.push(`paused, ${Math.max(0, watched.lines.length - at).toLocaleString()} new`);
    const more = opened.more ? `, and ${opened.more.toLocaleString()} more` : "";
    if (open.length) parts.push(`${open.length.toLocaleString()} open${more}`);
    if (watched.leftOut) parts.push(`${watched.leftOut.toLocaleString()} more went by too fast to show`);
    say(sum, parts.join(" · "));
    say(empty, filter === "false " ? "Nothing yet." : "No connection matches.");
    empty.hidden = found.length + open.length > 0;
    list.node.hidden = !empty.hidden;
  }

  function choose(line) {
    detail.hidden = line === null;
    if (line === null) {
      shown = null;
      return;
    }
    const living = line.open === true && isOpen(line);
    detail.setAttribute("aria-live", living ? "off" : "polite"); // bytes that count up are not read out
    const cut = living && isOwner() && shownCut(line);
    if (shown === line && living) { // what a person is about to press stays
      fill(about, pairs(line));
      return;
    }
    shown = living ? line : null;
    fill(about, pairs(line));
    fill(detail, h("strong", { class: isRefusal(line) ? "red" : "" }, place(line.host, line.port)), about, cut);
  }

  const shownCut = (line) => h("button", { type: "button", class: "bad", onclick: (event) => attempt(async () => {
    const { cut } = await post(`/api/tasks/${encodeURIComponent(id)}/cut`, { connection: line.id });
    note(`${place(line.host, line.port)}: ${cut ? "closed" : "it had ended already"}`);
  }, event.currentTarget) }, "Cut this connection");

  const clockwork = setInterval(() => chart.draw(watched.lines), CHART);
  return {
    node,
    draw,
    end: () => {
      clearInterval(clockwork);
      list.end();
    },
  };
}

const isMade = (line) => line.how !== "refused"; // one that was not made is a refusal, or nobody was there any more
const ending = (line) => (isMade(line) ? line.how : `${isRefusal(line) ? "refused" : "not connected"}: ${words(line.reason)}`);
const fits = (line, words) => !words || place(line.host, line.port).toLowerCase().includes(words);
const pairs = (line) =>
  (line.open ? openFacts(line) : facts(line)).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
const words = (code) => code.replaceAll("-", " ");

function facts(line) {
  return [
    ["When", moment(line.at)],
    ["Went", [isMade(line) || isRefusal(line) ? line.how : "not connected", line.status ? `, answered ${line.status}` : "", line.kept ? ", kept over a change of phase" : ""]],
    ["Because", words(line.reason)],
    ["Rule", line.rule ? h("code", {}, line.rule) : "none"],
    ["From", [line.name, line.source && line.source !== line.name && ` (${line.source})`]],
    line.address && ["Address", h("code", {}, line.address)],
    line.method && ["Method", line.method],
    line.detail && ["Inside", line.detail],
    ["Took", `${line.duration} s`],
    isMade(line) && ["Bytes", `${bytes(line.bytes_up)} up, ${bytes(line.bytes_down)} down`],
    line.count > 1 && ["Times", String(line.count)],
    line.fix && ["To allow it", h("code", {}, line.fix)],
  ].filter(Boolean);
}

const STATES = { waiting: "waits for an answer", connecting: "connecting", open: "open" };

function openFacts(line) {
  return [
    ["Began", moment(line.at)],
    ["Now", isOpen(line) ? [STATES[line.state], line.how && `, ${line.how}`] : "has ended; its line is in the list"],
    ["Rule", line.rule ? h("code", {}, line.rule) : "none"],
    ["From", [line.name, line.source && line.source !== line.name && ` (${line.source})`]],
    line.address && ["Address", h("code", {}, line.address)],
    ["Method", line.method],
    ["Bytes", `${bytes(line.bytes_up)} up, ${bytes(line.bytes_down)} down`],
  ].filter(Boolean);
}

/** One connection as a row that is used again for others. */
function row() {
  const at = h("time", {});
  const where = h("span", { class: "where" });
  const how = h("span", { class: "how" });
  const rule = h("span", { class: "rule" });
  const size = h("span", { class: "size" });
  const node = h("div", { class: "line" }, at, where, how, rule, size);
  function update(line) {
    node.dataset.how = line.open ? "open" : isRefusal(line) ? "refused" : "passed";
    say(at, clock(line.at));
    say(where, place(line.host, line.port));
    if (line.open) say(how, STATES[line.state]);
    else say(how, `${ending(line)}${line.count > 1 ? ` ×${line.count}` : ""}`);
    say(rule, line.rule || line.name);
    say(size, line.open || isMade(line) ? `↑ ${bytes(line.bytes_up)}  ↓ ${bytes(line.bytes_down)}` : "");
  }
  return { node, update };
}
