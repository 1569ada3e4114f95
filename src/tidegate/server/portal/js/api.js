/** Asking the server: JSON over HTTP, with the token of this page, and only once the server has proven itself. */

import { able, draw, holds, StrangerError } from "./proof.js";

const TOKEN = "tidegate-token";
const ID = "tidegate-token-id";

/**
 * Where the token is kept. On loopback only as long as the tab, and not while the server is away: whoever listens on
 * this port by then must find nothing, where this page is loaded again. A phone's door proves who it is by its
 * certificate, so there it is kept until it is revoked or too old.
 */
const certain = location.protocol === "https:";
const kept = certain ? localStorage : sessionStorage;
let token = kept.getItem(TOKEN) || "";
let id = Number(kept.getItem(ID) || 0);
let proven = null; // the promise of a proof, as long as there is no reason to doubt it

/** What went wrong, in the server's own words: `message` says what, `fix` what to do. */
export class ApiError extends Error {
  constructor(status, error) {
    super(error?.what || `the server answered ${status}`);
    this.status = status;
    this.fix = error?.fix || "";
  }
}

/** Whether there is a token at all. */
export const signedIn = () => token !== "";

/** The number of this page's token; 0 where it is not known. */
export const tokenId = () => id;

/** The header that says who asks. */
export const credentials = () => (token ? { Authorization: `Bearer ${token}` } : {});

/** Change the one-time code of the address bar into a token, and take it out of the address bar. */
export async function takeCode() {
  const found = /^#code=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  history.replaceState(null, "", "#/");
  const session = await send("POST", "/api/session", { code: found[1] }, {});
  ({ token, id } = session);
  keepToken();
}

function keepToken() {
  kept.setItem(TOKEN, token);
  kept.setItem(ID, String(id));
}

/** Forget the token of this page. */
export function forgetToken() {
  token = "";
  id = 0;
  doubt();
  kept.removeItem(TOKEN);
  kept.removeItem(ID);
}

const LEAVING = 3000; // milliseconds in which a line that ends is taken for one that ends with this page
let leaving = -LEAVING;
addEventListener("beforeunload", () => { leaving = performance.now(); });

/** The line to the server is gone: whoever answers next has to prove anew that it is the same. */
export function doubt() {
  proven = null;
  if (certain || performance.now() - leaving < LEAVING) return; // a page that stays comes here again
  kept.removeItem(TOKEN);
  kept.removeItem(ID);
}

/**
 * Have whoever answers prove that it is the server of this page's token, without sending it. Throws StrangerError where
 * it cannot, ApiError 401 where it does not know the token any more, TypeError where nobody answers.
 */
export async function prove() {
  proven ||= askForProof();
  try {
    await proven;
  } catch (error) {
    proven = null;
    throw error;
  }
}

async function askForProof() {
  if (certain && !able()) return; // its certificate has to do
  const number = able() ? draw() : "";
  let answer = null;
  try {
    if (number) answer = await send("POST", "/api/proof", { token: id, number }, {});
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 401 || error.status === 503) throw error;
  }
  if (!token || !answer || !(await holds(token, number, String(answer.proof)))) throw new StrangerError();
  keepToken();
}

/** Ask, and return what the answer says. Throws ApiError, or TypeError where nobody answers; and as `prove`. */
async function ask(method, path, body) {
  if (token) await prove();
  return send(method, path, body, credentials());
}

async function send(method, path, body, more) {
  const headers = { Accept: "application/json", ...more };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, {
    method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store", redirect: "error",
  });
  const text = await answer.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    throw new ApiError(answer.status, { what: "the answer is not JSON: is this tidegate?" });
  }
  if (!answer.ok) throw new ApiError(answer.status, value?.error);
  return value;
}

export const get = (path) => ask("GET", path);
export const post = (path, body = {}) => ask("POST", path, body);
export const patch = (path, body) => ask("PATCH", path, body);
export const remove = (path) => ask("DELETE", path);
