// Conversations: who holds them, how long they are, what they cost.

import { get } from "./api.js";
import { empty, h } from "./dom.js";
import { ago, compact, dialect, number, short, spent } from "./format.js";
import { table } from "./table.js";

export async function sessionsView() {
  const { rows, of } = await get("sessions");
  const columns = [
    { name: "Session", of: (one) => one.id, cell: (one) => [h("a", { href: `#/traffic?session=${encodeURIComponent(one.id)}`, title: one.id }, short(one.id, 20)), h("small.sub", {}, dialect(one.dialect))] },
    { name: "Client", of: (one) => one.client, cell: (one) => [one.client || "–", h("small.sub", {}, one.model)] },
    { name: "Last used", number: true, of: (one) => one.last_ms, cell: (one) => ago(one.last_ms) },
    { name: "Requests", number: true, of: (one) => one.requests, cell: (one) => [number(one.requests), one.errors > 0 && h("small.sub.bad", {}, `${one.errors} failed`)] },
    { name: "Tool calls", number: true, of: (one) => one.calls, cell: (one) => [number(one.calls), one.failed_results > 0 && h("small.sub.bad", {}, `${one.failed_results} failed`)] },
    { name: "Tokens", number: true, of: (one) => one.tokens_in + one.tokens_out, cell: (one) => [`${compact(one.tokens_in)} → ${compact(one.tokens_out)}`, one.tokens_cached > 0 && h("small.sub", {}, `${compact(one.tokens_cached)} cached`)] },
    { name: "Cost", number: true, of: (one) => one.cost_usd, cell: (one) => spent(one.cost_usd, one.unpriced) },
    { name: "Tools", of: (one) => Object.keys(one.tools).length, cell: (one) => h("span.chips", {}, Object.entries(one.tools).map(([name, times]) => h("a.chip.tool", { href: `#/traffic?session=${encodeURIComponent(one.id)}&tool=${encodeURIComponent(name)}` }, name, times > 1 && h("b", {}, ` ×${times}`)))) },
  ];
  return {
    element: h(
      "section.view",
      {},
      h("div.title", {}, h("h1", {}, "Sessions"), h("span.muted", {}, `of the newest ${number(of)} requests`)),
      rows.length ? table("Sessions", columns, rows, 2) : empty("No session yet", "Clients that name their conversation, as Claude Code and Codex do, appear here with all it took."),
    ),
  };
}
