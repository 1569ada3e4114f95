/** Asking the server: JSON over HTTP, with the token of this page. */

const TOKEN = "tidegate-token";
const ID = "tidegate-token-id";

/**
 * Where the token is kept. On loopback only as long as the tab: whoever listens on this port later must find nothing.
 * A phone's door proves who it is by its certificate, so there it is kept until it is revoked or too old.
 */
const kept = location.protocol === "https:" ? localStorage : sessionStorage;
let token = kept.getItem(TOKEN) || "";

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
export const tokenId = () => Number(kept.getItem(ID) || 0);

/** The header that says who asks. */
export const credentials = () => (token ? { Authorization: `Bearer ${token}` } : {});

/** Change the one-time code of the address bar into a token, and take it out of the address bar. */
export async function takeCode() {
  const found = /^#code=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  history.replaceState(null, "", "#/");
  const session = await post("/api/session", { code: found[1] });
  token = session.token;
  kept.setItem(TOKEN, token);
  kept.setItem(ID, String(session.id));
}

/** Forget the token of this page. */
export function forgetToken() {
  token = "";
  kept.removeItem(TOKEN);
  kept.removeItem(ID);
}

/** Ask, and return what the answer says. Throws ApiError, or TypeError where nobody answers. */
async function ask(method, path, body) {
  const headers = { Accept: "application/json", ...credentials() };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, {
    method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store",
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
