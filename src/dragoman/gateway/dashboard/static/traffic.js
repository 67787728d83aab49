// Requests as they come: a list that stays usable with many thousands, and filters over what is loaded.

import { NeedsLogin, get, listen } from "./api.js";
import { activity } from "./charts.js";
import { empty, failed, h, replace } from "./dom.js";
import { Filters } from "./filters.js";
import { compact, dialect, duration, money, moment, number, percent, spent } from "./format.js";
import { VirtualList } from "./list.js";

const PAGE = 500;
const MOST = 20_000; // rows that are kept; the ledger keeps no more either
const MINUTES = 60;
const REDRAW_MS = 250;

export async function trafficView({ query, gateway, leave }) {
  const known = new Map();
  let rows = [];
  let next = "";
  let loading = false;
  let closed = false;
  let source = null;
  let timer = 0;

  const state = h("span.live", { role: "status" }, "Connecting");
  const stats = h("div.stats");
  const count = h("span.count", { role: "status" });
  const filters = new Filters(query, () => draw());
  const body = h("div.list-frame");
  const list = new VirtualList({
    label: "Requests",
    head: head(),
    draw: row,
    onEnd: () => more(),
    onOpen: (item) => (location.hash = `#/request/${item.id}`),
    rowHeight: () => (matchMedia("(max-width: 760px)").matches ? 66 : 44),
  });

  function merge(fresh) {
    for (const one of fresh) known.set(one.id, one);
    rows = [...known.values()].sort((a, b) => b.at_ms - a.at_ms || (a.id < b.id ? 1 : -1));
    for (const old of rows.splice(MOST)) known.delete(old.id);
  }

  function draw() {
    filters.offer(rows);
    const shown = rows.filter(filters.test());
    list.set(shown);
    list.element.setAttribute("aria-rowcount", String(shown.length + 1));
    const all = next ? `newest ${number(rows.length)}` : `${number(rows.length)} request${rows.length === 1 ? "" : "s"}`;
    count.textContent = shown.length === rows.length ? all : `${number(shown.length)} of the ${all}`;
    if (!shown.length) replace(body, nothing(rows.length));
    else if (list.element.parentNode !== body) replace(body, list.element); // put anew it would lose its place
    drawStats();
  }

  function nothing(loaded) {
    if (loaded) return empty("Nothing fits these filters", next ? "Older requests are being looked through…" : "Take one of them away.");
    if (!gateway.ledger) return empty("The ledger is switched off", h("span", {}, "Requests are listed where ", h("code", {}, "observe.ledger"), " is true."));
    return empty("No request yet", "Point a client at this gateway, and what it asks appears here at once.", h("code", {}, "dragoman claude"));
  }

  function drawStats() {
    const now = Date.now();
    const recent = rows.filter((one) => one.at_ms > now - MINUTES * 60_000);
    const bad = recent.filter((one) => one.error).length;
    const times = recent.filter((one) => !one.error).map((one) => one.total_ms).sort((a, b) => a - b);
    const tokens = recent.reduce((sum, one) => sum + (one.tokens_in ?? 0) + (one.tokens_out ?? 0), 0);
    const cost = recent.reduce((sum, one) => sum + (one.cost_usd ?? 0), 0);
    const calls = recent.reduce((sum, one) => sum + (one.calls?.length ?? 0) + (one.own_calls?.length ?? 0), 0);
    const bars = Array.from({ length: MINUTES }, (_, index) => ({ good: 0, bad: 0, title: `${MINUTES - index - 1} minutes ago` }));
    for (const one of recent) {
      const bar = bars[MINUTES - 1 - Math.min(MINUTES - 1, Math.max(0, Math.floor((now - one.at_ms) / 60_000)))];
      one.error ? bar.bad++ : bar.good++;
    }
    for (const bar of bars) bar.title = `${bar.title}: ${bar.good + bar.bad} requests, ${bar.bad} failed`;
    replace(
      stats,
      stat("requests", compact(recent.length)),
      stat("failed", percent(bad, recent.length), bad ? "bad" : ""),
      stat("tool calls", compact(calls)),
      stat("tokens", compact(tokens)),
      stat("cost", spent(cost, recent.filter((one) => one.cost_usd === undefined).length)),
      stat("median time", times.length ? duration(times[Math.floor(times.length / 2)]) : "–"),
      h("figure.hour", {}, activity(bars, `Requests of the last hour: ${recent.length}, ${bad} failed`), h("figcaption", {}, "last hour, by minute")),
    );
  }

  async function more() {
    if (loading || !next || rows.length >= MOST || closed) return;
    await load(next);
  }

  async function load(before = "") {
    loading = true;
    try {
      const page = await get("requests", { limit: PAGE, before, session: query.get("session") });
      if (closed) return;
      merge(page.rows);
      if (before || !next) next = page.next;
      loading = false;
      draw();
    } catch (error) {
      loading = false;
      if (error instanceof NeedsLogin) return leave();
      if (!rows.length) replace(body, failed(error, () => load()));
    }
  }

  function connect() {
    source = listen({
      here: () => {
        state.className = "live on";
        state.textContent = "Live";
        load();
      },
      rows: (fresh) => {
        merge(query.get("session") ? fresh.filter((one) => one.session === query.get("session")) : fresh);
        timer ||= setTimeout(() => ((timer = 0), closed || draw()), REDRAW_MS);
      },
      away: (why) => {
        state.className = "live off";
        state.textContent = `${why}…`;
      },
      closed: async () => {
        source.close();
        if (closed) return;
        try {
          await get("me");
        } catch (error) {
          if (error instanceof NeedsLogin) return leave();
        }
        connect();
      },
    });
  }

  const ticking = setInterval(drawStats, 15_000);
  draw();
  return {
    element: h("section.view.traffic", {}, h("div.title", {}, h("h1", {}, "Traffic"), state), stats, h("div.bar", {}, filters.element, count), body),
    shown: connect,
    close() {
      closed = true;
      source?.close();
      clearInterval(ticking);
      clearTimeout(timer);
      list.close();
    },
    pressed(event) {
      if (event.key === "j" || event.key === "ArrowDown") list.move(1);
      else if (event.key === "k" || event.key === "ArrowUp") list.move(-1);
      else if (event.key === "/") filters.focus();
      else if (event.key === "Enter" && !event.target.closest("a, button")) list.openSelected();
      else if (event.key === "Escape" && filters.any()) filters.clear();
      else return false;
      return true;
    },
  };
}

function stat(label, value, kind = "") {
  return h("div.stat", {}, h(`span.value${kind && `.${kind}`}`, {}, value), h("span.label", {}, label));
}

const COLUMNS = ["Time", "Client", "Model", "What happened", "Tokens", "Cost", "Took", "Notes"];

function head() {
  return h("div.head", { role: "rowgroup" }, h("div.row-grid", { role: "row" }, COLUMNS.map((name) => h("span", { role: "columnheader", class: name.toLowerCase().replace(" ", "-") }, name))));
}

function row(one) {
  const cell = (name, ...children) => h(`span.${name}`, { role: "cell" }, ...children);
  const bad = Boolean(one.error) || one.status >= 400;
  return h(
    `div.row.row-grid${bad ? ".bad" : ""}`,
    { role: "row" },
    cell("time", h(`i.dot${bad ? ".bad" : one.left ? ".left" : ""}`, { "aria-hidden": "true" }), h("a.cover", { href: `#/request/${one.id}`, draggable: "false" }, moment(one.at_ms))),
    cell("client", h("b", {}, one.client || "unknown"), h("small", {}, dialect(one.dialect ?? ""))),
    cell("model", one.model || one.asked_model || "–"),
    cell("happened", happened(one, bad)),
    cell("tokens", h("span", {}, compact(one.tokens_in ?? 0)), h("span.arrow", {}, "→"), h("span", {}, compact(one.tokens_out ?? 0))),
    cell("cost", money(one.cost_usd)),
    cell("took", duration(one.total_ms ?? 0)),
    cell("notes", one.notes ? h("span.note-count", { title: "notes of the translation" }, one.notes) : ""),
  );
}

function happened(one, bad) {
  if (bad) return [h("span.chip.bad", {}, words(one.error) || `HTTP ${one.status}`), one.attempts > 1 && h("small", {}, `${one.attempts} attempts`)];
  const tools = [...(one.calls ?? []), ...(one.own_calls ?? [])];
  if (tools.length) {
    const counted = [...tools.reduce((all, name) => all.set(name, (all.get(name) ?? 0) + 1), new Map())];
    const shown = counted.slice(0, 3).map(([name, times]) => h("span.chip.tool", {}, name, times > 1 && h("b", {}, ` ×${times}`)));
    return [...shown, counted.length > 3 && h("small", {}, `+${counted.length - 3}`)];
  }
  if (one.left) return h("small", {}, "client left");
  const results = one.results ? `answered ${one.results} result${one.results > 1 ? "s" : ""}` : "answered";
  return [h("small", {}, results), one.failed_results > 0 && h("span.chip.bad", {}, `${one.failed_results} failed`)];
}

const words = (kind) => (kind ?? "").replaceAll("_", " ");
