/** Settings: how long a question waits, what a task without a policy reaches, who may look, and how people are told. */

import { forgetToken, patch, remove, tokenId } from "./api.js";
import { fill, h, say } from "./dom.js";
import { field, waits } from "./fields.js";
import { sinks } from "./sinks.js";
import { isOwner, known, listen } from "./store.js";
import { setTheme, theme, THEMES } from "./theme.js";
import { tokens } from "./tokens.js";
import { attempt, note } from "./voice.js";

/** Draw the page. */
export function settings(main) {
  const wait = h("select", { onchange: () => save({ wait_seconds: Number(wait.value) }) });
  const network = h("select", { onchange: () => save({ network_default: network.value }) },
    h("option", { value: "none" }, "nothing"), h("option", { value: "allowlist" }, "the default hosts"));
  const hosts = h("textarea", { rows: 5, spellcheck: "false", autocapitalize: "off", placeholder: "api.example.com\n*.example.org:443" });
  const keep = h("button", { type: "button", onclick: (event) => save({ default_hosts: hosts.value.split(/\s+/).filter(Boolean) }, event.currentTarget) }, "Save the hosts");
  const notify = h("input", { type: "checkbox", onchange: () => save({ notify: notify.checked }) });
  const hook = h("input", { type: "url", spellcheck: "false", autocapitalize: "off", autocomplete: "off" });
  const key = h("input", { type: "password", autocomplete: "off", minlength: 16 });
  const post = h("button", { type: "button", onclick: (event) => saveHook(event.currentTarget) }, "Post questions there");
  const stop = h("button", { type: "button", onclick: (event) => save({ webhook: "" }, event.currentTarget) }, "Remove the webhook");
  const hooked = h("p", { class: "meta", role: "status" });
  const colours = h("select", { onchange: () => setTheme(colours.value) },
    THEMES.map((name) => h("option", { value: name, selected: name === theme() }, name)));
  const telling = h("p", { class: "meta" });
  const tell = h("button", { type: "button", onclick: async () => {
    await Notification.requestPermission();
    draw();
  } }, "Allow notifications");
  const out = h("button", { type: "button", onclick: (event) => attempt(signOut, event.currentTarget) }, "Sign out");
  const sent = sinks();
  const version = h("p", { class: "meta" });
  let read = null; // the hosts as they stood when the field was filled

  fill(main, h("h1", { tabindex: -1 }, "Settings"),
    h("p", { class: "lead", hidden: isOwner() }, "You are looking on: an owner changes these."),
    section("Questions", field("wait", "A question waits", wait, "Then it is refused. This is for tasks that begin from now on; a task may have its own.")),
    section("Tasks without a policy",
      field("network", "A task that is created without a policy reaches", network),
      field("hosts", "Default hosts", hosts, "One a line, as in a policy. A task that names hosts of its own has exactly those."), keep),
    section("Being told elsewhere",
      h("div", { class: "field" }, h("label", { class: "check" }, notify, "Show notifications on the server's desktop")),
      hooked,
      isOwner() && [
        field("hook", "Webhook", hook, "https://HOST/PATH of a receiver of yours. Each question is posted there, with one-time tokens that answer it."),
        field("hook-key", "Key that signs what is posted", key, "16 characters or more, the same as the receiver's. It is kept, and never shown again."),
        h("div", { class: "buttons" }, post, stop),
      ]),
    section("Where the log goes", sent.nodes),
    isOwner() && section("Who may come in", tokens()),
    section("This page", field("colours", "Colours", colours), telling, tell, h("div", { class: "buttons" }, out), version));

  async function save(changes, button) {
    if (await attempt(async () => { known.settings = await patch("/api/settings", changes); }, button)) {
      read = null;
      note("Saved");
    }
    draw();
  }

  /** The address and its key are written anew together: neither is ever shown. */
  async function saveHook(button) {
    const changes = { webhook: hook.value.trim() };
    if (key.value) changes.webhook_key = key.value;
    await save(changes, button);
    if (known.settings.webhook) hook.value = key.value = "";
  }

  function draw() {
    const now = known.settings;
    if (!now) return;
    fill(wait, waits(now.wait_seconds));
    network.value = now.network_default;
    if (read === null || hosts.value === read) hosts.value = read = now.default_hosts.join("\n"); // what is being written stays
    for (const control of [wait, network, hosts]) control.disabled = !isOwner();
    keep.hidden = !isOwner();
    const held = (name) => now.fixed.includes(name);
    notify.checked = now.notify && !held("notify");
    notify.disabled = !isOwner() || held("notify");
    for (const control of [hook, key, post]) control.disabled = held("webhook");
    stop.hidden = !now.webhook || held("webhook");
    say(hooked, held("webhook") ? "The command line of tidegate serve names a webhook; it cannot be changed here."
      : now.webhook ? `Questions are posted to ${now.webhook}` : "Questions are posted nowhere.");
    const may = "Notification" in window ? Notification.permission : "denied";
    tell.hidden = may !== "default";
    say(telling, {
      default: "The system can tell you of a question when this page is not in front.",
      granted: "The system tells you of a question when this page is not in front.",
      denied: "This browser does not let the page tell you of questions when it is not in front.",
    }[may]);
    say(version, `Tidegate ${known.version} · signed in as ${known.role}`);
  }

  draw();
  const deaf = listen((changed) => changed.has("settings") && draw());
  const end = () => {
    sent.end();
    deaf();
  };
  return { end };
}

/** End this page's token on the server too, where it may do that. */
async function signOut() {
  if (isOwner() && tokenId()) await remove(`/api/tokens/${tokenId()}`);
  forgetToken();
  location.reload();
}

const section = (title, ...children) => h("section", { class: "sheet" }, h("h2", {}, title), h("div", { class: "fields-of" }, children));
