// The book: its contents, a chapter from the stored passages in their order, the quote marked, and back.

import { call } from "./api.js";
import { add, h, kept } from "./dom.js";
import { failed } from "./failure.js";
import { Notes, written } from "./passage.js";
import { limitTo } from "./scope.js";
import { t } from "./words.js";

const AROUND = 60; // of a work without chapters, so many passages at once

/** Show a source; `query` may name a passage with a span to mark, or a work and a position. */
export async function bookView(main, query) {
  const source = query.get("source");
  const wanted = query.get("passage");
  const page = h("article.page", { "aria-busy": "true" }, h("h1.hidden", source ?? ""));
  const contents = h("nav.contents", { "aria-label": t("contents") });
  const back = kept("last") ?? "#/ask";
  main.replaceChildren(h("div.book", h("p.bar", h("a.button", { href: back }, `← ${t("back")}`)), contents, page));
  try {
    const at = wanted ? (await call(`/api/v1/library/passages/${encodeURIComponent(wanted)}`)).passage : null;
    const { works } = await call("/api/v1/library/contents", { query: { source: at?.source_id ?? source } });
    const work = works.find((one) => one.source_id === (at?.source_id ?? query.get("work"))) ?? works[0];
    const position = at ? at.position : Number(query.get("at") ?? work.sections[0].first);
    document.title = `${work.title || work.source} · Shiguan`;
    contents.replaceChildren(...listed(works, work, position));
    await chapter(page, work, position, at && [Number(query.get("start")), Number(query.get("end"))]);
    contents.querySelector("[aria-current=true]")?.scrollIntoView({ block: "nearest" });
  } catch (error) {
    page.replaceChildren(failed(error, () => bookView(main, query)));
  } finally {
    page.removeAttribute("aria-busy");
  }
}

const at = (work, position) => `#/book?${new URLSearchParams({ source: work.source, work: work.source_id, at: position })}`;

/** Group sections by their outermost heading. */
export function chaptersOf(work) {
  const chapters = [];
  for (const section of work.sections) {
    const name = section.section[0] ?? "";
    if (chapters.at(-1)?.name === name) Object.assign(chapters.at(-1), { last: section.last, parts: [...chapters.at(-1).parts, section] });
    else chapters.push({ name, first: section.first, last: section.last, parts: [section] });
  }
  return chapters;
}

function listed(works, work, position) {
  const several = works.length > 1 && h("ul.works", works.slice(0, 500).map((one) => h("li",
    h("a", { href: at(one, one.sections[0].first), dir: "auto", "aria-current": one === work && "page" }, one.title || one.record_id || one.source))));
  const lines = chaptersOf(work).map((chapter) => {
    const inside = chapter.first <= position && position <= chapter.last;
    const parts = chapter.parts.filter((part) => part.section.length > 1);
    const own = inside && parts.length > 0 && h("ol", parts.map((part) => h(`li.depth${Math.min(part.section.length, 4)}`,
      h("a", { href: at(work, part.first), dir: "auto", "aria-current": part.first <= position && position <= part.last && "true" }, part.section.at(-1)))));
    return h("li", h("a", { href: at(work, chapter.first), dir: "auto", "aria-current": inside && !own && "true" }, chapter.name || t("untitled")), own);
  });
  const folded = h("details", { open: matchMedia("(min-width: 62rem)").matches }, h("summary", t("contents")), h("ol.chapters", lines), several);
  return [folded];
}

async function chapter(page, work, position, mark) {
  const chapters = chaptersOf(work);
  const index = Math.max(0, chapters.findIndex((one) => one.first <= position && position <= one.last));
  const own = chapters[index];
  const long = own.last - own.first > 2 * AROUND;
  const first = long ? Math.max(own.first, position - AROUND) : own.first;
  const last = long ? Math.min(own.last, position + AROUND) : own.last;
  const { passages } = await call("/api/v1/library/passages", { query: { source_id: work.source_id, first, last } });
  const notes = new Notes();
  let above = [];
  const parts = passages.flatMap((passage) => {
    const path = passage.section;
    const from = path.findIndex((heading, level) => heading !== above[level]);
    const heads = from < 0 ? [] : path.slice(from).map((heading, level) => h(`h${Math.min(from + level + 2, 5)}`, heading));
    above = path;
    const here = mark && passage.position === position;
    return [...heads, h("div.passage", { lang: passage.language, id: `p${passage.position}` }, written(passage, { mark: here ? mark : null, notes }))];
  });
  const only = h("button", { type: "button", click: () => limitTo({ sources: [work.source], sections: own.name ? [own.name] : [] }) }, own.name ? t("onlyChapter") : t("onlyThis"));
  const before = first > own.first ? at(work, Math.max(own.first, first - AROUND)) : index > 0 && at(work, chapters[index - 1].first);
  const after = last < own.last ? at(work, Math.min(own.last, last + AROUND)) : index + 1 < chapters.length && at(work, chapters[index + 1].first);
  page.replaceChildren();
  add(page, [
    h("header", h("h1", work.title || work.source), h("p.by", [work.author, work.source, passages[0]?.anchor?.page && t("page", passages[0].anchor.page)].filter(Boolean).join(" · "))),
    parts, notes.count > 0 && h("h2.notes-head", t("notes")), notes.list,
    h("p.turning", before && h("a.button", { href: before }, `← ${t("earlier")}`), only, after && h("a.button", { href: after }, `${t("further")} →`)),
  ]);
  const target = page.querySelector("mark") ?? (position > own.first && document.getElementById(`p${position}`));
  if (target) target.scrollIntoView({ block: "center" });
  else scrollTo(0, 0);
}
