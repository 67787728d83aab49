// The same request once more, and what is different this time.

import { post } from "./api.js";
import { copyButton, h, icon, replace } from "./dom.js";

const VERDICTS = { same: "the same, byte for byte", spaces: "the same but for white space", ids: "the same but for ids and times", different: "different" };

export function replayView(shown, gateway) {
  const panel = h("div.replay.card", { hidden: true, "aria-live": "polite" });
  const button = h("button.plain.again", { type: "button", "aria-expanded": "false", disabled: Boolean(shown.replay), title: shown.replay ? `It cannot be replayed: ${shown.replay}` : "Send it again and compare" }, icon("again"), "Replay");
  const model = h("input", { type: "text", id: "replay-model", placeholder: shown.row.model, spellcheck: "false", autocomplete: "off" });
  const google = gateway.backend !== "emulator";
  const against = h("select", { id: "replay-against" }, google && h("option", { value: "" }, "Google, which costs tokens"), h("option", { value: "emulator" }, "the emulator, for nothing"));
  const result = h("div.replay-result");
  const send = h("button.primary", { type: "submit" }, "Send again");
  const form = h(
    "form.replay-form",
    {},
    h("label", { for: "replay-against" }, "Against"),
    against,
    h("label", { for: "replay-model" }, "Model"),
    model,
    send,
    h("p.muted.small", {}, "No conversation, budget or capture changes. Tools that the gateway runs itself run again."),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    replace(result, h("p.muted", {}, "Asking…"));
    try {
      const body = { against: google ? against.value : "", model: model.value.trim() };
      replace(result, ...resultOf(await post(`requests/${encodeURIComponent(shown.row.id)}/replay`, body)));
    } catch (error) {
      replace(result, h("p.warning", { role: "alert" }, error.message));
    }
    send.disabled = false;
  });
  replace(panel, form, result);
  button.addEventListener("click", () => {
    panel.hidden = !panel.hidden;
    button.setAttribute("aria-expanded", String(!panel.hidden));
  });
  return { button, panel };
}

function resultOf(replayed) {
  const { asked, given, facts } = replayed.comparison;
  return [
    replayed.cleaned && h("p.warning", {}, "What looked like a secret was taken out of this capture, so the request is not quite the same."),
    diff("What Google is asked", asked),
    h("dl.then-now", {}, facts.map((fact) => h(`div${fact.then === fact.now ? "" : ".changed"}`, {}, h("dt", {}, fact.name), h("dd", {}, fact.then === fact.now ? fact.now || "–" : [h("del", {}, fact.then || "–"), " → ", h("ins", {}, fact.now || "–")])))),
    diff("What the client gets", given),
  ];
}

const KINDS = { "+": "added", "-": "removed", "@": "hunk" };

function diff(title, compared) {
  const lines = compared.lines.map((line) => h(`div.${KINDS[line[0]] ?? "kept"}`, {}, line || " "));
  return h(
    "section.diff",
    {},
    h("h3", {}, `${title}: `, h(`span.${compared.verdict}`, {}, VERDICTS[compared.verdict]), lines.length > 0 && copyButton(() => compared.lines.join("\n"))),
    lines.length > 0 && h("div.diff-lines", { tabindex: "0", role: "region", "aria-label": title }, lines),
  );
}
