/**
 * The cards of some questions, oldest first, and which of them the keys answer.
 *
 * Nobody must answer what they have not seen. A new card goes below those that are there; the one in front stays in
 * front until it is settled or a person goes to another; and for a moment after the cards have moved, or another has
 * come to the front by itself, neither a key nor a button answers.
 */

import { card } from "./cards.js";
import { keyed } from "./dom.js";
import { questions } from "./store.js";

const SEEN = 400; // milliseconds
const TICK = 200;

/** Make a deck of the questions that `picks` picks, in this node. `ready()` is the question that the keys answer. */
export function deck(node, picks = () => true) {
  const shown = new Map();
  let moved = 0;
  let front = null;
  let since = 0;
  const steady = () => performance.now() - moved > SEEN;

  function draw() {
    const found = questions().filter(picks);
    const focused = node.contains(document.activeElement) ? document.activeElement.closest(".card") : null;
    if (keyed(node, shown, found, (question) => question.id, (question) => card(question, steady))) moved = performance.now();
    if (focused && (!focused.isConnected || focused.dataset.state !== "open")) (open()[0]?.node || document.querySelector("h1"))?.focus();
    mark();
    return found.length;
  }

  const open = () => [...shown.values()].filter((entry) => entry.node.dataset.state === "open");

  function mark() {
    const chosen = document.activeElement?.closest?.(".card");
    const entries = open();
    const wanted = entries.find((entry) => entry.node === chosen) || entries.find((entry) => entry === front) || entries[0] || null;
    if (wanted !== front) {
      front?.front(false);
      front = wanted;
      since = performance.now();
    }
    front?.front(isReady());
  }

  const isReady = () => front !== null && steady() && performance.now() - since > SEEN;

  const clockwork = setInterval(() => {
    for (const entry of shown.values()) entry.tick();
    mark();
  }, TICK);
  node.addEventListener("focusin", mark);

  return {
    draw,
    ready: () => (isReady() ? questions().find((question) => String(question.id) === front.node.dataset.question) : null),
    end: () => clearInterval(clockwork),
  };
}
