/** What this page knows: read once, then kept by the events. Views listen and redraw, at most once a frame. */

import { get } from "./api.js";
import * as connections from "./connections.js";
import { isRefusal } from "./format.js";
import * as open from "./open.js";

const LIVES = 6000; // milliseconds an answered question stays, so that a person sees what became of it
const CALM = 200; // milliseconds between two drawings of what is not a question
const RECOUNT = 3000; // milliseconds between two readings of the counts, where connections went by
const MOST_TASKS = 2000; // kept; the oldest that have ended go first
const PAGE = 200;

export const known = {
  role: "viewer",
  version: "",
  started: 0,
  tasks: new Map(),
  moreTasks: false,
  questions: new Map(),
  rules: [],
  settings: null,
};

const listeners = new Set();
const changed = new Set();
let soon = 0; // the timer of the next drawing
let urgent = false;

/** Call `listener(changed)` after changes; it is a set of "tasks", "questions", "rules", "settings", "connections". */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Note a change. Questions are drawn in the next frame, all else a moment later, so that a flood costs little. */
export function touch(kind) {
  changed.add(kind);
  const now = kind === "questions";
  if (soon && (urgent || !now)) return;
  clearTimeout(soon);
  urgent = now;
  // A hidden page has no frames, but its title goes on counting.
  soon = setTimeout(() => (document.hidden ? tell() : requestAnimationFrame(tell)), now ? 0 : CALM);
}

function tell() {
  soon = 0;
  urgent = false;
  const now = new Set(changed);
  changed.clear();
  for (const listener of [...listeners]) listener(now);
}

/** Read everything anew. Returns whether another server answers than before. */
export async function refresh() {
  const [health, tasks, questions, rules, settings] = await Promise.all([
    get("/api/health"), get(`/api/tasks?limit=${PAGE}`), get("/api/questions"), get("/api/rules"), get("/api/settings"),
  ]);
  const another = known.started !== 0 && known.started !== health.started;
  Object.assign(known, { role: health.role, version: health.version, started: health.started, rules: rules.rules, settings });
  known.tasks = new Map(tasks.tasks.map((task) => [task.id, task]));
  known.moreTasks = tasks.more;
  const missed = new Set([...known.questions.values()].filter(isOpen).map((question) => question.id));
  known.questions = new Map();
  for (const question of questions.questions) if (isOpen(question) || missed.has(question.id)) keep(question);
  await connections.readAgain();
  for (const kind of ["tasks", "questions", "rules", "settings", "connections"]) touch(kind);
  return another;
}

/** Read the next page of older tasks. */
export async function olderTasks() {
  const oldest = [...known.tasks.keys()].sort()[0] || "";
  const page = await get(`/api/tasks?limit=${PAGE}&before=${encodeURIComponent(oldest)}`);
  for (const task of page.tasks) known.tasks.set(task.id, task);
  known.moreTasks = page.more;
  touch("tasks");
}

/** Have one task among the known ones. Throws ApiError where there is none. */
export async function needTask(id) {
  if (known.tasks.has(id)) return;
  known.tasks.set(id, await get(`/api/tasks/${encodeURIComponent(id)}`));
  touch("tasks");
}

/** Take one event of the stream. */
export function take(kind, data) {
  if (kind === "task") {
    known.tasks.set(data.id, data);
    prune();
    touch("tasks");
  } else if (kind === "question") {
    keep(data);
    touch("questions");
  } else if (kind === "connection") {
    tally(data);
    if (connections.take(data)) touch("connections");
  } else if (kind === "open") {
    if (open.take(data)) touch("connections");
  } else if (kind === "rule") {
    const others = known.rules.filter((rule) => rule.id !== data.id);
    known.rules = data.forgotten ? others : [...others, data];
    touch("rules");
  } else if (kind === "settings") {
    known.settings = data;
    touch("settings");
  }
}

function keep(question) {
  known.questions.set(question.id, question);
  if (isOpen(question)) return;
  question.settled = true;
  setTimeout(() => {
    if (known.questions.get(question.id) !== question) return;
    known.questions.delete(question.id);
    touch("questions");
  }, LIVES);
}

let recount = 0;

/** Count a connection at its task at once. What was read already may be counted twice, so the counts are read again. */
function tally(data) {
  const task = known.tasks.get(data.task);
  if (!task) return;
  const count = data.left_out || data.count || 1;
  task.connections += count;
  if (isRefusal(data)) task.refused += count;
  touch("tasks");
  recount ||= setTimeout(async () => {
    const page = await get(`/api/tasks?living=true&limit=${PAGE}`).catch(() => ({ tasks: [] }));
    recount = 0;
    for (const one of page.tasks) known.tasks.set(one.id, one);
    touch("tasks");
  }, RECOUNT);
}

function prune() {
  if (known.tasks.size <= MOST_TASKS) return;
  const gone = [...known.tasks.values()].filter((task) => task.state === "ended").sort((a, b) => a.created_at - b.created_at);
  for (const task of gone.slice(0, known.tasks.size - MOST_TASKS)) known.tasks.delete(task.id);
  known.moreTasks = true;
}

const isOpen = (question) => question.state === "open" || question.state === "saving";

/** Questions that wait, and those that were settled a moment ago, oldest first: a new one moves none that is there. */
export const questions = () => [...known.questions.values()].sort((a, b) => a.id - b.id);

/** Questions that wait. */
export const waiting = () => questions().filter(isOpen);

/** All tasks: those with questions first, then living ones, then the newest. */
export function tasksInOrder() {
  const asking = new Set(waiting().map((question) => question.task));
  const rank = (task) => (asking.has(task.id) ? 0 : task.state === "living" ? 1 : 2);
  return [...known.tasks.values()].sort((a, b) => rank(a) - rank(b) || b.created_at - a.created_at);
}

export const isOwner = () => known.role === "owner";
