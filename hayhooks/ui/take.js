// Take away: an answer with its footnotes as Markdown, HTML and text for a word processor, its sources for a bibliography.

import { call } from "./api.js";
import { quotes } from "./answer.js";
import { download, h, toast } from "./dom.js";
import { place } from "./passage.js";
import { t } from "./words.js";

const escaped = (text) => String(text ?? "").replace(/[&<>"']/gu, (one) => `&#${one.codePointAt(0)};`);
const line = (text) => String(text ?? "").replace(/\s+/gu, " ").trim();
const placeOf = (one) => [one.title || one.source, ...place(one)].filter(Boolean).map(line).join(", ");
const signed = (answer) => t("writtenBy", t(`modes.${answer.mode}`), answer.metadata?.receipt ? `${location.origin}/#/answer/${answer.metadata.receipt}` : "");

/** The passages that an answer cites, each once, in the order of their numbers. */
const cited = (answer) => [...new Map(answer.citations.map((one) => [`${one.number}:${one.start}`, one])).values()].sort((one, other) => one.number - other.number);

/** The text of an answer without its quotations, which are written apart. */
const body = (answer) => (quotes(answer) ? "" : answer.answer);

export function asMarkdown(answer) {
  const escape = (text) => line(text).replace(/[\\`*_[\]<>]/gu, "\\$&");
  const seen = new Set();
  const notes = cited(answer).filter((one) => !seen.has(one.number) && seen.add(one.number));
  const text = quotes(answer)
    ? notes.map((one) => `${one.quote.split("\n").map((part) => `> ${part}`).join("\n")}\n>\n> [^${one.number}]`).join("\n\n")
    : body(answer).replace(/\[(\d+)\]/gu, "[^$1]");
  const feet = notes.map((one) => `[^${one.number}]: ${escape(placeOf(one))}: “${escape(one.quote)}”`);
  return `# ${line(answer.query)}\n\n${text}\n\n${feet.join("\n")}\n\n${signed(answer)}\n`;
}

/** A page of its own, or with `whole` false what a word processor takes from the clipboard, with footnotes at its end. */
export function asHtml(answer, whole = true) {
  const seen = new Set();
  const notes = cited(answer).filter((one) => !seen.has(one.number) && seen.add(one.number));
  const known = new Set(notes.map((one) => String(one.number)));
  const link = (text) => escaped(text).replace(/\[(\d+)\]/gu, (mark, one) => (known.has(one) ? `<sup><a href="#n${one}" id="m${one}">${one}</a></sup>` : mark));
  const text = quotes(answer)
    ? notes.map((one) => `<blockquote><p dir="auto">${escaped(one.quote).replace(/\n+/gu, "<br>")}<sup><a href="#n${one.number}">${one.number}</a></sup></p></blockquote>`).join("\n")
    : body(answer).split(/\n{2,}/u).map((part) => `<p dir="auto">${link(part).replace(/\n/gu, "<br>")}</p>`).join("\n");
  const feet = notes.map((one) => `<li dir="auto" id="n${one.number}" value="${one.number}">${escaped(placeOf(one))}: “${escaped(line(one.quote))}”</li>`);
  const inner = `<h1 dir="auto">${escaped(line(answer.query))}</h1>\n${text}\n<hr>\n<ol>\n${feet.join("\n")}\n</ol>\n<p><small>${escaped(signed(answer))}</small></p>`;
  const style = "body{max-width:38rem;margin:3rem auto;padding:0 1rem;font:1.05rem/1.6 Georgia,'Songti SC',serif}ol,small{font-size:.85rem}";
  return whole ? `<!doctype html>\n<html><head><meta charset="utf-8"><title>${escaped(line(answer.query))}</title><style>${style}</style></head>\n<body>\n${inner}\n</body></html>\n` : inner;
}

/** The cited sources, each once. */
const works = (answer) => [...new Map(answer.citations.map((one) => [`${one.source}\n${one.title}`, one])).values()];
const keyOf = (work, index) => `${work.source.replace(/\.[^.]*$/u, "").normalize("NFKD").replace(/[^A-Za-z0-9]+/gu, "-").replace(/^-|-$/gu, "") || "source"}-${index + 1}`;

export function asBibTeX(answer) {
  const value = (text) => `{${line(text).replace(/[\\{}%&$#_^~]/gu, (one) => ({ "\\": "\\textbackslash{}", "^": "\\^{}", "~": "\\~{}" })[one] ?? `\\${one}`)}}`;
  return works(answer).map((work, index) => {
    const fields = [["title", work.title || work.source], work.author && ["author", work.author], ["note", work.source]].filter(Boolean);
    return `@book{${keyOf(work, index)},\n${fields.map(([name, text]) => `  ${name} = ${value(text)}`).join(",\n")}\n}\n`;
  }).join("\n");
}

export function asCsl(answer) {
  return `${JSON.stringify(works(answer).map((work, index) => ({
    id: keyOf(work, index), type: "book", title: line(work.title || work.source), ...(work.author ? { author: [{ literal: line(work.author) }] } : {}), note: work.source,
  })), null, 2)}\n`;
}

/** The authors of the cited sources are told by the passages alone. */
async function withAuthors(answer) {
  const ids = new Map(answer.citations.map((one) => [one.source, one.parent_id]));
  const found = new Map(await Promise.all([...ids].map(async ([source, id]) => [
    source, (await call(`/api/v1/library/passages/${encodeURIComponent(id)}`).catch(() => null))?.passage.author])));
  return { ...answer, citations: answer.citations.map((one) => ({ ...one, author: found.get(one.source) })) };
}

/** The buttons of an answer. */
export function takeBlock(answer) {
  const name = `shiguan-${(answer.metadata?.receipt ?? "answer").slice(0, 8)}`;
  const copy = async (put) => {
    try { await put(); } catch { return; }
    toast(t("copied"));
  };
  const rich = () => navigator.clipboard.write([new ClipboardItem({
    "text/html": new Blob([asHtml(answer, false)], { type: "text/html" }), "text/plain": new Blob([asMarkdown(answer)], { type: "text/plain" }) })]);
  const buttons = [
    [t("copyMd"), () => copy(() => navigator.clipboard.writeText(asMarkdown(answer)))],
    [t("copyRich"), () => copy(rich)],
    answer.metadata?.receipt && [t("copyLink"), () => copy(() => navigator.clipboard.writeText(`${location.origin}/#/answer/${answer.metadata.receipt}`))],
    [t("saveMd"), () => download(`${name}.md`, asMarkdown(answer), "text/markdown")],
    [t("saveHtml"), () => download(`${name}.html`, asHtml(answer), "text/html")],
    [t("saveBib"), async () => download(`${name}.bib`, asBibTeX(await withAuthors(answer)), "application/x-bibtex")],
    [t("saveCsl"), async () => download(`${name}.csl.json`, asCsl(await withAuthors(answer)), "application/json")],
    [t("print"), () => print()],
  ].filter(Boolean);
  return h("details.take", h("summary", t("take")), h("p.actions", buttons.map(([word, click]) => h("button", { type: "button", click }, word))));
}
