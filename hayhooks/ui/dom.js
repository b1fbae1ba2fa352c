// Elements are made here and nowhere from markup, so that no text of a book, an answer or a name can become any.

const SVG = "http://www.w3.org/2000/svg";

// What holds text of books and of people runs as that text does, whatever the language of the page.
const TEXTS = new Set("p h1 h2 h3 h4 h5 blockquote td pre cite q del input textarea option dd".split(" "));

/** Make an element: `h("p.note", {lang: "zh"}, "text", child)`. Functions are listeners, null children are left out. */
export function h(name, given, ...children) {
  const [tag, ...classes] = name.split(".");
  const made = document.createElement(tag || "div");
  if (TEXTS.has(tag)) made.dir = "auto";
  if (classes.length) made.className = classes.join(" ");
  const plain = given === null || typeof given !== "object" || given instanceof Node || Array.isArray(given);
  for (const [key, value] of Object.entries(plain ? {} : given)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(key, value);
    else if (key === "value") made.value = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  add(made, plain ? [given, ...children] : children);
  return made;
}

const RIGHT_TO_LEFT = /^[^\p{L}]*[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}]/u;

/** Tell which way a text runs, for what is laid out around it. */
export const direction = (text) => (RIGHT_TO_LEFT.test(text) ? "rtl" : "ltr");

/** Append texts and elements, in lists of any depth. */
export function add(parent, children) {
  const flat = [children].flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  parent.append(...flat.map((child) => (child instanceof Node ? child : String(child))));
  return parent;
}

/** Draw a picture of one or more paths on a square of 16. */
export function icon(paths, name = "icon") {
  const drawn = document.createElementNS(SVG, "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 16 16", class: name, "aria-hidden": "true" })) {
    drawn.setAttribute(key, value);
  }
  for (const path of [paths].flat()) {
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("d", path.d ?? path);
    if (path.fill) line.setAttribute("class", "full");
    drawn.append(line);
  }
  return drawn;
}

const RING = "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2z";
const SHAPES = {
  supported: [{ d: RING, fill: true }],
  partial: [RING, { d: "M8 2a6 6 0 0 0 0 12z", fill: true }],
  unsupported: [RING],
  contradicted: ["M3 3l10 10M13 3L3 13"],
  closest: [RING, { d: "M8 6.5a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3z", fill: true }],
  quoted: [{ d: "M3 8c0-3 1-5 4-5v2C6 5 5 6 5 7h2v5H3zM9 8c0-3 1-5 4-5v2c-1 0-2 1-2 2h2v5H9z", fill: true }],
};

/** Draw a verdict: each has its own shape, so that no colour is needed to tell them apart. */
export const shape = (verdict) => icon(SHAPES[verdict] ?? SHAPES.unsupported, "shape");

/** Cut a text by code points, in which the server counts. */
export const slice = (text, start, end) => Array.from(text).slice(start, end).join("");

/** Keep something for this tab or, with `localStorage`, this browser; a browser that keeps nothing forgets it. */
export function kept(name, value, place = sessionStorage) {
  try {
    if (value === undefined) return JSON.parse(place.getItem(`shiguan.${name}`));
    if (value === null) place.removeItem(`shiguan.${name}`);
    else place.setItem(`shiguan.${name}`, JSON.stringify(value));
  } catch { /* kept nowhere */ }
  return value ?? null;
}

/** Give a file to the reader. */
export function download(name, text, type) {
  const link = h("a", { href: URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Say something for a moment at the foot of the page; `action` is a button's word and what it does. */
export function toast(text, action = null, seconds = 6) {
  const box = document.querySelector(".toasts");
  const note = h("div.toast", h("span", text));
  const close = () => note.remove();
  if (action) note.append(h("button.link", { type: "button", click: () => { close(); action[1](); } }, action[0]));
  box.append(note);
  setTimeout(close, seconds * 1000);
  return close;
}
