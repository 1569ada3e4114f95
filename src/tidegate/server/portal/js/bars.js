/** Bars over the last five minutes: bytes moved, and refusals in red below them. */

import { fill, h, say, svg } from "./dom.js";
import { bytes, isRefusal, many } from "./format.js";

const COUNT = 60;
const SECONDS = 5; // of one bar
const MIDDLE = 48; // bytes stand on this line, refusals hang below it
const BELOW = 16;

/** Make the chart; `draw(lines)` shows them, newest last. */
export function bars() {
  const picture = svg("svg", { viewBox: `0 0 ${COUNT * 10} ${MIDDLE + BELOW}`, preserveAspectRatio: "none", class: "bars", role: "img" });
  const make = (kind) => Array.from({ length: COUNT }, (_, at) => svg("rect", { x: at * 10 + 1.5, width: 7, class: kind }));
  const [moved, refused] = [make("moved"), make("refused")];
  fill(picture, svg("line", { x1: 0, x2: COUNT * 10, y1: MIDDLE, y2: MIDDLE, class: "axis" }), moved, refused);
  const caption = h("figcaption", {});
  const node = h("figure", { class: "chart" }, picture,
    h("div", { class: "scale", "aria-hidden": "true" }, h("span", {}, "5 minutes ago"), h("span", {}, "now")), caption);

  function draw(lines) {
    const now = Math.floor(Date.now() / 1000 / SECONDS);
    const size = new Array(COUNT).fill(0);
    const cut = new Array(COUNT).fill(0);
    for (let at = lines.length - 1; at >= 0; at -= 1) {
      const line = lines[at];
      const bar = COUNT - 1 - now + barOf(line);
      if (bar < 0) break; // lines are in the order in which they ended
      if (isRefusal(line)) cut[Math.min(bar, COUNT - 1)] += line.count || 1;
      else size[Math.min(bar, COUNT - 1)] += line.bytes_up + line.bytes_down;
    }
    const [most, worst] = [Math.max(...size, 1), Math.max(...cut, 1)];
    for (let at = 0; at < COUNT; at += 1) {
      // A little beside a lot is still seen: heights go by the square root.
      const up = size[at] && 3 + (MIDDLE - 5) * Math.sqrt(size[at] / most);
      tall(moved[at], MIDDLE - up, up);
      tall(refused[at], MIDDLE + 1, cut[at] && 3 + (BELOW - 5) * Math.sqrt(cut[at] / worst));
    }
    const total = (numbers) => numbers.reduce((sum, value) => sum + value, 0);
    const text = `Last five minutes: ${bytes(total(size))} moved, ${many(total(cut), "connection")} refused`;
    say(caption, text);
    picture.setAttribute("aria-label", text);
  }

  draw([]);
  return { node, draw };
}

const found = new WeakMap(); // parsing a time is slow, and each line is asked for again and again

/** The number of the bar in which a connection ended, counted from 1970. */
function barOf(line) {
  let bar = found.get(line);
  if (bar === undefined) {
    bar = Math.floor((Date.parse(line.at) / 1000 + line.duration) / SECONDS);
    found.set(line, bar);
  }
  return bar;
}

function tall(rect, top, height) {
  rect.setAttribute("y", String(top));
  rect.setAttribute("height", String(height));
}
