// One request: what it was, how its time was spent, what was said, and what the translation did with it.

import { get } from "./api.js";
import { conversationView } from "./conversation.js";
import { copyButton, empty, h, icon, replace } from "./dom.js";
import { compact, dialect, duration, money, number, short, whole } from "./format.js";
import { jsonView } from "./json.js";
import { replayView } from "./replay.js";
import { show, stagesView } from "./stages.js";
import { timeline } from "./timeline.js";

const LESS = ["Stop", "Agent", "When"]; // left out where there is little room
const TABS = ["Conversation", "Stages", "Notes", "Record"];

export async function requestView({ id, gateway }) {
  const shown = await get(`requests/${encodeURIComponent(id)}`);
  const { row, record } = shown;
  const panel = h("div.panel", { role: "tabpanel", id: "panel", tabindex: "0" });
  const tabs = TABS.map((name, index) => {
    const badge = name === "Notes" && record.notes.length > 0 && h("span.note-count", {}, record.notes.length);
    return h("button", { type: "button", role: "tab", id: `tab-${index}`, "aria-controls": "panel", title: `${name} (${index + 1})`, onclick: () => open(index), onkeydown: arrow }, name, badge);
  });
  const draws = [
    () => (shown.conversation ? conversationView(shown.conversation) : notCaptured(shown)),
    () => (shown.stages ? stagesView(shown.stages, record.notes) : notCaptured(shown)),
    () => notesView(record.notes, () => open(1)),
    () => h("div.card.padded", {}, h("div.right", {}, copyButton(() => JSON.stringify(record, null, 2))), jsonView(record)),
  ];
  let opened = 0;
  function open(index) {
    opened = index;
    tabs.forEach((tab, place) => {
      tab.setAttribute("aria-selected", String(place === index));
      tab.tabIndex = place === index ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", `tab-${index}`);
    replace(panel, draws[index]());
  }
  function arrow(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    open((opened + step + TABS.length) % TABS.length);
    tabs[opened].focus();
  }
  open(0);
  const again = replayView(shown, gateway);
  return {
    element: h(
      "section.view.request",
      {},
      h("div.title", {}, h("a.quiet.back", { href: "#/traffic", title: "Back (Esc)" }, icon("back"), "Traffic"), h("h1", {}, row.client || "Request"), h("code.id", {}, row.id), copyButton(() => row.id, "Copy id"), again.button),
      again.panel,
      facts(row, record),
      timeline(record),
      h("div.tabs", { role: "tablist", "aria-label": "What to show" }, tabs),
      panel,
    ),
    pressed(event) {
      if (event.key === "Escape") history.length > 1 ? history.back() : (location.hash = "#/traffic");
      else if (["1", "2", "3", "4"].includes(event.key)) open(Number(event.key) - 1);
      else return false;
      return true;
    },
  };
}

function facts(row, record) {
  const bad = Boolean(row.error) || row.status >= 400;
  const usage = record.usage;
  const model = row.asked_model && row.model && row.asked_model !== row.model ? [h("span.muted", {}, row.asked_model), " → ", row.model] : row.model || row.asked_model || "–";
  const rows = [
    ["Status", h(`span.chip${bad ? ".bad" : ".good"}`, {}, bad ? `${row.status} ${(row.error ?? "").replaceAll("_", " ")}` : `${row.status} ok`)],
    ["When", whole(row.at_ms)],
    ["Model", model],
    ["Dialect", `${dialect(row.dialect ?? "")}${row.stream ? ", streamed" : ""}`],
    ["Tokens", [`${number(usage.input_tokens)} in`, usage.cached_tokens > 0 && h("small", {}, ` ${compact(usage.cached_tokens)} cached`), ` · ${number(usage.output_tokens)} out`, usage.thought_tokens > 0 && h("small", {}, ` ${compact(usage.thought_tokens)} thought`)]],
    ["Cost", money(row.cost_usd)],
    ["Stop", record.stop || "–"],
    ["Session", row.session ? h("a", { href: `#/traffic?session=${encodeURIComponent(row.session)}`, title: row.session }, short(row.session, 18)) : "–"],
    ["Agent", record.client || "–"],
  ];
  return h("dl.facts.card", {}, rows.map(([name, value]) => h(`div${LESS.includes(name) ? ".less" : ""}`, {}, h("dt", {}, name), h("dd", {}, value))));
}

function notesView(notes, toStages) {
  if (!notes.length) return empty("No notes", "Nothing of this request was dropped, renamed, clamped or repaired.");
  const go = (where) => {
    toStages();
    requestAnimationFrame(() => {
      const place = [...document.querySelectorAll(".jline.noted")].find((one) => one.dataset.where === where);
      place?.closest(".stage")?.scrollIntoView({ block: "start" });
      show(place);
    });
  };
  return h("ul.notes-list.card", {}, notes.map((note) => h("li", {}, h(`span.chip.note-kind`, {}, note.kind), h("button.plain.place", { type: "button", title: "Show it at its place", onclick: () => go(note.where) }, note.where || "the request"), h("span.why-note", {}, note.why))));
}

function notCaptured(shown) {
  const off = { off: "Captures are switched off.", errors: "Only requests that fail are captured.", all: "Its capture is on another machine, or was forgotten: the oldest go first." };
  return empty(
    "The bodies of this request were not captured",
    off[shown.capture],
    shown.capture !== "all" && h("span", {}, "To keep them, without secrets, start the gateway with ", h("code", {}, "DRAGOMAN_OBSERVE_CAPTURE=all"), " or set ", h("code", {}, 'capture = "all"'), " under ", h("code", {}, "[observe]"), "."),
  );
}
