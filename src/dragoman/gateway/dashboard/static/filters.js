// Which requests are listed: words, and a choice for each thing that tells them apart.

import { h, icon, replace } from "./dom.js";
import { dialect, short } from "./format.js";

/** Name -> what it is of a row; a list where a row may have several. */
export const FILTERS = {
  status: { label: "Status", of: (row) => status(row), say: (value) => value },
  model: { label: "Model", of: (row) => row.model || row.asked_model || "", say: (value) => value },
  client: { label: "Client", of: (row) => row.client ?? "", say: (value) => value },
  dialect: { label: "Dialect", of: (row) => row.dialect ?? "", say: dialect },
  tool: { label: "Tool", of: (row) => [...(row.calls ?? []), ...(row.own_calls ?? [])], say: (value) => value },
};

function status(row) {
  const found = [row.error || row.status >= 400 ? "failed" : "ok"];
  if (row.notes) found.push("with notes");
  if (row.attempts > 1) found.push("several attempts");
  if (row.left) found.push("client left");
  return found;
}

const list = (value) => (Array.isArray(value) ? value : [value]);

export class Filters {
  constructor(query, changed) {
    this._query = query;
    this._changed = changed;
    this._chosen = Object.fromEntries(Object.keys(FILTERS).map((name) => [name, query.get(name) ?? ""]));
    this._offered = {};
    this._input = h("input", { type: "search", "aria-label": "Search requests", placeholder: "Search  /", value: query.get("text") ?? "", spellcheck: "false" });
    this._input.addEventListener("input", () => this._changed());
    this._selects = {};
    for (const [name, one] of Object.entries(FILTERS)) {
      const select = h("select", { "aria-label": one.label });
      select.addEventListener("change", () => {
        this._chosen[name] = select.value;
        this._changed();
      });
      this._selects[name] = select;
    }
    const session = query.get("session");
    const chip = session && h("a.chip.session", { href: "#/traffic", title: "Show all sessions" }, `session ${short(session, 20)}`, h("span", { "aria-hidden": "true" }, " ✕"));
    this._clear = h("button.quiet", { type: "button", onclick: () => this.clear() }, "Clear");
    this.element = h("div.filters", { role: "search" }, h("span.search", {}, icon("search"), this._input), Object.values(this._selects), chip, this._clear);
  }

  /** The choices there are in these rows. */
  offer(rows) {
    for (const [name, one] of Object.entries(FILTERS)) {
      const values = new Set(rows.flatMap((row) => list(one.of(row))).filter(Boolean));
      if (this._chosen[name]) values.add(this._chosen[name]);
      const sorted = [...values].sort();
      const same = JSON.stringify(sorted);
      if (this._offered[name] !== same) {
        this._offered[name] = same;
        const all = h("option", { value: "" }, `${one.label}: all`);
        replace(this._selects[name], all, sorted.map((value) => h("option", { value }, one.say(value))));
      }
      this._selects[name].value = this._chosen[name];
      this._selects[name].classList.toggle("set", Boolean(this._chosen[name]));
    }
    this._clear.hidden = !this.any();
  }

  /** A function that says whether a row is listed. */
  test() {
    const wanted = Object.entries(this._chosen).filter(([, value]) => value);
    const words = this._input.value.toLowerCase().split(/\s+/).filter(Boolean);
    this._clear.hidden = !this.any();
    return (row) =>
      wanted.every(([name, value]) => list(FILTERS[name].of(row)).includes(value)) &&
      (!words.length || words.every((word) => said(row).includes(word)));
  }

  any() {
    return Boolean(this._input.value) || Object.values(this._chosen).some(Boolean);
  }

  clear() {
    this._input.value = "";
    for (const name of Object.keys(this._chosen)) this._chosen[name] = "";
    this._changed();
  }

  focus() {
    this._input.focus();
    this._input.select();
  }
}

const SAID = new WeakMap();

function said(row) {
  let text = SAID.get(row);
  if (text === undefined) {
    const words = [row.id, row.client, row.dialect, dialect(row.dialect ?? ""), row.session, row.asked_model, row.model, row.path, row.error, row.status, row.stop, ...(row.calls ?? []), ...(row.own_calls ?? [])];
    text = words.filter(Boolean).join(" ").toLowerCase();
    SAID.set(row, text);
  }
  return text;
}
