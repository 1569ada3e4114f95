/** What the task that is looked at has open now: read now and then, and in between kept by the events. */

import { get } from "./api.js";

const AGAIN = 10000; // milliseconds; the server tells of changes for fifteen seconds from each reading

export const opened = { lines: [], more: 0 }; // the newest first; each line stays the same object while it is open
let id = "";
let known = new Map();
let begun = new Set(); // since the last reading was asked for: its answer may not have these yet
let ended = new Set(); // likewise: its answer may have these still
let timer = 0;
let changed = () => {};

/** Look at this task from now on; '' for none. `told` is called when a reading has brought something. */
export async function look(task, told = () => {}) {
  id = task;
  changed = told;
  known = new Map();
  opened.more = 0;
  order();
  clearInterval(timer);
  if (!id) return;
  timer = setInterval(() => document.hidden || read(), AGAIN);
  await read();
}

async function read() {
  const task = id;
  begun = new Set();
  ended = new Set();
  const answer = await get(`/api/tasks/${encodeURIComponent(task)}/open`).catch(() => null);
  if (id !== task || !answer) return;
  const now = new Set(answer.open.map((one) => one.id));
  for (const number of [...known.keys()]) if (!now.has(number) && !begun.has(number)) known.delete(number);
  for (const one of answer.open) if (!ended.has(one.id)) keep(one);
  opened.more = answer.more;
  order();
  changed();
}

document.addEventListener("visibilitychange", () => {
  if (id && !document.hidden) read();
});

function keep(one) {
  const line = known.get(one.id) || { open: true };
  known.set(one.id, Object.assign(line, one, { at: one.since }));
}

function order() {
  opened.lines = [...known.values()].sort((a, b) => b.id - a.id);
}

/** Take one event of the stream; whether it is of the task that is looked at. */
export function take(data) {
  if (data.task !== id) return false;
  for (const one of data.opened) {
    begun.add(one.id);
    keep(one);
  }
  for (const [number, up, down] of data.moved) {
    const line = known.get(number);
    if (line) Object.assign(line, { bytes_up: up, bytes_down: down });
  }
  for (const number of data.ended) hasEnded(number);
  opened.more = data.more;
  if (data.opened.length) order();
  return true;
}

/** One has ended, as its number or its line says. */
export function hasEnded(number) {
  ended.add(number);
  if (known.delete(number)) order();
}

/** Whether this line is of a connection that is still open. */
export const isOpen = (line) => known.get(line.id) === line;
