// The passage: that of the chosen sentence with the quote marked, and before there is one, the passages that are read.

import { passage } from "./api.js";
import { add, direction, h, shape } from "./dom.js";
import { failed } from "./failure.js";
import { Notes, place, written } from "./passage.js";
import { said } from "./server.js";
import { t } from "./words.js";

const MOST_SHOWN = 6;

/** What of a passage is marked: of a quotation its sentence, else all that is cited. */
const marked = ({ sentence, start = 0, end = 0 }) => sentence ?? [start, end];

/** The address of the book at a citation. */
export const bookAt = (citation) => `#/book?${new URLSearchParams({
  source: citation.source, passage: citation.parent_id ?? citation.id, start: marked(citation)[0], end: marked(citation)[1],
})}`;

/** Where a passage stands: its work, and the headings above it. */
export const whereabouts = (of) => h("p.where", { dir: direction(of.title || of.source) }, h("cite", of.title || of.source), h("span", { dir: "auto" }, place(of).join(" › ")));

/** Bring a mark into view, also where it stands far to the side in a table. */
function reach(body, mark) {
  const [inside, outside] = [mark.getBoundingClientRect(), body.getBoundingClientRect()];
  const below = inside.top - outside.top + body.scrollTop;
  if (below > body.clientHeight / 2) body.scrollTop = below - body.clientHeight / 3;
  const table = mark.closest(".table");
  if (!table) return;
  const [cell, frame] = [mark.getBoundingClientRect(), table.getBoundingClientRect()];
  if (cell.left < frame.left || cell.right > frame.right) table.scrollLeft += cell.left - frame.left - 16;
}

/** The pane: `show(choice)` opens the passages of a sentence, `read(documents)` lists passages, `clear()` empties it. */
export function besidePane(onClose = () => {}) {
  const body = h("div.beside-body", { tabindex: "0", role: "group", "aria-labelledby": "beside-head" });
  const head = h("h2", { id: "beside-head" }, t("beside"));
  const pane = h("aside.beside", { "aria-labelledby": "beside-head", tabindex: "-1" },
    h("header", head, h("button.link.close", { type: "button", click: onClose }, t("closePane"))), body);
  let shown = 0;

  function clear() {
    shown += 1;
    head.textContent = t("beside");
    pane.classList.remove("open");
    body.replaceChildren(h("p.hint", t("besideEmpty")));
  }

  /** Show what is read while nothing is said about it yet: here, or where there is no room in the `list` of the turn. */
  async function read(documents, list) {
    shown += 1;
    const now = shown;
    const parts = documents.map((one) => h("section.hit", whereabouts(one)));
    if (list) {
      list.replaceChildren(h("h3", t("passagesRead", documents.length)), ...parts);
    } else {
      head.textContent = t("passagesRead", documents.length);
      body.replaceChildren(...parts);
      body.scrollTop = 0;
    }
    for (const [index, one] of documents.slice(0, MOST_SHOWN).entries()) {
      const found = await passage(one.id).catch(() => null);
      if (now !== shown) return;
      if (found) parts[index].replaceChildren(whereabouts(found.passage), h("div.passage.cut", { lang: found.passage.language }, written(found.passage)), h("p.actions", h("a.link", { href: bookAt({ ...one, start: 0, end: 0 }) }, t("openBook"))));
    }
  }

  async function show({ claim, citations }, index = 0) {
    shown += 1;
    const now = shown;
    head.textContent = t("beside");
    const verdict = h("p.judged", h(`span.verdict.${claim.verdict}`, shape(claim.verdict), t(`verdict.${claim.verdict}`)), claim.reason && h("span.reason", said(claim.reason)));
    const tabs = citations.length > 1 && h("div.tabs", { role: "group", "aria-label": t("beside") }, citations.map((citation, number) => h(
      "button", { type: "button", "aria-pressed": String(number === index), click: () => show({ claim, citations }, number) }, t("passageOf", citation.number))));
    const text = h("div.text", { "aria-busy": "true" }, citations[index] && h("p.hint", citations[index].quote)); // until its passage is there
    body.replaceChildren(verdict, ...(tabs ? [tabs] : []), text);
    pane.classList.add("open");
    body.scrollTop = 0;
    const citation = citations[index];
    if (!citation) {
      text.replaceChildren(h("p.hint", t("noPassage")));
      text.removeAttribute("aria-busy");
      return;
    }
    try {
      const { passage: whole, before, after } = await passage(citation.parent_id);
      if (now !== shown) return;
      const notes = new Notes();
      const mark = marked(citation);
      text.replaceChildren(
        whereabouts({ ...whole, page: citation.page ?? whole.page }),
        ...before.slice(-1).map((one) => h("div.neighbour", { lang: one.language }, written(one))),
        h("div.passage", { lang: whole.language, class: citation === claim.against && "passage against" }, written(whole, { mark, words: citation.words ?? [], notes })),
        ...after.slice(0, 1).map((one) => h("div.neighbour", { lang: one.language }, written(one))),
        notes.list,
        h("p.actions", h("a.button", { href: bookAt(citation) }, t("openBook"))),
      );
      const first = text.querySelector("mark");
      if (first) reach(body, first);
    } catch (error) {
      if (now !== shown) return;
      const lost = error.status === 404;
      text.replaceChildren();
      add(text, lost ? [h("p.hint", t("gone")), h("blockquote", h("mark", citation.quote))] : failed(error));
    } finally {
      text.removeAttribute("aria-busy");
    }
  }

  clear();
  return { pane, show, read, clear };
}
