/** A question as a card: what is asked, by whom, why it waits and how long, and the answers. */

import { post } from "./api.js";
import { fill, h, say, svg } from "./dom.js";
import { countdown, many, moment, place, titleOf } from "./format.js";
import { isOwner, known } from "./store.js";
import { attempt, note } from "./voice.js";

const ROUND = 2 * Math.PI * 21;
const SOON = 60; // seconds
const DONE = {
  allow: "let through once", task: "let through for this task", remember: "let through, and remembered for the folder",
  deny: "refused", "deny-task": "refused for this task",
};
const LASTING = [
  ["", "as long as the task"], ["600", "10 minutes"], ["3600", "1 hour"], ["14400", "4 hours"], ["28800", "8 hours"],
];

/** Answer a question. `terms` are until, connections or bytes. Throws ApiError, but not where another was faster. */
export async function answer(question, kind, terms = {}) {
  const where = place(question.host, question.port);
  try {
    await post(`/api/questions/${question.id}/answer`, { answer: kind, ...terms });
  } catch (error) {
    if (error.status !== 409) throw error;
    note(`${where}: ${error.message}`, { fix: error.fix });
    return;
  }
  note(`${where}: ${DONE[kind]}`);
}

/** What a task is called, by a question of it. */
export function taskTitle(question) {
  const task = known.tasks.get(question.task);
  return question.task_name || (task ? titleOf(task) : question.task);
}

/**
 * Make a card. `update(question)` keeps it, `tick()` moves its ring, `front(yes)` marks the one that the keys answer.
 * `steady()` says whether the page stands still: an answer that is pressed while cards move is not sent.
 */
export function card(first, steady = () => true) {
  let question = first;
  const ring = makeRing();
  const where = h("h2", { class: "where", id: `question-${first.id}` });
  const label = h("p", { class: "label" });
  const who = h("p", { class: "who" });
  const held = h("span", { class: "held" });
  const reason = h("span", {});
  const warnings = h("ul", { class: "warnings" });
  const foot = answers(() => question, steady);
  const node = h("article", { class: "card", tabindex: -1, "aria-labelledby": where.id, dataset: { question: first.id } },
    ring.node, h("div", { class: "what" }, where, label, who, h("p", { class: "why" }, held, reason), warnings), foot.node);

  function update(next) {
    question = next;
    const open = question.state === "open" || question.state === "saving";
    node.dataset.state = open ? "open" : question.state;
    fill(where, h("span", { class: "host" }, question.host), h("span", { class: "port" }, `:${question.port}`));
    say(label, question.label && question.label !== question.host ? `shown as ${question.label}` : "");
    fill(who, h("a", { href: `#/task/${question.task}` }, taskTitle(question)), h("span", { class: "path" }, question.folder),
      question.phase === "install" && h("span", { class: "pill" }, "while it installs"));
    const whence = ` (${question.source || question.rule_name})`;
    fill(reason, question.rule ? ["a rule has a person decide: ", h("code", {}, question.rule), whence] : `no rule names it${whence}`);
    say(held, open ? waits(question.waiting) : outcome(question));
    fill(warnings, notices(question).map((text) => h("li", {}, text)));
    foot.update(open);
    tick();
  }

  function tick() {
    ring.draw(question, question.state === "open");
  }

  function front(yes) {
    node.toggleAttribute("data-front", yes);
  }

  update(question);
  return { node, update, tick, front };
}

function waits(count) {
  if (count === 0) return "Its client gave up waiting; its next try comes back to this question";
  return `${many(count, "connection")} ${count === 1 ? "waits" : "wait"}`;
}

function notices(question) {
  return [
    ...question.warnings,
    question.group && `the task asks for very many names below ${question.group}; an answer counts for this one`,
    question.problem && `it was let through, and failed: ${question.problem}`,
  ].filter(Boolean);
}

function outcome(question) {
  const by = question.by ? ` by ${question.by}` : "";
  if (question.state === "answered") return `${DONE[question.answer] || "answered"}${by}`;
  return question.state === "expired" ? "nobody answered in time: refused" : "over: its task or phase ended, or the answer could not be kept";
}

/** The time that is left, as a ring and in figures. */
function makeRing() {
  const arc = svg("circle", { class: "arc", cx: 26, cy: 26, r: 21, "stroke-dasharray": ROUND });
  const track = svg("circle", { class: "track", cx: 26, cy: 26, r: 21 });
  const left = h("span", { class: "left" });
  const node = h("div", { class: "ring", role: "timer" }, svg("svg", { viewBox: "0 0 52 52", "aria-hidden": "true" }, track, arc), left);

  function draw(question, open) {
    node.hidden = !open;
    if (!open) return;
    const rest = question.deadline_at - Date.now() / 1000;
    const whole = Math.max(1, question.deadline_at - question.opened_at);
    arc.setAttribute("stroke-dashoffset", String(ROUND * (1 - Math.min(1, Math.max(0, rest / whole)))));
    node.dataset.soon = String(rest < SOON);
    say(left, countdown(rest));
    node.title = `refused at ${moment(question.deadline_at)} unless somebody answers`;
  }

  return { node, draw };
}

/** The buttons, and the bounds of what is let through for the task. */
function answers(question, steady) {
  const lasting = h("select", {}, LASTING.map(([value, text]) => h("option", { value }, text)));
  const uses = h("input", { type: "number", min: 1, step: 1, placeholder: "any", inputmode: "numeric" });
  const size = h("input", { type: "number", min: 1, step: 1, placeholder: "any", inputmode: "numeric" });
  const press = (kind) => (event) => {
    if (!steady()) note("The cards have just moved: press again");
    else attempt(() => answer(question(), kind, kind === "task" ? terms(lasting, uses, size) : {}), event.currentTarget);
  };
  const button = (kind, text, more = {}, ...keys) =>
    h("button", { type: "button", dataset: { answer: kind }, onclick: press(kind), ...more }, text, keys);
  const remember = button("remember", "Always in this folder");
  const buttons = h("div", { class: "buttons" },
    h("div", {}, button("allow", "Allow once", { class: "good" }, key("Y")), button("task", "For this task"), remember),
    h("div", {}, button("deny", "Deny", { class: "bad" }, key("N")), button("deny-task", "Deny for this task", { class: "bad" })));
  const more = h("details", { class: "terms" }, h("summary", {}, "Bound what “For this task” lets through"),
    h("div", { class: "fields" }, h("label", {}, "For", lasting), h("label", {}, "Connections", uses),
      h("label", {}, "Megabytes", size)));
  const hint = h("p", { class: "hint" });
  const node = h("div", { class: "answers" }, buttons, more, hint);

  function update(open) {
    node.hidden = !open;
    const mine = isOwner();
    buttons.hidden = more.hidden = !mine;
    const why = question().no_remember;
    remember.hidden = why !== "";
    say(hint, mine ? why && `It cannot be remembered: ${why}.` : "You are looking on: an owner answers.");
    hint.hidden = hint.textContent === "";
  }

  return { node, update };
}

const APPLE = /Mac|iPhone|iPad/.test(navigator.platform);

/** Mod and Shift as this machine's keyboard has them. */
export const MOD = APPLE ? "⇧⌘" : "Ctrl+Shift+";

const key = (letter) => h("kbd", { "aria-hidden": "true" }, `${APPLE ? "⇧⌘" : "Ctrl ⇧ "}${letter}`);

function terms(lasting, uses, size) {
  const found = {};
  if (lasting.value) found.until = Date.now() / 1000 + Number(lasting.value);
  if (uses.value) found.connections = Number(uses.value);
  if (size.value) found.bytes = Math.round(Number(size.value) * 1e6);
  return found;
}
