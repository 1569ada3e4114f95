/**
 * A long list of rows of one height, of which only those in sight exist: 10,000 of them scroll as ten do.
 *
 * It is a listbox with one row chosen: arrows, Page Up, Page Down, Home and End choose, and so does a click. Who has
 * scrolled away from the top reads there, and new rows on top do not push that away.
 */

import { h } from "./dom.js";

const BEYOND = 8; // rows kept above and below what is in sight
let lists = 0;

/** Make a list. `height()` is a row's height in pixels, `make()` an empty row `{node, update(item)}`. */
export function virtual({ label, height, make, onChoose, onEnd }) {
  const rows = [];
  const name = `list-${(lists += 1)}`;
  let count = 0;
  let get = () => null;
  let chosen = null; // the item
  let at = -1; // where it is
  const space = h("div", { class: "space", role: "presentation" });
  const view = h("div", { class: "scroll", role: "listbox", "aria-label": label, tabindex: 0 }, space);

  function draw() {
    const size = height();
    space.style.height = `${count * size}px`;
    const first = Math.max(0, Math.floor(view.scrollTop / size) - BEYOND);
    const last = Math.min(count, Math.ceil((view.scrollTop + view.clientHeight) / size) + BEYOND);
    while (rows.length < last - first) rows.push(added());
    view.removeAttribute("aria-activedescendant");
    rows.forEach((row, number) => {
      const index = first + number;
      row.node.hidden = index >= last;
      if (row.node.hidden) return;
      const item = get(index);
      row.index = index;
      row.node.style.transform = `translateY(${index * size}px)`;
      row.node.setAttribute("aria-posinset", String(index + 1));
      row.node.setAttribute("aria-setsize", String(count));
      row.node.setAttribute("aria-selected", String(item === chosen));
      if (item === chosen) view.setAttribute("aria-activedescendant", row.node.id);
      row.update(item);
    });
  }

  function added() {
    const row = make();
    row.node.id = `${name}-${rows.length}`;
    row.node.setAttribute("role", "option");
    row.node.addEventListener("click", () => choose(row.index));
    space.append(row.node);
    return row;
  }

  function choose(index) {
    at = Math.min(count - 1, Math.max(0, index));
    chosen = count ? get(at) : null;
    const [size, top] = [height(), view.scrollTop];
    if (at * size < top) view.scrollTop = at * size;
    else if ((at + 1) * size > top + view.clientHeight) view.scrollTop = (at + 1) * size - view.clientHeight;
    draw();
    onChoose(chosen);
  }

  view.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(view.clientHeight / height()) - 1);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    choose(at + step);
  });

  let asked = false;
  view.addEventListener("scroll", () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
      if (view.scrollTop + view.clientHeight * 2 > view.scrollHeight) onEnd();
    });
  }, { passive: true });
  const sized = new ResizeObserver(draw);
  sized.observe(view);

  return {
    node: view,
    /** Show so many items; `item(index)` returns one, the one on top is 0. */
    show(next, item) {
      const size = height();
      const [before, top] = [get(Math.floor(view.scrollTop / size)), view.scrollTop];
      const grown = next - count;
      count = next;
      get = item;
      if (chosen !== null && at >= 0 && get(at) !== chosen) {
        at = get(at + grown) === chosen ? at + grown : at;
      }
      draw();
      if (top > size && grown > 0 && get(Math.floor(top / size) + grown) === before) view.scrollTop = top + grown * size;
    },
    end: () => sized.disconnect(),
  };
}
