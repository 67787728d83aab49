// What was said, as people read it: instructions, questions, thoughts, calls with their results.

import { copyButton, h, icon } from "./dom.js";
import { jsonView, longText, parse } from "./json.js";

const RECENT = 12; // turns that are shown at once
const LONG = 4000;

export function conversationView(shown) {
  const results = new Map();
  for (const turn of shown.turns) for (const piece of turn.pieces) if (piece.kind === "result" && piece.id) results.set(piece.id, piece);
  const taken = new Set();
  const turns = shown.turns.map((turn) => turnView(turn, results, taken)).filter(Boolean);
  const older = turns.slice(0, Math.max(0, turns.length - RECENT));
  const rest = turns.slice(older.length);
  const unfold = older.length > 0 && h("button.plain", { type: "button" }, `Show ${older.length} earlier turn${older.length > 1 ? "s" : ""}`);
  const list = h("ol.turns", {}, rest);
  unfold && unfold.addEventListener("click", () => (list.prepend(...older), unfold.remove()));
  return h(
    "div.conversation",
    {},
    shown.trouble && h("p.warning", {}, shown.trouble),
    shown.system.length > 0 && folded(`Instructions (${shown.system.join("").length.toLocaleString("en")} characters)`, shown.system.map((text) => prose(text))),
    shown.tools.length > 0 && folded(`${shown.tools.length} tool${shown.tools.length > 1 ? "s" : ""} declared`, h("dl.declared", {}, shown.tools.map((tool) => [h("dt", {}, tool.name), h("dd", {}, longText(tool.description || "–", "plain-text", 300))]))),
    unfold,
    list,
  );
}

function folded(title, ...children) {
  return h("details.card.folded", {}, h("summary", {}, title), h("div", {}, children));
}

const ROLES = { user: "User", model: "Model", system: "Program" };

function turnView(turn, results, taken) {
  const pieces = turn.pieces.map((piece) => pieceView(piece, results, taken)).filter(Boolean);
  if (!pieces.length) return null;
  const answer = turn.by !== "client";
  const who = turn.by === "gateway" ? "Gateway’s tools" : ROLES[turn.role];
  return h(`li.turn.${turn.role}${answer ? ".answer" : ""}`, {}, h("div.who", {}, h("b", {}, who), answer && turn.role === "model" && h("small", {}, "this answer")), h("div.said", {}, pieces));
}

function pieceView(piece, results, taken) {
  if (piece.kind === "text") return prose(piece.text);
  if (piece.kind === "thought") return h("details.thought", {}, h("summary", {}, "Thinking"), prose(piece.text));
  if (piece.kind === "call") {
    const result = results.get(piece.id);
    if (result) taken.add(result);
    return callView(piece, result);
  }
  if (piece.kind === "result") return taken.has(piece) ? null : callView(null, piece);
  if (piece.kind === "media") return mediaView(piece);
  return h("details.thought", {}, h("summary", {}, piece.name || "Gemini’s own"), json(piece.data));
}

function callView(call, result) {
  const failed = result?.failed;
  const name = call?.name || result?.name || "a tool";
  return h(
    `div.call${failed ? ".bad" : ""}`,
    {},
    h(
      "header",
      {},
      icon("wrench"),
      h("b", {}, name),
      (call ?? result).server && h("span.chip", {}, "run by Google"),
      failed && h("span.chip.bad", {}, "failed"),
      !call && h("span.muted.small", {}, "result"),
      call && !result && h("span.muted.small", {}, "called"),
      copyButton(() => call?.data ?? result?.text ?? ""),
    ),
    call && h("div.args", {}, json(call.data)),
    result && h("div.result", {}, h("span.result-label", {}, "result"), result.text ? prose(result.text) : null, result.data ? json(result.data) : null, !result.text && !result.data && h("p.muted", {}, "(nothing)")),
  );
}

function json(text) {
  try {
    return jsonView(parse(text));
  } catch {
    return prose(text);
  }
}

function mediaView(piece) {
  if (!piece.data) return h("p.media", {}, `${piece.mime || "a file"}: ${piece.text}`);
  return h("img.picture", { src: `data:${piece.mime};base64,${piece.data}`, alt: `a picture of the conversation (${piece.mime})` });
}

function prose(text) {
  return h("div.prose", {}, longText(text, "plain-text", LONG));
}
