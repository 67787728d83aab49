// Elements from values. Text is always a text node: nothing that anybody wrote becomes markup.

const SVG = "http://www.w3.org/2000/svg";

/** h("div.card", {onclick, title}, child, …): `class` words behind dots; children are nodes, text, or nothing. */
export function h(name, attributes, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  return fill(element, attributes, children);
}

export function svg(name, attributes, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElementNS(SVG, tag);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  return fill(element, attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

const ICONS = {
  traffic: "M3 12h4l3-8 4 16 3-8h4",
  sessions: "M4 5h16v11H9l-5 4z",
  tools: "M14.5 6.5a4 4 0 0 0-5 5L4 17l3 3 5.5-5.5a4 4 0 0 0 5-5L15 12l-3-3z",
  models: "M12 3l8 4.5v9L12 21l-8-4.5v-9zM12 12l8-4.5M12 12v9M12 12L4 7.5",
  cost: "M4 20V10M10 20V4M16 20v-7M21 20H3",
  theme: "M12 3a9 9 0 1 0 9 9 7 7 0 0 1-9-9z",
  keys: "M4 7h16v10H4zM8 11h.01M12 11h.01M16 11h.01M8 14h8",
  leave: "M10 4H5v16h5M14 8l4 4-4 4M18 12H9",
  back: "M14 6l-6 6 6 6",
  copy: "M9 9h10v11H9zM5 15V4h10",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l4 4",
  again: "M4 12a8 8 0 1 0 3-6.2M4 4v4h4",
  wrench: "M14.5 6.5a4 4 0 0 0-5 5L4 17l3 3 5.5-5.5a4 4 0 0 0 5-5L15 12l-3-3z",
};

export function icon(name) {
  return svg("svg.icon", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

/** A button that copies what `text()` gives and says so. */
export function copyButton(text, label = "Copy") {
  const said = h("span", {}, label);
  const button = h("button.quiet.copy", { type: "button", title: label }, icon("copy"), said);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      said.textContent = "Copied";
    } catch {
      said.textContent = "Not allowed here";
    }
    setTimeout(() => (said.textContent = label), 1600);
  });
  return button;
}

/** What stands where there is nothing yet, or nothing left. */
export function empty(title, ...words) {
  return h("div.empty", {}, h("p.empty-title", {}, title), ...words.map((one) => h("p", {}, one)));
}

export function failed(error, again) {
  return h(
    "div.empty.failed",
    { role: "alert" },
    h("p.empty-title", {}, "This could not be loaded"),
    h("p", {}, error.message),
    again && h("button.plain", { type: "button", onclick: again }, "Try again"),
  );
}
