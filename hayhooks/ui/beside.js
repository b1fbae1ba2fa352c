// Beside it: the passage of the chosen sentence, the quote marked, and the way into the book.

import { passage } from "./api.js";
import { add, h, shape } from "./dom.js";
import { failed } from "./failure.js";
import { Notes, place, written } from "./passage.js";
import { t } from "./words.js";

/** The address of the book at a citation. */
export const bookAt = (citation) => `#/book?${new URLSearchParams({
  source: citation.source, passage: citation.parent_id ?? citation.id, start: citation.start ?? 0, end: citation.end ?? 0,
})}`;

/** The pane: `show(choice)` opens the passages of a sentence, `clear()` empties it. */
export function besidePane(onClose = () => {}) {
  const body = h("div.beside-body");
  const pane = h("aside.beside", { "aria-labelledby": "beside-head", tabindex: "-1" },
    h("header", h("h2", { id: "beside-head" }, t("beside")), h("button.link.close", { type: "button", click: onClose }, t("closePane"))), body);
  let shown = 0;

  function clear() {
    shown += 1;
    pane.classList.remove("open");
    body.replaceChildren(h("p.hint", t("besideEmpty")));
  }

  async function show({ claim, citations }, index = 0) {
    shown += 1;
    const now = shown;
    const head = h("p.judged", h(`span.verdict.${claim.verdict}`, shape(claim.verdict), t(`verdict.${claim.verdict}`)), claim.reason && h("span.reason", claim.reason));
    const tabs = citations.length > 1 && h("div.tabs", { role: "group" }, citations.map((citation, number) => h(
      "button", { type: "button", "aria-pressed": String(number === index), click: () => show({ claim, citations }, number) }, t("passageOf", citation.number))));
    const text = h("div.text", { "aria-busy": "true" }, citations[index] && h("p.hint", citations[index].quote)); // until its passage is there
    body.replaceChildren(head, ...(tabs ? [tabs] : []), text);
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
      const mark = [citation.start, citation.end];
      text.replaceChildren(
        h("p.where", h("cite", whole.title || whole.source), h("span", place(whole).join(" › "))),
        ...before.slice(-1).map((one) => h("div.neighbour", { lang: one.language }, written(one))),
        h("div.passage", { lang: whole.language }, written(whole, { mark, words: citation.words ?? [], notes })),
        ...after.slice(0, 1).map((one) => h("div.neighbour", { lang: one.language }, written(one))),
        notes.list,
        h("p.actions", h("a.button", { href: bookAt(citation) }, t("openBook"))),
      );
      const marked = text.querySelector("mark");
      if (marked && marked.offsetTop > body.clientHeight / 2) body.scrollTop = marked.offsetTop - body.clientHeight / 3;
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
  return { pane, show, clear };
}
