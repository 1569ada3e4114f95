/** What the page says beside its content: short notes, errors, questions back, and what did not work. */

import { h } from "./dom.js";

const NOTE = 5000; // milliseconds a note stays; twice as long for what did not work

/** Say a short note; `bad` for what did not work. */
export function note(text, { bad = false, fix = "" } = {}) {
  const toast = h("p", { class: bad ? "toast bad" : "toast" }, text, fix && h("span", { class: "fix" }, fix));
  document.getElementById("toasts").append(toast);
  setTimeout(() => toast.remove(), bad ? NOTE * 2 : NOTE);
}

/** Say what an error of the API says. */
function complain(error) {
  if (error instanceof TypeError) note("the server does not answer", { bad: true });
  else note(error.message, { bad: true, fix: error.fix || "" });
}

/** Do something that asks the server, and complain where it fails; `button` waits meanwhile. Whether it worked. */
export async function attempt(action, button = null) {
  button?.setAttribute("aria-busy", "true");
  if (button) button.disabled = true;
  try {
    await action();
    return true;
  } catch (error) {
    complain(error);
    return false;
  } finally {
    button?.removeAttribute("aria-busy");
    if (button) button.disabled = false;
  }
}

/** Ask back before something that cannot be undone. Whether the person wants it. */
export function sure(question, yes) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-label": question, onclose: () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    } }, h("p", {}, question), h("div", { class: "buttons" },
      h("button", { type: "button", class: "bad", onclick: () => dialog.close("yes") }, yes),
      h("button", { type: "button", onclick: () => dialog.close("") }, "Cancel")));
    document.body.append(dialog);
    dialog.showModal();
  });
}
