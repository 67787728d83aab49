// What the keys do.

import { h } from "./dom.js";

const KEYS = [
  ["j  k", "next, previous request"],
  ["Enter", "open it"],
  ["Esc", "back, or out of a field"],
  ["/", "search"],
  ["1 … 4", "in a request: conversation, stages, notes, record"],
  ["g t", "traffic"],
  ["g s", "sessions"],
  ["g o", "tools"],
  ["g m", "models and keys"],
  ["g c", "cost"],
  ["d", "light or dark"],
  ["?", "this list"],
];

export function help() {
  if (document.querySelector("dialog[open]")) return;
  const rows = KEYS.map(([keys, words]) => [
    h("dt", {}, keys.split(/\s+/).map((one) => (one === "…" ? " … " : h("kbd", {}, one)))),
    h("dd", {}, words),
  ]);
  const close = h("button.plain", { type: "button", onclick: () => dialog.close() }, "Close");
  const dialog = h("dialog.card", { "aria-labelledby": "keys-title" }, h("h2", { id: "keys-title" }, "Keys"), h("dl.keys", {}, rows), close);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
}
