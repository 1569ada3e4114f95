/** How many wait, where it is seen without looking at the page: title, icon, navigation, the system's notifications. */

import { say } from "./dom.js";
import { many, place } from "./format.js";

/** Count what waits in the title, in the icon and in the navigation. */
export function count(waiting, page) {
  document.title = `${waiting ? `(${waiting}) ` : ""}${page} · Tidegate`;
  const badge = document.getElementById("nav-count");
  badge.hidden = waiting === 0;
  say(badge, waiting ? String(waiting) : "");
  badge.title = `${many(waiting, "question")} waiting`;
  const icon = document.getElementById("icon");
  const wanted = waiting ? picture(waiting) : "icon.svg";
  if (icon.getAttribute("href") !== wanted) icon.setAttribute("href", wanted);
}

function picture(waiting) {
  const text = waiting > 9 ? "9+" : String(waiting);
  const svg =
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#b45309"/>` +
    `<text x="16" y="23" font-family="sans-serif" font-size="19" font-weight="700" fill="#fff" text-anchor="middle">` +
    `${text}</text></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

/** Tell of a new question: to a screen reader always, by the system where the page is not in front. */
export function announce(question, title, onOpen) {
  const what = `${title} asks for ${place(question.host, question.port)}`;
  say(document.getElementById("voice"), what);
  if (document.hasFocus() && !document.hidden) return;
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  const told = new Notification("Tidegate: a task waits for you", { body: what, tag: `question-${question.id}` });
  told.onclick = () => {
    window.focus();
    onOpen();
    told.close();
  };
}
