// Cost over time, by whatever caused it.

import { get } from "./api.js";
import { legend, stacked } from "./charts.js";
import { empty, failed, h, replace } from "./dom.js";
import { compact, day, money, number, percent, spent } from "./format.js";
import { table } from "./table.js";
import { fact } from "./tools.js";

const RANGES = { 7: "7 days", 30: "30 days", 90: "90 days", 365: "a year" };
const BY = { model: "model", client: "client", key: "gateway key", dialect: "dialect" };
const called = (one) => (one.name === "-" ? "none" : one.name); // a request that was refused before a model was asked
const usd = (micro) => micro / 1_000_000;

export async function costView() {
  const chosen = { days: "30", by: "model" };
  const body = h("div");
  const select = (name, options, label) => {
    const element = h("select", { "aria-label": label }, Object.entries(options).map(([value, words]) => h("option", { value, selected: value === chosen[name] }, name === "by" ? `by ${words}` : words)));
    element.addEventListener("change", () => ((chosen[name] = element.value), load()));
    return element;
  };
  let shown = await get("cost", chosen);
  const show = () => replace(body, ...draw(shown, chosen.by));
  async function load() {
    try {
      shown = await get("cost", chosen);
      show();
    } catch (error) {
      replace(body, failed(error, load));
    }
  }
  addEventListener("resize", show);
  show();
  return {
    close: () => removeEventListener("resize", show),
    element: h("section.view", {}, h("div.title", {}, h("h1", {}, "Cost"), h("span.spring"), select("days", RANGES, "How many days"), select("by", BY, "Told apart by")), body),
  };
}

/** Of the chart, as wide as it will be shown: its words keep their size. */
function roomFor() {
  const room = document.getElementById("main").clientWidth;
  return Math.max(300, Math.min(1480, room) - (room < 760 ? 66 : 94));
}

function draw(shown, by) {
  const { days, groups, sums } = shown;
  if (!groups.length) return [empty("Nothing was spent in these days", "Every request’s tokens are priced at Google’s list price and added up by day.")];
  const dear = groups.filter((one) => one.sums.micro_usd);
  const series = dear.map((one) => ({ name: called(one), values: one.days.map(usd) }));
  const [total, unpriced] = [usd(sums.micro_usd ?? 0), sums.unpriced ?? 0];
  const columns = [
    { name: BY[by][0].toUpperCase() + BY[by].slice(1), of: called, cell: called },
    { name: "Cost", number: true, of: (one) => one.sums.micro_usd ?? 0, cell: (one) => spent(usd(one.sums.micro_usd ?? 0), one.sums.unpriced) },
    { name: "Share", number: true, of: (one) => one.sums.micro_usd ?? 0, cell: (one) => percent(one.sums.micro_usd ?? 0, sums.micro_usd ?? 0) },
    { name: "Requests", number: true, of: (one) => one.sums.requests ?? 0, cell: (one) => number(one.sums.requests ?? 0) },
    { name: "Tokens in", number: true, of: (one) => one.sums.input ?? 0, cell: (one) => compact(one.sums.input ?? 0) },
    { name: "of them cached", number: true, of: (one) => one.sums.cached ?? 0, cell: (one) => percent(one.sums.cached ?? 0, one.sums.input ?? 0) },
    { name: "Tokens out", number: true, of: (one) => one.sums.output ?? 0, cell: (one) => compact(one.sums.output ?? 0) },
  ];
  return [
    h(
      "div.stats.card",
      {},
      fact("in these days", spent(total, unpriced)),
      fact("a day", spent(total / days.length, unpriced)),
      fact("today", spent(usd(groups.reduce((sum, one) => sum + one.days.at(-1), 0)), unpriced)),
      fact("requests", compact(sums.requests ?? 0)),
      fact("tokens", compact((sums.input ?? 0) + (sums.output ?? 0))),
      fact("input from the cache", percent(sums.cached ?? 0, sums.input ?? 0)),
    ),
    total > 0 && h("figure.chart.card", {}, stacked(days, series, { label: `Cost by day and ${BY[by]}, ${money(total)} in all; the table below has the numbers`, format: money, axis: day, width: roomFor() }), legend(series.map((one) => one.name))),
    unpriced > 0 && h("p.warning", {}, `${number(unpriced)} request${unpriced === 1 ? "" : "s"} ran on models whose price is not known here; `, h("code", {}, "limits.prices"), " can set it."),
    table(`Cost by ${BY[by]}`, columns, groups, 1),
  ];
}
