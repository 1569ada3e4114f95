/** Where the log is sent, and how far each sink has come; looked at again while the page is open. */

import { get } from "./api.js";
import { fill, h, say } from "./dom.js";
import { ago, many, moment } from "./format.js";

const AGAIN = 5000; // milliseconds between two looks
const PILLS = { failing: "pill red", behind: "pill amber", "up to date": "pill" };

/** Make that part of the settings: `nodes` to show, and `end` once they are gone. */
export function sinks() {
  const list = h("ul", { class: "rules sinks" });
  const none = h("p", { class: "meta" });
  let timer = 0;
  let ended = false;

  async function read() {
    const answer = await get("/api/sinks").catch(() => null); // the line at the top says what is wrong
    if (ended) return;
    timer = setTimeout(read, AGAIN);
    if (!answer) return;
    fill(list, answer.sinks.map(row));
    say(none, answer.sinks.length ? "" : "The log is sent nowhere: tidegate sinks set NAME URL does it.");
    none.hidden = answer.sinks.length > 0;
  }

  read();
  const end = () => {
    ended = true;
    clearTimeout(timer);
  };
  return { nodes: [list, none], end };
}

function row(one) {
  const facts = [
    `${one.kind} at ${one.host}${one.proxy && ` through ${one.proxy}`}`,
    one.types.length > 0 && `only ${one.types.join(", ")}`,
    one.min !== "info" && `${one.min} and worse`,
    one.sent_at ? `${many(one.sent, "line")} sent, last ` : `${many(one.sent, "line")} sent`,
  ].filter(Boolean).join(" · ");
  const troubles = [
    one.error && `${one.error}${one.failing_since ? `, since ${moment(one.failing_since)}` : ""}`,
    one.set_aside > 0 && `it refused ${many(one.set_aside, "line")}, which were set aside`,
    one.lost > 0 && `${many(one.lost, "line")} ${one.lost === 1 ? "was" : "were"} gone before they were sent`,
  ].filter(Boolean).join(" · ");
  return h("li", {}, h("span", { class: "where" }, one.name),
    h("span", { class: "meta" }, facts, one.sent_at && h("time", { title: moment(one.sent_at) }, ago(one.sent_at)),
      troubles && h("span", { class: "trouble red" }, troubles)),
    h("span", { class: PILLS[one.state] }, [one.state !== "behind" && one.state, one.lag > 0 && `${many(one.lag, "line")} behind`].filter(Boolean).join(", ")));
}
