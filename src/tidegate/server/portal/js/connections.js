/** The connections of the one task that is looked at: read from its record, then kept by the events. */

import { get } from "./api.js";
import { hasEnded, look } from "./open.js";

const PAGE = 1000;
const KEPT = 20000;
const OVERLAP = 3000; // milliseconds in which the stream may bring what was read already

export const watched = {
  id: "",
  lines: [], // newest last
  version: 0, // another one: what is in `lines` is not what was there and more behind it
  leftOut: 0, // what went by too fast for the stream since
  before: null, // where to read on; null at the beginning of the record
};
let read = new Set();

let told = () => {};

/** Keep those of this task from now on, and what it has open; '' for none. `changed` hears of what was read. */
export async function watch(id, changed = () => {}) {
  told = changed;
  Object.assign(watched, { id, lines: [], version: watched.version + 1, leftOut: 0, before: null });
  read = new Set();
  await Promise.all([look(id, told), id ? page() : null]);
}

/** Read those of the same task anew. */
export const readAgain = () => watch(watched.id, told);

/** Read a thousand older ones. Whether there were any. */
export async function older() {
  if (watched.before === null || watched.lines.length >= KEPT) return false;
  return page(watched.before);
}

async function page(before = 0) {
  const id = watched.id;
  const query = `limit=${PAGE}${before ? `&before=${before}` : ""}`;
  const answer = await get(`/api/tasks/${encodeURIComponent(id)}/connections?${query}`);
  if (watched.id !== id || (before && watched.before !== before)) return false;
  let later = watched.lines;
  if (!before) {
    // The stream and the record overlap here: what came in by the stream while this was read, or is about to.
    read = new Set(answer.connections.map((line) => JSON.stringify(line)));
    later = later.filter(isNew);
    setTimeout(() => read.clear(), OVERLAP);
  }
  watched.lines = [...answer.connections.reverse(), ...later];
  watched.version += 1;
  watched.before = answer.before;
  return true;
}

const isNew = (line) => read.size === 0 || !read.delete(JSON.stringify(line));

/** Take one event of the stream; whether it is of the task that is looked at. `seen` is what it was while open. */
export function take({ seen, ...data }) {
  if (seen) hasEnded(seen);
  if (data.task !== watched.id) return false;
  if (data.left_out) watched.leftOut += data.left_out;
  else if (isNew(data)) watched.lines.push(data);
  if (watched.lines.length > KEPT * 1.1) {
    watched.lines = watched.lines.slice(-KEPT);
    watched.version += 1;
  }
  return true;
}
