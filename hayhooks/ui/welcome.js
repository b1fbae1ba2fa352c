// The first screen: what is in the library, three questions that it may answer, and where a file is dropped.

import { call } from "./api.js";
import { h } from "./dom.js";
import { uploads } from "./uploads.js";
import { number, t } from "./words.js";

const TITLES = 8;
const QUESTIONS = 3;
// Headings that name no matter: "Preface", "Chapter 3", "IV", 第三章.
const NO_MATTER = /^(?:(?:table of )?contents|(?:(?:general|\p{L}+['’]s) )?(?:preface|foreword|introduction|note|notes|afterword)(?: (?:to|on) .*)?|introductory|conclusions?|prologue|epilogue|postscript|errata|abstract|index|appendix|glossary|(?:.* )?bibliography|references|(?:works|sources) cited|(?:suggest\p{L}*|further|recommended|additional|selected)(?: for)?(?: further)? readings?|reading list|lists? of .*|illustrations|sources?|copyright|colophon|dedication|acknowledge?ments?|about .*|title page|cover|(?:chapter|part|book|volume|section|vol\.?)\s*[\divxlc.]*|[\divxlc.\s]+|.{0,4}目[录錄次]|.{0,3}前言|(?:[自代原总總译譯]|[译譯编編作著]者|.{1,2}版)?序言?|[导導引绪緒][论論言]|[结結][论論语語]|跋|.{0,3}[后後][记記]|附[录錄]|凡例|.{0,4}[说說]明|版[权權].*|索引|.{0,2}[参參]考(?:[书書]目|文[献獻])|(?:延伸|推荐|推薦|[扩擴]展|相[关關])[阅閱][读讀]|作者[简簡]介|[关關][于於]作者|致[谢謝]|(?:大事)?年表|[注註][释釋]?|(?:\p{L}{1,4}\s+)?[卷第]?[〇零一二三四五六七八九十百千\d]+[章节節卷回篇部]?[上中下]?)$/iu;
const NUMBERING = /^(?:(?:chapter|part|book|section|volume)\s+[\divxlc]+[.:)\s-]+|\d+(?:\.\d+)*[.):]?\s+|[ivxlc]+[.):]\s+|第?[〇零一二三四五六七八九十百千\d]+[章节節卷回篇部][、.\s]+|(?:\p{L}{1,4}\s+)?卷[第之]?[〇零一二三四五六七八九十百千\d]+\s+)(?=\S)/iu;
const SMALL = /^(?:a|an|and|at|by|for|from|in|of|on|or|the|to|with)$/iu;
const ASKED = { zh: "关于{0}，书中怎么说？", lzh: "關於{0}，書中怎麼說？", en: "What does the book say about {0}?" };

/** What stands before the first question; `fill(query)` puts one into the field. */
export async function welcome(server, fill) {
  const screen = h("section.welcome");
  await draw();
  return screen;

  async function draw() {
    const sources = (await call("/api/v1/documents").catch(() => null))?.sources ?? [];
    const empty = !sources.length;
    const samples = h("ul.samples", { hidden: true });
    screen.replaceChildren(
      h("h2", t(empty ? "emptyHead" : "askHead")), h("p", t(empty ? "emptyLead" : "askLead")),
      ...(empty ? [] : [h("h3", t("yourLibrary")), titles(sources), samples]),
      ...(server.role === "read" ? [] : uploads(server, () => screen.isConnected && draw())));
    if (!empty) suggest(samples, sources).catch(() => {});
  }

  async function suggest(list, sources) {
    const some = sources.filter((one) => one.passages > 0).slice(0, QUESTIONS);
    const books = await Promise.all(some.map((one) => call("/api/v1/library/contents", { query: { source: one.source } }).then(({ works }) => headings(works[0]))));
    const questions = [];
    for (let place = 0; questions.length < QUESTIONS && books.some((book) => place < book.length); place += 1) {
      for (const book of books) if (place < book.length && questions.length < QUESTIONS) questions.push(book[place]);
    }
    list.hidden = !questions.length;
    list.replaceChildren(...questions.map((query) => h("li", h("button", { type: "button", dir: "auto", click: () => fill(query) }, query))));
  }
}

const titles = (sources) => h("ul.titles", sources.slice(0, TITLES).map((one) => h("li", h("a", { href: `#/book?${new URLSearchParams({ source: one.source })}`, lang: one.language, dir: "auto" }, one.title || one.source))),
  sources.length > TITLES && h("li", h("a", { href: "#/library" }, t("more", number(sources.length - TITLES)))));

/** Questions about matters that the headings of a work name, from its start, its middle and its end. */
function headings(work) {
  const names = [...new Set(work.sections.map(({ section }) => (section.at(-1) ?? "").replace(NUMBERING, "").replace(/[.。?？!！\s]+$/u, "")))].filter((name) => name.length > 1 && name.length <= 60 && !NO_MATTER.test(name));
  const inHan = work.language === "lzh" ? ASKED.lzh : ASKED.zh;
  const step = Math.max(1, Math.floor(names.length / QUESTIONS));
  return names.filter((_, place) => place % step === Math.min(1, step - 1)).map((name) => (/\p{Script=Han}/u.test(name) ? inHan : ASKED.en).replace("{0}", calmed(name).replace(/^(?:The|An?) /u, (word) => word.toLowerCase())));
}

/** Write several words in capitals as a title is written; a numeral stays as it is. */
function calmed(name) {
  if (name !== name.toUpperCase() || !/ \p{Lu}/u.test(name)) return name;
  const small = (word) => (SMALL.test(word) ? word.toLowerCase() : word[0] + word.slice(1).toLowerCase());
  return name.replace(/\p{L}[\p{L}'’]*/gu, (word) => (/^[IVXLC]+$/u.test(word) ? word : small(word)));
}
