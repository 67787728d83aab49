// JSON that can be folded, with notes at the places they speak of. What is folded is not in the page yet.

import { h } from "./dom.js";

const LONGEST = 600; // characters of one text, until somebody wants all of it
const OPEN_LINES = 120; // about so many are unfolded from the start
const MANY = 200; // children shown at once

class Exact {
  constructor(source) {
    this.source = source;
  }
}

/** Numbers keep all their digits where the browser tells how they were written. */
export function parse(text) {
  return JSON.parse(text, (_, value, context) => {
    const lost = typeof value === "number" && context?.source && !Number.isSafeInteger(value) && String(value) !== context.source;
    return lost ? new Exact(context.source) : value;
  });
}

/** `notes` are by place: `messages[3].content[0]`. `placed`, a set, learns which were found. */
export function jsonView(value, { notes = new Map(), placed = new Set() } = {}) {
  for (const place of notes.keys()) if (has(value, place)) placed.add(place);
  const budget = { left: OPEN_LINES };
  return h("div.json", { role: "group" }, line(value, "", "", { notes, budget, depth: 0 }));
}

function line(value, where, name, context) {
  const own = context.notes.get(where) ?? [];
  const entries = value !== null && typeof value === "object" && !(value instanceof Exact) ? Object.entries(value) : null;
  const key = name === "" ? null : h(`span.key${typeof name === "number" ? ".index" : ""}`, {}, typeof name === "number" ? `${name}` : JSON.stringify(name));
  const row = h(`div.jline${own.length ? ".noted" : ""}`, { dataset: own.length ? { where } : {} });
  if (!entries?.length) {
    row.append(h("div.jtext", {}, h("span.no-fold"), key, key && h("span.punct", {}, ": "), leaf(value)), ...own.map(noteLine));
    return row;
  }
  const noted = [...context.notes.keys()].some((place) => place.startsWith(where) && place !== where && within(where, place));
  const list = Array.isArray(value);
  const start = noted || context.depth === 0 || (context.depth < 4 && context.budget.left > entries.length);
  if (start) context.budget.left -= entries.length;
  const inside = h("div.jinside");
  let drawn = false;
  const words = list ? `${entries.length} item${entries.length === 1 ? "" : "s"}` : preview(entries);
  const sum = h("span", {}, h("span.sum", {}, words), h("span.punct", {}, list ? "]" : "}"));
  const fold = h("button.fold", { type: "button", "aria-expanded": "false", "aria-label": `${name === "" ? "the whole" : name}: fold or unfold` });
  const set = (open) => {
    fold.setAttribute("aria-expanded", String(open));
    inside.hidden = !open;
    sum.hidden = open;
    if (open && !drawn) {
      drawn = true;
      draw(inside, entries, list, where, context, 0);
    }
  };
  fold.addEventListener("click", () => set(fold.getAttribute("aria-expanded") !== "true"));
  row.append(h("div.jtext", {}, fold, key, key && h("span.punct", {}, ": "), h("span.punct", {}, list ? "[" : "{"), sum), ...own.map(noteLine), inside);
  set(start);
  return row;
}

function draw(inside, entries, list, where, context, from) {
  const deeper = { ...context, depth: context.depth + 1 };
  for (const [name, value] of entries.slice(from, from + MANY)) {
    const place = list ? `${where}[${name}]` : where ? `${where}.${name}` : name;
    inside.append(line(value, place, list ? Number(name) : name, deeper));
  }
  const left = entries.length - from - MANY;
  if (left > 0) {
    const more = h("button.plain.small", { type: "button" }, `${left} more`);
    more.addEventListener("click", () => (more.remove(), draw(inside, entries, list, where, context, from + MANY)));
    inside.append(more);
  }
}

function preview(entries) {
  const names = entries.slice(0, 4).map(([name]) => name);
  return `${names.join(", ")}${entries.length > 4 ? ", …" : ""}`;
}

function leaf(value) {
  if (value instanceof Exact) return h("span.num", {}, value.source);
  if (typeof value === "string") return longText(JSON.stringify(value), "str");
  if (typeof value === "number") return h("span.num", {}, String(value));
  if (value === null || typeof value === "boolean") return h("span.word", {}, String(value));
  return h("span.punct", {}, Array.isArray(value) ? "[]" : "{}");
}

export function longText(text, kind, most = LONGEST) {
  const shown = h(`span.${kind}`, {}, text.length > most ? text.slice(0, most) : text);
  if (text.length <= most) return shown;
  const more = h("button.plain.small", { type: "button" }, `… ${(text.length - most).toLocaleString("en")} more characters`);
  more.addEventListener("click", () => (more.remove(), (shown.textContent = text)));
  return h("span", {}, shown, more);
}

export function noteLine(note) {
  return h("div.note", {}, h("b", {}, note.kind), h("span", {}, note.why));
}

const within = (where, place) => !where || [".", "["].includes(place[where.length]);

/** Whether the document has that place, spelt as the gateway spells it. */
function has(value, place) {
  if (!place) return false;
  let at = value;
  let rest = place;
  while (rest) {
    if (at === null || typeof at !== "object") return false;
    const name = Object.keys(at)
      .map((key) => [key, Array.isArray(at) ? `[${key}]` : key])
      .filter(([, spelt]) => rest === spelt || (rest.startsWith(spelt) && [".", "["].includes(rest[spelt.length])))
      .sort((a, b) => b[1].length - a[1].length)[0];
    if (!name) return false;
    at = at[name[0]];
    rest = rest.slice(name[1].length).replace(/^\./, "");
  }
  return true;
}
