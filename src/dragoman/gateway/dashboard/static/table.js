// Tables whose columns can be sorted.

import { h, replace } from "./dom.js";

const MANY = 200; // rows, until somebody wants all of them

/** `columns` are {name, of, cell, number}: what a row is sorted by, and what is shown of it. */
export function table(label, columns, rows, sort) {
  let by = sort ?? 0;
  let down = true;
  let most = MANY;
  const body = h("tbody");
  const all = h("button.plain.all", { type: "button", onclick: () => ((most = Infinity), draw()) }, `Show all ${rows.length}`);
  const heads = columns.map((column, index) => {
    const button = h("button", { type: "button", onclick: () => order(index) }, column.name);
    return h(`th${column.number ? ".number" : ""}`, { scope: "col" }, button);
  });
  function order(index) {
    down = index === by ? !down : Boolean(columns[index].number);
    by = index;
    draw();
  }
  function draw() {
    heads.forEach((head, index) => (index === by ? head.setAttribute("aria-sort", down ? "descending" : "ascending") : head.removeAttribute("aria-sort")));
    const of = columns[by].of;
    const sorted = [...rows].sort((a, b) => {
      const [x, y] = [of(a), of(b)];
      const order = typeof x === "number" ? x - y : String(x).localeCompare(String(y));
      return down ? -order : order;
    });
    all.hidden = rows.length <= most;
    replace(body, sorted.slice(0, most).map((row) => h("tr", {}, columns.map((column, index) => h(`${index ? "td" : "th"}${column.number ? ".number" : ""}`, index ? { "data-name": column.name } : { scope: "row" }, column.cell(row))))));
  }
  draw();
  return h("div.table-frame.card", { tabindex: "0", role: "region", "aria-label": label }, h("table", {}, h("caption.unseen", {}, label), h("thead", {}, h("tr", {}, heads)), body), all);
}
