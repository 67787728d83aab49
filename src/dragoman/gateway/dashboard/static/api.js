// The gateway's answers. A 401 means that somebody must log in first.

export class NeedsLogin extends Error {}

export async function get(path, query = {}) {
  const url = address(path);
  for (const [name, value] of Object.entries(query)) if (value) url.searchParams.set(name, value);
  return read(await ask(url, { headers: { accept: "application/json" } }));
}

export async function post(path, body = {}, headers = {}) {
  const sent = { "content-type": "application/json", accept: "application/json", ...headers };
  return read(await ask(address(path), { method: "POST", body: JSON.stringify(body), headers: sent }));
}

export const logIn = (key) => post("login", {}, { authorization: `Bearer ${key}` });
export const logOut = () => post("logout");

/** Beside the page, whatever prefix a proxy has put in front of it. */
export function address(path) {
  return new URL(`dashboard/api/${path}`, document.baseURI.split("#")[0]);
}

async function ask(url, options) {
  try {
    return await fetch(url, { ...options, credentials: "same-origin", cache: "no-store" });
  } catch {
    throw new Error("The gateway does not answer. Is it still running?");
  }
}

async function read(response) {
  const body = await response.json().catch(() => null);
  if (response.ok && body !== null) return body;
  const why = body?.error?.message ?? `The gateway answered with HTTP ${response.status}.`;
  throw response.status === 401 ? new NeedsLogin(why) : new Error(why);
}

/** Events of the traffic as it happens; the browser connects again by itself until `close`. */
export function listen(handlers) {
  const source = new EventSource(address("live"));
  source.addEventListener("hello", () => handlers.here());
  source.addEventListener("rows", (event) => handlers.rows(JSON.parse(event.data)));
  source.addEventListener("trouble", () => handlers.away("The store does not answer"));
  source.addEventListener("bye", () => handlers.away("The gateway is stopping"));
  source.addEventListener("error", () => {
    handlers.away("Reconnecting");
    // A refusal ends it for good; whoever must log in again is told by the next request.
    if (source.readyState === EventSource.CLOSED) setTimeout(handlers.closed, 3000);
  });
  return source;
}
