// The frame around the views: who is here, where they are, and what their keys do.

import { NeedsLogin, get, logOut } from "./api.js";
import { costView } from "./cost.js";
import { failed, h, icon, replace } from "./dom.js";
import { help } from "./help.js";
import { loginView } from "./login.js";
import { modelsView } from "./models.js";
import { requestView } from "./request.js";
import { sessionsView } from "./sessions.js";
import { toolsView } from "./tools.js";
import { trafficView } from "./traffic.js";

const VIEWS = {
  traffic: { title: "Traffic", make: trafficView, icon: "traffic", key: "t" },
  sessions: { title: "Sessions", make: sessionsView, icon: "sessions", key: "s" },
  tools: { title: "Tools", make: toolsView, icon: "tools", key: "o" },
  models: { title: "Models & keys", make: modelsView, icon: "models", key: "m" },
  cost: { title: "Cost", make: costView, icon: "cost", key: "c" },
};
const GOING_MS = 1200; // between `g` and the letter behind it

const main = h("main", { id: "main", tabindex: "-1" });
let view = null;
let gateway = null;
let going = 0;

function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, id = ""] = path.split("/");
  return { name: name || "traffic", id: decodeURIComponent(id), query: new URLSearchParams(query) };
}

async function show() {
  const at = place();
  view?.close?.();
  view = null;
  const known = VIEWS[at.name];
  for (const link of document.querySelectorAll("nav a")) {
    const here = link.dataset.view === at.name || (at.name === "request" && link.dataset.view === "traffic");
    here ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  }
  document.title = `${known?.title ?? "Request"} · Dragoman`;
  try {
    const make = at.name === "request" ? requestView : (known ?? VIEWS.traffic).make;
    const opened = await make({ id: at.id, query: at.query, gateway, leave: start });
    if (JSON.stringify(place(), spell) !== JSON.stringify(at, spell)) return opened.close?.();
    view = opened;
    replace(main, view.element);
    view.shown?.();
  } catch (error) {
    if (error instanceof NeedsLogin) return start();
    replace(main, failed(error, show));
  }
}

const spell = (_, value) => (value instanceof URLSearchParams ? value.toString() : value);

function frame() {
  const links = Object.entries(VIEWS).map(([name, one]) =>
    h("a", { href: `#/${name}`, dataset: { view: name }, title: `${one.title} (g ${one.key})` }, icon(one.icon), h("span", {}, one.title)),
  );
  const theme = h("button.quiet", { type: "button", title: "Light or dark (d)", onclick: toggleTheme }, icon("theme"), h("span", {}, "Light or dark"));
  const keys = h("button.quiet", { type: "button", title: "Keys (?)", onclick: help }, icon("keys"), h("span", {}, "Keys"));
  const leave = gateway.login && h("button.quiet", { type: "button", onclick: leaveNow }, icon("leave"), h("span", {}, "Log out"));
  return [
    h("a.skip", { href: "#main", onclick: (event) => (event.preventDefault(), main.focus()) }, "To the content"),
    h(
      "header.side",
      {},
      h("a.mark", { href: "#/traffic", title: "Dragoman" }, h("img", { src: "dashboard/static/mark.svg", alt: "", width: 28, height: 28 }), h("span", {}, "Dragoman")),
      h("nav", { "aria-label": "Views" }, links),
      h("div.foot", {}, theme, keys, leave, h("p.about", {}, h("span", {}, BACKENDS[gateway.backend] ?? gateway.backend), h("span", {}, `version ${gateway.version}`))),
    ),
    main,
  ];
}

const BACKENDS = { emulator: "Gemini emulator", gemini: "Google AI Studio", vertex: "Vertex AI" };

async function leaveNow() {
  await logOut().catch(() => null);
  start();
}

function toggleTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("dragoman.theme", root.dataset.theme);
}

export async function start() {
  view?.close?.();
  view = null;
  try {
    gateway = await get("me");
  } catch (error) {
    if (error instanceof NeedsLogin) return replace(document.body, loginView(start));
    return replace(document.body, failed(error, start));
  }
  replace(document.body, ...frame());
  await show();
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !gateway) return;
  const typing = event.target.closest?.("input, select, textarea, dialog");
  if (event.key === "Escape" && typing && typing.tagName !== "DIALOG") return typing.blur();
  if (typing) return;
  const target = going && event.timeStamp - going < GOING_MS && Object.entries(VIEWS).find(([, one]) => one.key === event.key);
  going = 0;
  if (target) location.hash = `#/${target[0]}`;
  else if (event.key === "g") going = event.timeStamp; // when it was pressed, however busy the page is
  else if (event.key === "?") help();
  else if (event.key === "d") toggleTheme();
  else if (!view?.pressed?.(event)) return;
  event.preventDefault();
}

addEventListener("hashchange", show);
addEventListener("keydown", pressed);
start();
