// Charts as plain SVG; colours are classes, so that they change with the theme.

import { h, svg } from "./dom.js";

const WIDTH = 720;

/** Bars in a row, failures on top of what went well; `bars` are {good, bad, title}. */
export function activity(bars, label) {
  const height = 56;
  const most = Math.max(1, ...bars.map((bar) => bar.good + bar.bad));
  const step = WIDTH / bars.length;
  const shapes = bars.map((bar, index) => {
    const good = (bar.good / most) * (height - 4);
    const bad = (bar.bad / most) * (height - 4);
    const x = index * step + step * 0.15;
    const width = step * 0.7;
    return svg(
      "g",
      {},
      svg("title", {}, bar.title),
      svg("rect.bar-base", { x, y: height - 1.5, width, height: 1.5 }),
      good > 0 && svg("rect.bar-good", { x, y: height - Math.max(2, good), width, height: Math.max(2, good), rx: 1.5 }),
      bad > 0 && svg("rect.bar-bad", { x, y: height - good - Math.max(2, bad), width, height: Math.max(2, bad), rx: 1.5 }),
    );
  });
  return svg("svg.activity", { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, shapes);
}

/** Stacked bars by day: `series` are {name, values}; `format` writes a value, `axis` a day. */
export function stacked(days, series, { label, format, axis, width }) {
  const [left, bottom, top, height] = [56, 26, 8, width < 500 ? 220 : 300];
  const totals = days.map((_, index) => series.reduce((sum, one) => sum + one.values[index], 0));
  const ceiling = niceCeiling(Math.max(...totals, 0));
  const inner = height - top - bottom;
  const step = (width - left) / days.length;
  const y = (value) => top + inner - (value / ceiling) * inner;
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => [
    svg("line.grid", { x1: left, x2: width, y1: y(share * ceiling), y2: y(share * ceiling) }),
    svg("text.axis", { x: left - 8, y: y(share * ceiling) + 4, "text-anchor": "end" }, format(share * ceiling)),
  ]);
  const every = Math.ceil((days.length * 90) / (width - left));
  const bars = days.map((day, index) => {
    let base = 0;
    const parts = series.map((one, place) => {
      const value = one.values[index];
      if (!value) return null;
      const shape = svg(`rect.c${place % 8}`, {
        x: left + index * step + step * 0.14,
        y: y(base + value),
        width: step * 0.72,
        height: Math.max(0.5, y(base) - y(base + value)),
      });
      base += value;
      return shape;
    });
    const words = series.filter((one) => one.values[index]).map((one) => `${one.name}: ${format(one.values[index])}`);
    return svg(
      "g.day",
      {},
      svg("title", {}, [`${axis(day)}: ${format(totals[index])}`, ...words].join("\n")),
      svg("rect.hit", { x: left + index * step, y: top, width: step, height: inner }),
      parts,
      index % every === 0 &&
        svg("text.axis", { x: left + (index + 0.5) * step, y: height - 6, "text-anchor": "middle" }, axis(day)),
    );
  });
  return svg("svg.stacked", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, grid, bars);
}

function niceCeiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 4, 5, 10].map((one) => one * power).find((one) => one >= value);
}

/** A share of a whole, as a thin bar beside its number. */
export function meter(share, kind = "") {
  const width = Math.max(0, Math.min(1, share)) * 100;
  const bar = svg(
    "svg.meter",
    { viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect.meter-base", { width: 100, height: 6, rx: 3 }),
    width > 0 && svg(`rect.meter-value${kind && `.${kind}`}`, { width: Math.max(3, width), height: 6, rx: 3 }),
  );
  return bar;
}

export function legend(names) {
  return h(
    "ul.legend",
    {},
    names.map((name, place) => h("li", {}, svg("svg.swatch", { viewBox: "0 0 10 10", "aria-hidden": "true" }, svg(`rect.c${place % 8}`, { width: 10, height: 10, rx: 2 })), name)),
  );
}
