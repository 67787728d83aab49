// The way in: the gateway key goes once, as a bearer token, and comes back as a cookie that no script can read.

import { NeedsLogin, logIn } from "./api.js";
import { h } from "./dom.js";

export function loginView(done) {
  const key = h("input", {
    id: "key",
    type: "password",
    name: "key",
    required: true,
    autocomplete: "current-password",
    spellcheck: "false",
    "aria-describedby": "why where",
  });
  const why = h("p.why", { id: "why", role: "alert" });
  const enter = h("button.primary", { type: "submit" }, "Open");
  const form = h(
    "form.card.login",
    {},
    h("img", { src: "dashboard/static/mark.svg", alt: "", width: 44, height: 44 }),
    h("h1", {}, "Dragoman"),
    h("p.muted", {}, "The interpreter’s desk: what was asked, what was said, what it came to."),
    h("label", { for: "key" }, "Gateway key"),
    key,
    why,
    enter,
    h("p.muted.small", { id: "where" }, "With the admin role. The one made at the first start lies in ", h("code", {}, "gateway.key"), " of the state folder."),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    why.textContent = "";
    enter.disabled = true;
    try {
      await logIn(key.value.trim());
      await done();
    } catch (error) {
      why.textContent = error instanceof NeedsLogin ? "This is no admin’s gateway key." : error.message;
      enter.disabled = false;
      key.select();
    }
  });
  requestAnimationFrame(() => key.focus());
  return h("main.door", {}, form);
}
