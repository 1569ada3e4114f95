/** The stream of events, for as long as the page lives. It comes back by itself and goes on after the last event. */

import { ApiError, credentials, doubt, prove } from "./api.js";
import { StrangerError } from "./proof.js";

const RETRY = 1000; // milliseconds; doubled with each try, up to LONGEST
const LONGEST = 5000;
const SILENT = 25000; // the server says something every ten seconds; after that the line is dead

/**
 * Follow the events. `on.event(kind, data)` gets each; `await on.fresh()` reads everything anew, first of all and where
 * events were missed; `on.state("live" | "lost" | "stranger" | "denied", why)` says how the line is. Returns once it is
 * denied. Whoever answers has to prove who it is each time before it is sent anything (proof.js).
 */
export async function follow(on) {
  let last = "";
  let wait = RETRY;
  for (;;) {
    const line = new AbortController();
    let [now, why] = ["lost", ""];
    try {
      await prove();
      const headers = { Accept: "text/event-stream", ...credentials(), ...(last && { "Last-Event-ID": last }) };
      const answer = await fetch("/api/events", { headers, signal: line.signal, cache: "no-store", redirect: "error" });
      if (!answer.ok) throw new ApiError(answer.status, (await answer.json().catch(() => null))?.error);
      for await (const { id, kind, data } of frames(answer.body, line)) {
        if (kind === "hello" || kind === "reset") await on.fresh();
        else on.event(kind, data);
        if (id) last = id;
        wait = RETRY;
        on.state("live", "");
      }
    } catch (error) {
      if (error instanceof StrangerError) now = "stranger";
      if (error instanceof ApiError) why = error.message;
      if (error.status === 401) {
        on.state("denied", why);
        return;
      }
    }
    line.abort();
    doubt();
    on.state(now, why);
    await pause(wait);
    wait = Math.min(wait * 2, LONGEST);
  }
}

/** Wait, but no longer than until somebody looks at the page again. */
function pause(milliseconds) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    document.addEventListener("visibilitychange", done);
  });
}

/** Server-sent events out of a stream of bytes (HTML Living Standard, section 9.2; the server sends `\n` only). */
async function* frames(body, line) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const silent = setTimeout(() => line.abort(), SILENT);
    const { value, done } = await reader.read().finally(() => clearTimeout(silent));
    if (done) return;
    const parts = (held + value).split("\n\n");
    held = parts.pop();
    for (const part of parts) {
      const fields = {};
      for (const row of part.split("\n")) {
        const at = row.indexOf(":");
        fields[row.slice(0, at)] = row.slice(at + 1).trim();
      }
      if (fields.data) yield { id: fields.id, kind: fields.event, data: JSON.parse(fields.data) };
    }
  }
}
