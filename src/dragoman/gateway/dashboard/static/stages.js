// A request's four stages, two beside each other: what was asked and what was answered, in both languages.

import { copyButton, h, replace } from "./dom.js";
import { bytes } from "./format.js";
import { jsonView, longText, noteLine, parse } from "./json.js";

const TITLES = {
  asked: ["1", "The client asked"],
  request: ["2", "Google was asked"],
  answer: ["3", "Google answered"],
  given: ["4", "The client got"],
};

export function stagesView(stages, notes) {
  const attempts = stages.upstream.length;
  let attempt = Math.max(0, attempts - 1);
  const frame = h("div.stages");
  const picker =
    attempts > 1 &&
    h(
      "label.picker",
      {},
      "Attempt or round ",
      h("select", { onchange: (event) => ((attempt = Number(event.target.value)), draw()) }, stages.upstream.map((_, index) => h("option", { value: index, selected: index === attempt }, `${index + 1} of ${attempts}`))),
    );
  function draw() {
    const pair = stages.upstream[attempt];
    replace(
      frame,
      stage("asked", stages.asked, notes),
      pair ? stage("request", pair.request) : missing("request"),
      pair ? stage("answer", pair.answer) : missing("answer"),
      stage("given", stages.given),
    );
  }
  draw();
  return h("div", {}, picker, stages.cut && h("p.warning", {}, "The bodies were longer than observe.capture_body_bytes, and are cut."), frame);
}

function missing(which) {
  const [number, title] = TITLES[which];
  return h("section.stage.card", {}, h("header", {}, h("h3", {}, h("b", {}, number), title)), h("p.muted", {}, "Google was not asked."));
}

function stage(which, shown, notes = []) {
  const [number, title] = TITLES[which];
  const places = new Map();
  for (const note of notes) places.set(note.where, [...(places.get(note.where) ?? []), note]);
  const placed = new Set();
  const body = bodyOf(shown, places, placed);
  const elsewhere = notes.filter((note) => !placed.has(note.where));
  const jump = placed.size > 0 && h("button.quiet.jump", { type: "button", title: "Go to the next note" }, h("span.note-count", {}, placed.size), placed.size > 1 ? "notes" : "note");
  jump && jump.addEventListener("click", nextNote(body));
  return h(
    "section.stage.card",
    { dataset: { stage: which } },
    h("header", {}, h("h3", {}, h("b", {}, number), title), jump, h("span.muted.small", {}, bytes(shown.size)), shown.size > 0 && copyButton(() => textOf(shown))),
    elsewhere.length > 0 && h("div.elsewhere", {}, elsewhere.map((note) => h("div", {}, h("code", {}, note.where || "the request"), noteLine(note)))),
    h("div.stage-body", { tabindex: "0", role: "region", "aria-label": title }, body),
  );
}

/** From one noted line to the next, and around. */
function nextNote(body) {
  let at = -1;
  return () => {
    const noted = [...body.querySelectorAll(".jline.noted")];
    at = (at + 1) % noted.length;
    show(noted[at]);
  };
}

/** Inside its own frame: the page stays where it is. */
export function show(line) {
  const frame = line?.closest(".stage-body");
  if (!frame) return;
  frame.scrollTop += line.getBoundingClientRect().top - frame.getBoundingClientRect().top - frame.clientHeight / 3;
  line.classList.remove("flash");
  requestAnimationFrame(() => line.classList.add("flash"));
}

function bodyOf(shown, notes, placed) {
  if (shown.kind === "json") return jsonView(parse(shown.text), { notes, placed });
  if (shown.kind === "events") {
    const events = shown.events.map((event, index) => eventView(event, index, shown.events.length));
    return h("div.events", {}, events, shown.left_out > 0 && h("p.muted", {}, `${shown.left_out} more events`));
  }
  if (shown.kind === "text") return h("pre", {}, longText(shown.text, "plain-text", 20_000));
  return h("p.muted", {}, shown.kind === "empty" ? "Nothing." : "Bytes that are no text.");
}

function eventView(event, index, all) {
  let inside;
  try {
    inside = jsonView(parse(event.data));
  } catch {
    inside = h("pre", {}, longText(event.data, "plain-text"));
  }
  const name = event.name && event.name !== "message" ? event.name : "event";
  return h("details.event", { open: all <= 6 || index === 0 }, h("summary", {}, h("b", {}, name), h("span.muted.small", {}, ` ${index + 1}`)), inside);
}

function textOf(shown) {
  if (shown.kind !== "events") return shown.text;
  return shown.events.map((event) => `${event.name ? `event: ${event.name}\n` : ""}data: ${event.data}\n\n`).join("");
}
