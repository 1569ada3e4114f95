/** Building and updating the page. Text is only ever set as text: nothing from a task becomes markup. */

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "selected", "open"]);
const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an element. `props` are attributes; `on…` are listeners; `dataset` and PROPERTIES are set as such; what is
 * null, undefined or false is left out. Children are nodes and texts, in lists or not.
 */
export const h = (tag, props = {}, ...children) => build(document.createElement(tag), props, children);

/** Make an SVG element. */
export const svg = (tag, props = {}, ...children) => build(document.createElementNS(SVG, tag), props, children);

function build(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(node.dataset, value);
    else if (PROPERTIES.has(name)) node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Put these children in place of all others. */
export function fill(node, ...children) {
  node.replaceChildren();
  append(node, children);
  return node;
}

/** Set a text only where it differs, so that a screen reader is not told the same again. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Bring the children of `node` in line with `items`, moving and keeping what is there: focus and scroll stay.
 * `make(item)` returns `{node, update(item)}`. Whether something that was there has moved.
 */
export function keyed(node, known, items, keyOf, make) {
  const wanted = new Set(items.map(keyOf));
  let moved = false;
  for (const [key, entry] of known) {
    if (wanted.has(key)) continue;
    moved ||= entry.node.nextSibling !== null;
    entry.node.remove();
    known.delete(key);
  }
  let before = node.firstChild;
  for (const item of items) {
    const key = keyOf(item);
    let entry = known.get(key);
    if (entry === undefined) {
      entry = make(item);
      known.set(key, entry);
    } else {
      entry.update(item);
    }
    if (entry.node === before) {
      before = before.nextSibling;
    } else {
      moved ||= before !== null;
      node.insertBefore(entry.node, before);
    }
  }
  return moved;
}
