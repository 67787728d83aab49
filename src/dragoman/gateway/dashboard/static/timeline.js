// How a request's time was spent: waiting for Google, running tools of ours, and the rest.

import { h, svg } from "./dom.js";
import { duration } from "./format.js";

const WIDTH = 1000;
const ROW = 20;

export function timeline(record) {
  const total = Math.max(1, record.total_ms);
  const x = (ms) => (Math.min(ms, total) / total) * WIDTH;
  const spans = [
    ...record.attempts.map((one, index) => ({
      at: one.at_ms,
      ms: one.ms,
      kind: one.error ? "bad" : "wait",
      title: `${one.model}, attempt ${index + 1}: ${one.error || `HTTP ${one.status}`}, ${duration(one.ms)}${one.key ? `, key ${one.key}` : ""}`,
    })),
    ...(record.runs ?? []).map((run) => ({ at: run.at_ms, ms: run.ms, kind: "run", title: `${run.name}: ${run.failed ? "failed" : "ran"}, ${duration(run.ms)}` })),
  ].sort((a, b) => a.at - b.at);
  const shapes = spans.map((span) =>
    svg("g", {}, svg("title", {}, span.title), svg(`rect.span-${span.kind}`, { x: x(span.at), y: 4, width: Math.max(3, x(span.at + span.ms) - x(span.at)), height: ROW - 8, rx: 2 })),
  );
  const mark = record.first_byte_ms > 0 && svg("g", {}, svg("title", {}, `first byte after ${duration(record.first_byte_ms)}`), svg("rect.span-mark", { x: Math.min(WIDTH - 3, x(record.first_byte_ms)), y: 0, width: 3, height: ROW }));
  const own = Math.max(0, record.total_ms - record.wait_ms);
  const label = `${duration(record.total_ms)} in all, ${duration(record.wait_ms)} of them waiting for Google, first byte after ${duration(record.first_byte_ms)}`;
  return h(
    "figure.timeline.card",
    {},
    svg("svg", { viewBox: `0 0 ${WIDTH} ${ROW}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, svg("rect.span-base", { x: 0, y: 4, width: WIDTH, height: ROW - 8, rx: 2 }), shapes, mark),
    h(
      "figcaption",
      {},
      key("all", "in all", record.total_ms),
      key("wait", "waiting for Google", record.wait_ms),
      key("base", "ours and the reader’s", own),
      key("mark", "first byte", record.first_byte_ms),
      record.attempts.length > 1 && h("span", {}, `${record.attempts.length} attempts or rounds`),
      record.attempts.filter((one) => one.error).map((one) => h("span.chip.bad", {}, `${one.model}: ${one.error.replaceAll("_", " ")}`)),
    ),
  );
}

function key(kind, words, ms) {
  return h("span.key-entry", {}, h(`i.key-${kind}`, { "aria-hidden": "true" }), h("b", {}, duration(ms)), ` ${words}`);
}
