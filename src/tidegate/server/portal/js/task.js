/** One task as it lives: its questions, what its operator may do, and its connections as they happen. */

import { post } from "./api.js";
import { watch } from "./connections.js";
import { deck } from "./deck.js";
import { fill, h, say } from "./dom.js";
import { waits } from "./fields.js";
import { ago, many, moment, titleOf } from "./format.js";
import { panel } from "./panel.js";
import { reach } from "./reach.js";
import { isOwner, known, listen, needTask, touch } from "./store.js";
import { hasNoGate, stateOf } from "./tasks.js";
import { attempt, note, sure } from "./voice.js";

/** Draw the page of one task. */
export function task(main, id) {
  const title = h("h1", { tabindex: -1, class: "command" });
  const state = h("span", { class: "pill" });
  const about = h("dl", { class: "about" });
  const alarm = h("ul", { class: "warnings" });
  const cards = h("div", { class: "cards" });
  const controls = h("div", { class: "controls" });
  const missing = h("div", { class: "empty", hidden: true });
  const view = panel(id);
  const chart = reach(`/api/tasks/${encodeURIComponent(id)}/hosts`, "What it reached");
  const all = h("div", { class: "page" }, h("div", { class: "bar" }, title, state), about, alarm, cards, controls, view.node, chart.node);
  fill(main, h("p", { class: "back" }, h("a", { href: "#/tasks" }, "‹ Tasks")), all, missing);
  const pile = deck(cards, (question) => question.task === id);
  const host = h("input", {
    type: "text", placeholder: "host or host:port", "aria-label": "A host, for this task", autocapitalize: "off", autocomplete: "off", spellcheck: "false",
  });
  let offered = "";

  function draw() {
    const one = known.tasks.get(id);
    all.hidden = one === undefined;
    if (!one) return;
    say(title, titleOf(one));
    title.title = one.command.join(" ");
    state.dataset.state = stateOf(one);
    say(state, one.state === "living" && !one.paused ? one.phase : stateOf(one));
    fill(about, facts(one).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
    const alarms = [...one.warnings];
    if (hasNoGate(one)) alarms.unshift("No gate and no policy: it reaches whatever this machine reaches, and nothing of that is on record.");
    fill(alarm, alarms.map((text, at) => h("li", { class: at === 0 && hasNoGate(one) ? "alarm" : "" }, text)));
    pile.draw();
    const wanted = `${one.state} ${one.paused} ${one.phase} ${one.wait_seconds} ${isOwner()}`;
    if (offered === wanted) return;
    offered = wanted;
    const writing = document.activeElement === host; // what a person is writing stays
    fill(controls, one.state === "living" && isOwner() ? actions(one, host) : []);
    if (writing) host.focus();
  }

  draw();
  attempt(async () => {
    try {
      await needTask(id);
    } catch (error) {
      fill(missing, h("h1", { tabindex: -1 }, "No such task"), h("p", {}, error.message));
      missing.hidden = false;
      return;
    }
    await watch(id, () => touch("connections"));
    touch("connections");
  });
  const stop = listen((changed) => {
    if (changed.has("tasks") || changed.has("questions")) draw();
    if (!changed.has("connections")) return;
    view.draw();
    chart.draw();
  });
  const end = () => {
    stop();
    pile.end();
    view.end();
    chart.end();
    watch("");
  };
  return { end, ready: pile.ready };
}

function facts(one) {
  const running = one.execs.length ? many(one.execs.length, "command") : one.state === "living" ? "nothing now" : "";
  return [
    ["Id", h("code", {}, one.id)],
    ["Folder", h("span", { class: "path" }, one.folder)],
    ["Began", h("time", { title: moment(one.created_at) }, ago(one.created_at))],
    one.ended_at && ["Ended", [h("time", { title: moment(one.ended_at) }, ago(one.ended_at)), one.outcome && ` (${one.outcome})`]],
    running && ["Runs", running],
    ["Hold", one.hold || "each command its own"],
    one.by && ["By", one.by],
    one.tools.length && ["Tools", one.tools.join(", ")],
    one.secrets.length && ["Secrets", one.secrets.map((each) => `${each.name} for ${each.hosts.join(", ")}`).join("; ")],
    one.connections && ["Connections", one.connections.toLocaleString()],
    one.refused && ["Refused", h("span", { class: "red" }, one.refused.toLocaleString())],
  ].filter(Boolean);
}

/** What the operator may do with a living task. */
function actions(one, host) {
  const at = `/api/tasks/${encodeURIComponent(one.id)}`;
  const button = (text, act, kind = "") =>
    h("button", { type: "button", class: kind, onclick: (event) => attempt(act, event.currentTarget) }, text);
  const other = one.phase === "install" ? "runtime" : "install";
  const rule = (verdict) => async () => {
    const wanted = host.value.trim();
    if (!wanted) {
      host.focus();
      return;
    }
    await post(`${at}/hosts`, { [verdict]: [wanted] });
    note(`${wanted}: ${verdict === "allow" ? "let through" : "refused"} for this task from now on`);
    host.value = "";
  };
  const longer = async () => {
    await post(`${at}/wait`, { wait_seconds: Number(wait.value) });
    note("Questions of this task wait so long from now on; those that are open keep their time");
  };
  const again = async () => {
    if (!(await attempt(longer, wait))) wait.value = String(one.wait_seconds);
  };
  const wait = h("select", { onchange: again }, waits(one.wait_seconds));
  return [
    h("div", { class: "buttons" },
      button(one.paused ? "Go on" : "Pause", async () => {
        await post(`${at}/pause`, { paused: !one.paused });
        note(one.paused ? "New connections pass again" : "New connections are refused; those that are open stay");
      }),
      button("Cut all", async () => note(`${many((await post(`${at}/cut`)).cut, "connection")} closed`)),
      button(`To phase ${other}`, async () => {
        await post(`${at}/phase`, { phase: other });
        note(`The task is in the phase ${other}`);
      }),
      button("End", async () => {
        if (await sure("End this task and everything it runs?", "End it")) await post(`${at}/end`);
      }, "bad")),
    h("div", { class: "hosts" }, host, button("Allow", rule("allow")), button("Deny", rule("deny"), "bad")),
    h("label", { class: "wait" }, "Its questions wait", wait),
  ];
}
