/**
 * Whether what answers is the server that gave this page its token. It is asked before the token is sent to it.
 *
 * The server keeps the token's SHA-256. Over a number that this page has just drawn, and the origin that the server
 * listens at, it makes an HMAC with that as its key: who does not know the token cannot, an older answer does not fit the
 * number, and one that was fetched from the server where it listens now does not fit this page's origin.
 */

const WHAT = "tidegate proof 1";
const bytes = (text) => new TextEncoder().encode(text);
const hidden = (buffer) => btoa(String.fromCharCode(...buffer)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const shown = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt(0));

/** Something else answers here, and was told nothing. */
export class StrangerError extends Error {
  constructor() {
    super("what answers on this page's port is not your Tidegate server");
  }
}

function origin() {
  const port = location.port || (location.protocol === "https:" ? "443" : "80");
  return `${location.protocol}//${location.hostname}:${port}`;
}

/** Whether this browser can check a proof. Without it only the door with a certificate is trusted. */
export const able = () => Boolean(globalThis.crypto?.subtle);

/** Return a new number for one proof. */
export const draw = () => hidden(crypto.getRandomValues(new Uint8Array(32)));

/** Whether this is the proof for that number, of who knows this token. */
export async function holds(token, number, proof) {
  try {
    const secret = await crypto.subtle.digest("SHA-256", bytes(token));
    const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    return await crypto.subtle.verify("HMAC", key, shown(proof), bytes(`${WHAT}\n${origin()}\n${number}`));
  } catch {
    return false; // what came is no proof at all
  }
}
