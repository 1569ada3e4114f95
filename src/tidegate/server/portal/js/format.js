/** Numbers, times and names as people read them. */

const UNITS = ["B", "KB", "MB", "GB", "TB"];

/** 1536 -> "1.5 KB". */
export function bytes(count) {
  let value = count || 0;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}

/** Seconds -> "4:05", "1:02:03". */
export function countdown(seconds) {
  const left = Math.max(0, Math.ceil(seconds));
  const [hours, minutes, rest] = [Math.floor(left / 3600), Math.floor(left / 60) % 60, left % 60];
  const tail = `${String(minutes).padStart(hours ? 2 : 1, "0")}:${String(rest).padStart(2, "0")}`;
  return hours ? `${hours}:${tail}` : tail;
}

/** Seconds -> "2 hours", "15 minutes", "90 seconds". */
export function span(seconds) {
  if (seconds >= 3600 && seconds % 3600 === 0) return many(seconds / 3600, "hour");
  if (seconds >= 60 && seconds % 60 === 0) return many(seconds / 60, "minute");
  return many(seconds, "second");
}

/** Unix seconds -> "just now", "4 minutes ago", or the day. */
export function ago(at, now = Date.now() / 1000) {
  const seconds = now - at;
  if (seconds < 45) return "just now";
  if (seconds < 5400) return `${many(Math.max(1, Math.round(seconds / 60)), "minute")} ago`;
  if (seconds < 86400) return `${many(Math.round(seconds / 3600), "hour")} ago`;
  return new Date(at * 1000).toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric" });
}

const date = (at) => new Date(typeof at === "number" ? at * 1000 : at);
const timeOfDay = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** Unix seconds, or ISO text -> the time of day on this person's clock. */
export const clock = (at) => timeOfDay.format(date(at));

/** The same with its day. */
export const moment = (at) => date(at).toLocaleString();

/** 1, "host" -> "1 host"; 2000, "host" -> "2,000 hosts". */
export const many = (count, noun) => `${count.toLocaleString()} ${noun}${count === 1 ? "" : "s"}`;

/** Host and port as one, an IPv6 address in brackets. */
export function place(host, port) {
  const shown = host.includes(":") ? `[${host}]` : host;
  return port ? `${shown}:${port}` : shown;
}

/**
 * Whether the gate kept a connection from its host; the same as `is_refusal` in journal/summary.py. It did not where the
 * client went away, or its task ended, before an allowed connection was made, nor where it went away while a person was
 * asked.
 */
export function isRefusal({ how, verdict, reason }) {
  if (how !== "refused") return false;
  const gone = reason === "client-gone";
  return !(verdict === "allow" && (gone || reason === "stopping")) && !(verdict === "ask" && gone);
}

/** What a task is called: its name, or the command it began with (its program without the folder), or its id. */
export function titleOf(task) {
  if (task.name) return task.name;
  const [program = "", ...rest] = task.command || [];
  return [program.split("/").pop(), ...rest].join(" ").replace(/\s+/g, " ").trim() || task.id;
}
