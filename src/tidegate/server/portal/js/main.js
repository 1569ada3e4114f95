/** The portal's entry: signing in, the line to the server, and which page is shown. */

import { ApiError, forgetToken, signedIn, takeCode } from "./api.js";
import { announce, count } from "./badge.js";
import { taskTitle } from "./cards.js";
import { fill, h, say } from "./dom.js";
import { home } from "./home.js";
import { keys } from "./keys.js";
import { log } from "./log.js";
import { rules } from "./rules.js";
import { settings } from "./settings.js";
import { isOwner, listen, refresh, take, waiting } from "./store.js";
import { follow } from "./stream.js";
import { task } from "./task.js";
import { tasks } from "./tasks.js";
import { applyTheme } from "./theme.js";
import { tools } from "./tools.js";
import { note } from "./voice.js";

const PAGES = {
  home: ["Needs you", home], tasks: ["Tasks", tasks], task: ["Task", task], rules: ["Rules", rules], log: ["Log", log],
  tools: ["Tools", tools], settings: ["Settings", settings],
};
const LINKS = { live: "live", lost: "reconnecting", stranger: "not your server", denied: "signed out" };
const STRANGER = "Another program answers on this page's port: it could not prove that it is your Tidegate server, and was told"
  + " nothing. Do not load this page again. Where the server runs now, tidegate portal opens it; if it comes back here, this"
  + " page goes on.";

const main = document.getElementById("main");
let shown = { end: () => {} }; // the page that is drawn; one with cards has `ready` too
let page = "home";
let drawn = false;

function show() {
  const [, name = "", id = ""] = location.hash.split("/");
  page = name in PAGES ? name : "home";
  shown.end();
  fill(main);
  shown = PAGES[page][1](main, decodeURIComponent(id));
  for (const link of document.querySelectorAll("[data-page]")) {
    const here = link.dataset.page === page || (page === "task" && link.dataset.page === "tasks");
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  title();
}

const title = () => count(waiting().length, PAGES[page][0]);

function state(now, why) {
  const link = document.getElementById("link");
  const banner = document.getElementById("banner");
  banner.hidden = now !== "lost" && now !== "stranger";
  say(banner, now === "stranger" ? STRANGER : `The server does not answer${why && ` (${why})`}. Trying again; what is shown may be old, and nothing can be answered here.`);
  if (link.dataset.state === now) return;
  link.dataset.state = now;
  say(document.getElementById("link-text"), now === "live" && !isOwner() ? "live, looking on" : LINKS[now]);
  if (now === "denied") signIn("This page was signed out: its token was revoked or is too old.");
}

function signIn(why) {
  shown.end();
  drawn = false;
  forgetToken();
  document.body.classList.add("stranger");
  fill(main, h("section", { class: "sign-in" }, h("h1", { tabindex: -1 }, "Sign in"), h("p", {}, why),
    h("p", {}, "On the machine that runs Tidegate:"), h("pre", {}, h("code", {}, "tidegate portal")),
    h("p", { class: "meta" }, "It opens this page with a code that works once. There is no password and no cookie.")));
  document.title = "Sign in · Tidegate";
}

/** Tell of each question once, but not of those that were there when the page was opened. */
function announcer() {
  const told = new Set(waiting().map((question) => question.id));
  return () => {
    for (const question of waiting()) {
      if (told.has(question.id)) continue;
      told.add(question.id);
      announce(question, taskTitle(question), () => { location.hash = "#/"; });
    }
    title();
  };
}

async function fresh() {
  const another = await refresh();
  if (another) note("The server was started anew. Commands that ran behind the one before have ended.");
  if (drawn) return;
  drawn = true;
  const tell = announcer();
  listen((changed) => changed.has("questions") && tell());
  show();
}

/** The question that the keys answer: only where its card is seen. Elsewhere they lead to the cards. */
function ready() {
  if (shown.ready) return shown.ready();
  if (waiting().length) location.hash = "#/";
  return null;
}

function search() {
  const found = () => main.querySelector("input[type=search]");
  if (!found()) location.hash = "#/tasks";
  setTimeout(() => found()?.focus(), 0);
}

function moved() {
  // A code that is put into the address bar of a page that is open already.
  if (location.hash.startsWith("#code=")) location.reload();
  else if (drawn) {
    show();
    main.querySelector("h1")?.focus();
    scrollTo(0, 0);
  }
}

async function begin() {
  if (location.hostname === "localhost") { // which may be another address too, and somebody else's
    location.hostname = "127.0.0.1";
    return;
  }
  applyTheme();
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  addEventListener("hashchange", moved);
  try {
    await takeCode();
  } catch (error) {
    signIn(error instanceof ApiError ? `This code does not work: ${error.message}.` : "The server does not answer.");
    return;
  }
  if (!signedIn()) {
    signIn("This page has no token yet.");
    return;
  }
  keys({ ready, search });
  await follow({ state, event: take, fresh });
}

begin();
