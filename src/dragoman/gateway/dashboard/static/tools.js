// Tools: how often they are called, how often they fail, how long they take and how much they say.

import { get } from "./api.js";
import { meter } from "./charts.js";
import { empty, h } from "./dom.js";
import { ago, bytes, duration, number, percent } from "./format.js";
import { table } from "./table.js";

export async function toolsView() {
  const { rows, of } = await get("tools");
  const calls = (one) => one.calls + one.own;
  const most = Math.max(1, ...rows.map(calls));
  const sum = (value) => rows.reduce((all, one) => all + value(one), 0);
  const results = sum((one) => one.results);
  const columns = [
    { name: "Tool", of: (one) => one.name, cell: (one) => [h("a.tool-name", { href: `#/traffic?tool=${encodeURIComponent(one.name)}` }, one.name), h("small.sub", {}, one.sessions > 0 && `${number(one.sessions)} session${one.sessions === 1 ? "" : "s"}, `, ago(one.last_ms))] },
    { name: "Calls", number: true, of: calls, cell: (one) => [h("span.with-meter", {}, number(calls(one)), meter(calls(one) / most)), one.own > 0 && h("small.sub", {}, `${number(one.own)} by the gateway`)] },
    { name: "Failed", number: true, of: (one) => (one.results ? one.failed / one.results : 0), cell: (one) => h("span.with-meter", {}, percent(one.failed, one.results), meter(one.results ? one.failed / one.results : 0, "bad")) },
    { name: "Median", number: true, of: (one) => one.median_ms, cell: (one) => (one.timed ? duration(one.median_ms) : "–") },
    { name: "9 of 10 within", number: true, of: (one) => one.slow_ms, cell: (one) => (one.timed ? duration(one.slow_ms) : "–") },
    { name: "Result size", number: true, of: (one) => (one.results ? one.bytes_total / one.results : 0), cell: (one) => (one.results ? [bytes(Math.round(one.bytes_total / one.results)), h("small.sub", {}, `at most ${bytes(one.bytes_most)}`)] : "–") },
    { name: "Mended", number: true, of: (one) => one.mended, cell: (one) => (one.mended ? number(one.mended) : "–") },
  ];
  return {
    element: h(
      "section.view",
      {},
      h("div.title", {}, h("h1", {}, "Tools"), h("span.muted", {}, `of the newest ${number(of)} requests`)),
      rows.length > 0 &&
        h(
          "div.stats.card",
          {},
          fact(rows.length === 1 ? "tool" : "tools", number(rows.length)),
          fact("calls", number(sum(calls))),
          fact("failed", percent(sum((one) => one.failed), results), sum((one) => one.failed) ? "bad" : ""),
          fact("arguments mended", number(sum((one) => one.mended))),
          fact("said by tools", bytes(sum((one) => one.bytes_total))),
        ),
      rows.length ? table("Tools", columns, rows, 1) : empty("No tool was called yet", "Every call of the model’s is counted here: by whom it was run, how it went, how long it took."),
    ),
  };
}

export function fact(label, value, kind = "") {
  return h("div.stat", {}, h(`span.value${kind && `.${kind}`}`, {}, value), h("span.label", {}, label));
}
