// Models and keys: how they do, which of them rest, what of the limits is used up.

import { get } from "./api.js";
import { meter } from "./charts.js";
import { empty, h } from "./dom.js";
import { ago, clock, compact, duration, money, number, percent, spent } from "./format.js";
import { table } from "./table.js";

export async function modelsView() {
  const { rows, of, breakers, keys, fuses, fallbacks } = await get("models");
  const columns = [
    { name: "Model", of: (one) => one.name, cell: (one) => [h("a.tool-name", { href: `#/traffic?model=${encodeURIComponent(one.name)}` }, one.name), h("small.sub", {}, ago(one.last_ms))] },
    { name: "State", of: (one) => breakers[one.name]?.rests_s ?? 0, cell: (one) => state(breakers[one.name]) },
    { name: "Requests", number: true, of: (one) => one.requests, cell: (one) => number(one.requests) },
    { name: "Failed", number: true, of: (one) => one.errors / one.requests, cell: (one) => [h("span.with-meter", {}, percent(one.errors, one.requests), meter(one.errors / one.requests, "bad")), kinds(one.failures)] },
    { name: "Retries", number: true, of: (one) => one.retries, cell: (one) => number(one.retries) },
    { name: "Tokens", number: true, of: (one) => one.tokens_in + one.tokens_out, cell: (one) => `${compact(one.tokens_in)} → ${compact(one.tokens_out)}` },
    { name: "Cached", number: true, of: (one) => one.tokens_cached, cell: (one) => percent(one.tokens_cached, one.tokens_in) },
    { name: "First byte", number: true, of: (one) => one.first_byte_ms, cell: (one) => duration(one.first_byte_ms) },
    { name: "Median", number: true, of: (one) => one.median_ms, cell: (one) => [duration(one.median_ms), h("small.sub", {}, `9 of 10 within ${duration(one.slow_ms)}`)] },
    { name: "Cost", number: true, of: (one) => one.cost_usd, cell: (one) => spent(one.cost_usd, one.unpriced) },
  ];
  const stand = Object.entries(fallbacks);
  return {
    element: h(
      "section.view",
      {},
      h("div.title", {}, h("h1", {}, "Models & keys"), h("span.muted", {}, `of the newest ${number(of)} requests`)),
      rows.length ? table("Models", columns, rows, 2) : empty("No model was asked yet", "Each model that runs appears here with its times, its failures and its cost."),
      stand.length > 0 && h("p.muted", {}, "Who stands in: ", stand.map(([name, others]) => `${name} → ${others.join(" → ")}`).join("; ")),
      h("h2", {}, "Google’s keys"),
      keys.length ? h("div.cards", {}, keys.map(keyCard)) : empty("No key of Google’s", "The emulator needs none; and where clients bring their own, theirs are used and not kept."),
      h("h2", {}, "Limits of gateway keys"),
      fuses.length ? h("div.cards", {}, fuses.map(fuseCard)) : empty("No limits", h("span", {}, "Fuses are set under ", h("code", {}, "[limits]"), ": requests, tokens or dollars, for a minute, an hour, a day or a month.")),
    ),
  };
}

function state(breaker) {
  if (!breaker) return h("span.chip.good", {}, "well");
  if (breaker.rests_s > 0) return h("span.chip.bad", {}, `left alone, ${Math.ceil(breaker.rests_s)} s`);
  return h("span.chip.note-kind", {}, `${breaker.failures} failure${breaker.failures > 1 ? "s" : ""} in a row`);
}

function kinds(failures) {
  const words = Object.entries(failures).map(([kind, times], index) => [index > 0 && ", ", h("span.kind", {}, `${kind.replaceAll("_", " ")} ×${times}`)]);
  return words.length > 0 && h("small.sub.bad", {}, words);
}

function keyCard(key) {
  const rests = Object.entries(key.rests);
  return h(
    "article.card.padded",
    {},
    h("header.between", {}, h("h3", {}, "Key ", h("code", {}, key.name)), rests.length ? h("span.chip.bad", {}, "rests") : h("span.chip.good", {}, "ready")),
    h("p", {}, `${number(key.attempts)} attempts`, kinds(key.failures)),
    rests.map(([model, seconds]) => h("p.small", {}, model === "*" ? "every model" : model, ": ", seconds > 0 ? `${duration(Math.round(seconds * 1000))} more` : "another replica says so")),
  );
}

function fuseCard(fuse) {
  const show = (value) => (fuse.unit === "usd" ? money(value) : compact(value));
  const share = fuse.used / fuse.limit;
  return h(
    "article.card.padded",
    {},
    h("header.between", {}, h("h3", {}, `${fuse.unit === "usd" ? "Dollars" : fuse.unit === "tokens" ? "Tokens" : "Requests"} a ${fuse.window}`), h("span.muted.small", {}, `until ${clock(fuse.ends_ms).slice(0, 5)}`)),
    h("p.fuse", {}, h("b", {}, show(fuse.used)), ` of ${show(fuse.limit)}`),
    meter(share, share > 0.9 ? "bad" : ""),
    h("p.small.muted", {}, "caller ", h("code", {}, fuse.caller)),
  );
}
