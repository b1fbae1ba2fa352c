// A stored passage as text to read: paragraphs, quotations, tables, footnotes, with a quote marked in it.

import { direction, h } from "./dom.js";
import { t } from "./words.js";

/** The footnotes of a stretch of text; `list` is the element that shows them. */
export class Notes {
  constructor() {
    this.count = 0;
    this.list = h("ol.notes", { hidden: true });
  }

  put(text, marked) {
    this.count += 1;
    this.list.hidden = false;
    this.list.append(h("li", { value: this.count }, marked ? h("mark", text) : text));
    return this.count;
  }
}

/**
 * Write a passage. `mark` is the span of the quote and `words` spans inside it, in code points as the server counts.
 * Stretches that the source calls a table, a quotation or a caption are shown as such.
 */
export function written(passage, { mark = null, words = [], notes = new Notes() } = {}) {
  const text = Array.from(passage.text);
  const all = [{ start: 0, end: text.length, kind: "text" }];
  const blocks = passage.blocks?.length ? passage.blocks : all;
  const parts = [];
  let at = 0;
  for (const block of blocks) {
    if (block.start > at) between(at, block.start);
    parts.push(...drawn(block));
    at = Math.max(at, block.end);
  }
  if (at < text.length) between(at, text.length);
  return parts;

  function between(start, end) {
    if (text.slice(start, end).join("").trim()) parts.push(...drawn({ start, end, kind: "text" }));
  }

  function drawn(block) {
    if (block.kind === "table") return [h("div.table", { tabindex: "0", role: "group", "aria-label": t("table"), dir: direction(text.slice(block.start, block.end).join("")) }, h("table", h("tbody", rows(block))))];
    const lines = cut(block.start, block.end, "\n").filter(([from, to]) => text.slice(from, to).join("").trim());
    const name = { caption: "p.caption", code: "pre" }[block.kind] ?? "p";
    const made = lines.map(([from, to]) => h(name, runs(from, to, block.notes ?? [])));
    return block.kind === "quote" ? [h("blockquote", { dir: direction(text.slice(block.start, block.end).join("")) }, made)] : made;
  }

  function rows(block) {
    return cut(block.start, block.end, "\n")
      .filter(([from, to]) => to > from)
      .map(([from, to]) => h("tr", cut(from, to, "|").map(([start, end]) => h("td", runs(start, end, [])))));
  }

  function cut(start, end, by) {
    const places = [];
    let from = start;
    for (let place = start; place <= end; place += 1) {
      if (place < end && text[place] !== by) continue;
      places.push([from, place]);
      from = place + 1;
    }
    return places;
  }

  /** Cut a stretch where the mark, its words and its notes begin and end. */
  function runs(start, end, own) {
    const spans = [...(mark ? [mark] : []), ...words, ...own.map((note) => [note.start, note.end])];
    const edges = [...new Set([start, end, ...spans.flat().filter((place) => place > start && place < end)])];
    edges.sort((one, other) => one - other);
    const made = [];
    for (let place = 0; place + 1 < edges.length; place += 1) {
      const [from, to] = [edges[place], edges[place + 1]];
      const note = own.find((one) => one.start <= from && to <= one.end);
      const marked = mark && mark[0] <= from && to <= mark[1];
      if (note) {
        if (note.start === from) made.push(reference(note, marked));
        continue;
      }
      const before = own.some((one) => one.start === to);
      const piece = before ? text.slice(from, to).join("").trimEnd() : text.slice(from, to).join("");
      const key = words.some(([first, last]) => first <= from && to <= last);
      const inner = key ? h("strong", piece) : piece;
      made.push(marked ? h("mark", inner) : inner);
    }
    return made;
  }

  function reference(note, marked) {
    const whole = text.slice(note.start, note.end).join("").trim();
    const inside = whole.replace(/^\[[^:：\]]{1,12}[:：]\s*(.*)\]$/su, "$1");
    return h("sup.note", String(notes.put(inside, marked)));
  }
}

/** Name a place: the headings above a passage below the title, and its page where it has one. */
export function place(of) {
  const page = of.page ?? of.anchor?.page;
  const headings = of.section ?? [];
  return [...headings.slice(headings[0] === of.title ? 1 : 0), ...(page ? [t("page", page)] : [])];
}
