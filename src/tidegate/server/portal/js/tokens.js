/** Who may come in: tokens with their last use, a new one, and pairing a phone. For owners. */

import { get, post, remove, tokenId } from "./api.js";
import { fill, h } from "./dom.js";
import { ago, moment } from "./format.js";
import { attempt, sure } from "./voice.js";

/** Make that part of the settings. */
export function tokens() {
  const list = h("ul", { class: "rules" });
  const name = h("input", { type: "text", placeholder: "what for", maxlength: 80, "aria-label": "Name of the new token", autocomplete: "off" });
  const role = h("select", { "aria-label": "Role of the new token" }, h("option", { value: "viewer" }, "viewer"), h("option", { value: "owner" }, "owner"));
  const make = h("button", { type: "button", onclick: (event) => attempt(create, event.currentTarget) }, "Make a token");
  const phone = h("button", { type: "button", onclick: (event) => attempt(pair, event.currentTarget) }, "Pair a phone");
  const shown = h("div", { class: "shown", role: "status" });

  async function read() {
    const answer = await get("/api/tokens");
    fill(list, answer.tokens.map(row));
  }

  function row(token) {
    const own = token.id === tokenId();
    const revoke = async () => {
      if (own && !(await sure("This is the token of this very page. Revoke it?", "Revoke it"))) return;
      await remove(`/api/tokens/${token.id}`);
      fill(shown);
      await read();
    };
    return h("li", {}, h("span", { class: "where" }, token.name),
      h("span", { class: "meta" }, `${token.role} · made `, h("time", { title: moment(token.created_at) }, ago(token.created_at)),
        token.last_used_at ? ` · used ${ago(token.last_used_at)}` : " · never used", own && h("span", { class: "pill" }, "this page")),
      h("button", { type: "button", "aria-label": `Revoke ${token.name}`, onclick: (event) => attempt(revoke, event.currentTarget) }, "Revoke"));
  }

  async function create() {
    const wanted = name.value.trim();
    if (!wanted) {
      name.focus();
      return;
    }
    const answer = await post("/api/tokens", { name: wanted, role: role.value });
    name.value = "";
    fill(shown, h("p", {}, `The token ${answer.token.name}. It is shown this once:`), h("code", { class: "secret" }, answer.secret));
    await read();
  }

  async function pair() {
    const answer = await post("/api/pair", {});
    const picture = h("img", { src: `data:image/svg+xml,${encodeURIComponent(answer.svg)}`, alt: "QR code for the phone", width: 240, height: 240 });
    fill(shown, picture, h("p", {}, "Scan it within five minutes. The phone warns of the certificate, which is this server's own. Its SHA-256 fingerprint has to read:"),
      h("code", { class: "secret" }, answer.fingerprint));
  }

  attempt(read);
  return [list, h("div", { class: "buttons" }, name, role, make), h("div", { class: "buttons" }, phone), shown];
}
