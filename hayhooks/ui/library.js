// The library: its sources and how far they are, putting in, taking out, and searching in the passages.

import { call } from "./api.js";
import { bookAt, whereabouts } from "./beside.js";
import { add, h, toast } from "./dom.js";
import { failed } from "./failure.js";
import { written } from "./passage.js";
import { limitTo } from "./scope.js";
import { said } from "./server.js";
import { bar, isAtWork, uploads } from "./uploads.js";
import { language, number, t } from "./words.js";

const AT_ONCE = 200;
const UNDO_SECONDS = 6;
const LIST_MS = 3000;
const leaving = new Map(); // name -> what deletes it now

addEventListener("pagehide", () => { for (const remove of leaving.values()) remove(); });

/** Show the library. */
export async function libraryView(main, server) {
  const list = h("div.shelf");
  const count = h("p.count", { role: "status" });
  const filter = h("input", { type: "search", id: "filter", input: () => draw() });
  let sources = [];
  let all = false;
  let due = 0;
  const parts = [h("h1", t("library")), searchForm()];
  if (server.role !== "read") parts.push(...uploads(server, load));
  main.replaceChildren(h("div.wide", parts, h("div.listhead", count, h("label", t("filter"), filter)), list));
  await load();

  async function load() {
    clearTimeout(due);
    try {
      const found = (await call("/api/v1/documents")).sources;
      if (!list.hasChildNodes() || JSON.stringify(found) !== JSON.stringify(sources)) {
        sources = found;
        const at = list.contains(document.activeElement) && document.activeElement.getAttribute("aria-label");
        draw();
        if (at) [...list.querySelectorAll("[aria-label]")].find((one) => one.getAttribute("aria-label") === at)?.focus();
      }
      if (list.isConnected && (isAtWork() || sources.some((one) => !one.complete))) due = setTimeout(load, LIST_MS);
    } catch (error) {
      list.replaceChildren(failed(error, load));
    }
  }

  function draw() {
    const wanted = filter.value.trim().toLowerCase();
    const kept = sources.filter((one) => !leaving.has(one.source) && (!wanted || `${one.source} ${one.title ?? ""}`.toLowerCase().includes(wanted)));
    count.textContent = t("works", number(kept.length));
    const rows = kept.slice(0, all ? kept.length : AT_ONCE).map(row);
    list.replaceChildren();
    add(list, [h("ul", rows), kept.length > rows.length && h("button", { type: "button", click: () => { all = true; draw(); } }, t("showAll", number(kept.length)))]);
  }

  function row(one) {
    const address = `#/book?${new URLSearchParams({ source: one.source })}`;
    return h("li.source",
      h("div.name", h("a", { href: address, lang: one.language, dir: "auto" }, one.title || one.source), one.title && h("span", one.source)),
      h("div.facts", h("span.tongue", { lang: language() }, tongue(one.language)), h("span", t("passages", number(one.passages)))),
      h("div.state", one.complete ? h("span", `✓ ${t("complete")}`) : [h("span", t("incomplete")), bar(t("words"), one.words, one.units), bar(t("vectors"), one.vectors, one.units)]),
      h("div.actions",
        h("button.link", { type: "button", "aria-label": `${t("onlyThis")}: ${one.title || one.source}`, click: () => limitTo({ sources: [one.source], sections: [] }) }, t("onlyThis")),
        server.role !== "read" && h("button.link", { type: "button", "aria-label": `${t("remove")}: ${one.title || one.source}`, click: () => remove(one) }, t("remove"))));
  }

  function remove(one) {
    const now = async (options = {}) => {
      clearTimeout(timer);
      leaving.delete(one.source);
      try {
        await call(`/api/v1/documents/${one.source.split("/").map(encodeURIComponent).join("/")}`, { method: "DELETE", ...options });
      } catch (error) {
        toast(error.message);
      }
      await load();
    };
    const timer = setTimeout(now, UNDO_SECONDS * 1000);
    leaving.set(one.source, now);
    toast(t("removed", one.title || one.source), [t("undo"), () => { clearTimeout(timer); leaving.delete(one.source); draw(); }], UNDO_SECONDS);
    draw();
  }

  function searchForm() {
    const field = h("input", { type: "search", id: "search", maxlength: 2000 });
    const years = h("input", { id: "years", maxlength: 100, autocomplete: "off", placeholder: "755..763" });
    const found = h("div.found", { "aria-live": "polite" });
    return h("form.search", { submit }, h("label", { for: "search" }, t("search")), h("div.line", field, h("button", { type: "submit" }, t("searchGo"))),
      h("label", { for: "years" }, t("years")), h("div.line", years, h("button", { type: "button", click: byYear }, t("byYear"))), found);

    /** List what the library says by year, of what is searched where something is. */
    async function byYear() {
      found.replaceChildren(h("p.hint", "…"));
      try {
        const query = Object.fromEntries(Object.entries({ query: field.value.trim(), when: years.value.trim() }).filter(([, value]) => value));
        const { lines, count } = await call("/api/v1/library/timeline", { query });
        found.replaceChildren(h("p.hint", lines.length < count ? t("of", number(lines.length), number(count)) : lines.length ? t("found", lines.length) : t("nothing")), ...lines.map((one) => h("section.hit",
          h("h3.when", one.how === "carried" ? `[${one.as}]` : one.as, one.western && h("span.hint", ` = ${said(one.western)}`)),
          whereabouts(one),
          h("blockquote", { dir: "auto" }, written(one)),
          h("p.actions", h("a.link", { href: bookAt({ ...one, parent_id: one.passage }) }, t("openBook"))))));
      } catch (error) {
        found.replaceChildren(failed(error));
      }
    }

    async function submit(event) {
      event.preventDefault();
      if (document.activeElement === years) return byYear();
      if (!field.value.trim()) return field.focus();
      found.replaceChildren(h("p.hint", "…"));
      try {
        const when = years.value.trim();
        const { passages } = await call("/api/v1/library/search", { query: { query: field.value, ...(when && { when }) } });
        found.replaceChildren(h("p.hint", passages.length ? t("found", passages.length) : t("nothing")), ...passages.map((one) => h("section.hit",
          whereabouts(one),
          h("div.passage", { lang: one.language }, written(one, { words: wordsOf(field.value, one.text) })),
          h("p.actions", h("a.link", { href: bookAt({ ...one, start: 0, end: 0 }) }, t("openBook"))))));
        for (const text of found.querySelectorAll(".passage")) {
          text.classList.toggle("cut", text.scrollHeight > text.clientHeight + 4);
          const first = text.querySelector("strong");
          if (first) text.scrollTop = first.offsetTop - text.offsetTop - text.clientHeight / 2;
        }
      } catch (error) {
        found.replaceChildren(failed(error));
      }
    }
  }
}

/** Where the words that are searched for stand in a text, in code points: in Han text, pairs of characters. */
export function wordsOf(query, text) {
  const wanted = query.toLowerCase().match(/\p{Script=Han}+|[\p{L}\p{N}]{3,}|\p{N}+/gu) ?? [];
  const parts = new Set(wanted.flatMap((word) => (/^\p{Script=Han}{3,}$/u.test(word) ? [...word].slice(1).map((last, place) => [...word][place] + last) : [word])));
  const points = Array.from(text, (point) => (point.toLowerCase().length === point.length ? point.toLowerCase() : point));
  const units = new Map();
  let at = 0;
  points.forEach((point, place) => { units.set(at, place); at += point.length; });
  units.set(at, points.length);
  const whole = points.join("");
  const found = [];
  for (const part of parts) {
    for (let from = whole.indexOf(part); from >= 0; from = whole.indexOf(part, from + part.length)) {
      if (/\p{Script=Han}/u.test(part) || !/[\p{L}\p{N}]/u.test(whole[from - 1] ?? " ")) found.push([units.get(from), units.get(from + part.length)]);
    }
  }
  return found;
}

/** Name a language in the language of the page. */
function tongue(code) {
  try {
    return new Intl.DisplayNames(language(), { type: "language" }).of(code);
  } catch {
    return code ?? "";
  }
}
