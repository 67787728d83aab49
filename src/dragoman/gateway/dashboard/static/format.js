// Numbers and times for people.

const NUMBER = new Intl.NumberFormat("en");
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const WHOLE = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export const number = (value) => NUMBER.format(value);
export const compact = (value) => (value < 10_000 ? NUMBER.format(value) : COMPACT.format(value));
export const clock = (ms) => CLOCK.format(ms);
export const whole = (ms) => WHOLE.format(ms);

/** The time of day; with its date where that is not today. */
export function moment(ms) {
  const today = new Date().toDateString() === new Date(ms).toDateString();
  return today ? CLOCK.format(ms) : `${DAY.format(ms)} ${CLOCK.format(ms).slice(0, 5)}`;
}

export const day = (text) => DAY.format(new Date(`${text}T12:00:00Z`));

export function ago(ms, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - ms) / 1000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

export function duration(ms) {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

export function money(usd) {
  if (usd === null || usd === undefined) return "?";
  if (usd === 0) return "$0";
  if (usd < 0.01) return `$${usd.toFixed(4)}`;
  return usd < 100 ? `$${usd.toFixed(2)}` : `$${NUMBER.format(Math.round(usd))}`;
}

/** A sum that some requests are missing in, because nobody here knows their price. */
export function spent(usd, unpriced) {
  if (!unpriced) return money(usd);
  return usd ? `${money(usd)} + ?` : "?";
}

export function bytes(size) {
  if (size < 1024) return `${size} B`;
  if (size < 1024 * 1024) return `${(size / 1024).toFixed(1)} KB`;
  return `${(size / 1024 / 1024).toFixed(1)} MB`;
}

export const percent = (part, all) => (all ? `${((100 * part) / all).toFixed(part === 0 || part === all ? 0 : 1)} %` : "–");

const DIALECTS = {
  anthropic: "Anthropic",
  openai_chat: "OpenAI Chat",
  openai_responses: "OpenAI Responses",
  gemini: "Gemini",
  bedrock: "Bedrock",
  amazonq: "Amazon Q",
};
export const dialect = (name) => DIALECTS[name] ?? name;

/** Ids are told apart by their ends. */
export const short = (id, most = 14) => (id.length <= most ? id : `${id.slice(0, most - 5)}…${id.slice(-4)}`);
