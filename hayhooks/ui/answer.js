// An answer on the page: sentences with their verdicts, as they come and when they are complete.

import { bookAt } from "./beside.js";
import { add, direction, h, shape } from "./dom.js";
import { rendered } from "./markdown.js";
import { place } from "./passage.js";
import { said } from "./server.js";
import { t } from "./words.js";

const ONE_MARK = "(?:\\[\\d+\\]|【\\d+】)";
const MARK = new RegExp(`((?:\\s*${ONE_MARK})+)`, "u");
const MARKS_FIRST = new RegExp(`^(?:\\s*${ONE_MARK})+`, "u");
const QUOTING = new Set(["quoted", "closest"]);

/** Whether an answer is passages alone; of `closest` ones none clearly answers. */
export const quotes = (answer) => QUOTING.has(answer.status);

/** Write marks as small numbers, each a link to its passage. */
const marks = (text, citations) => text.match(/\d+/gu).map((one) => {
  const citation = citations.find(({ number }) => String(number) === one);
  return h("sup.mark", citation ? h("a", { href: bookAt(citation), "data-number": one, "aria-label": t("passageOf", one) }, one) : one);
});

/** Write words and the marks between them; the sign of a doubtful sentence is told by its verdict. */
const pieces = (text, citations) => text.replace(/\s?⚠/gu, "").split(MARK).flatMap((part) => (MARK.test(part) ? marks(part, citations) : part || []));

/** A verdict as a button that opens the sentence's passage: shape and word. */
function verdictButton(claim, index) {
  const word = t(`verdict.${claim.verdict}`);
  const label = `${t("sentence", index + 1)}: ${word}`;
  return h(
    `button.verdict.${claim.verdict.replace(/\W/gu, "")}`,
    { type: "button", "data-claim": index, "aria-label": label, "aria-pressed": "false", title: said(claim.reason) || label },
    shape(claim.verdict), h("span", word),
  );
}

/** End a sentence with its verdict, where it has a fault; the last word stays with its marks and that. */
function ended({ claim, index }, element) {
  const last = [];
  for (let word = null; element.lastChild && word === null;) {
    const part = element.lastChild;
    if (part instanceof Text) word = /(?:[^\s\p{Script=Han}]{0,23}[\p{L}\p{N}]|\p{Script=Han})[^\p{L}\p{N}]*$/u.exec(part.data);
    else if (part.localName !== "sup") break;
    if (word?.index) part.data = part.data.slice(0, word.index);
    else part.remove();
    last.unshift(word ? word[0] : part);
  }
  add(element, [h("span.last", last, claim.verdict !== "supported" && verdictButton(claim, index))]);
}

/** The citations of a claim, and behind them those of the others, where its marks name one of these. */
const citedBy = (claim, citations) => {
  const own = (one) => one.claim?.start === claim.start && one.claim?.end === claim.end;
  return [...citations.filter(own), ...citations.filter((one) => !own(one))];
};

/** Write the text of an answer whose sentences are known. */
export function prose(text, claims, citations = []) {
  const units = [0]; // where each code point begins, in which the server counts
  for (const point of text) units.push(units.at(-1) + point.length);
  const placed = claims.map((claim, index) => ({ claim, index, start: units[claim.start], end: units[claim.end] }));
  return written(text, placed, citations);
}

/** Write a text; its sentences are `{claim, index, start, end}`, in the units of the text. */
function written(text, placed, citations) {
  const spans = [];
  for (const one of placed.sort((first, other) => first.start - other.start)) {
    if (one.start < (spans.at(-1)?.end ?? 0)) continue;
    // Marks behind the full stop are the sentence's, too.
    const behind = MARKS_FIRST.exec(text.slice(one.end, one.end + 200))?.[0] ?? "";
    spans.push({ ...one, end: one.end + behind.length });
  }
  return rendered(text, spans, {
    piece: (words, span) => pieces(words, span ? citedBy(span.claim, citations) : citations),
    sentence: ({ index }, parts) => h("span.sentence", { "data-claim": index }, parts),
    ended,
  });
}

const LETTERS = new RegExp(`${ONE_MARK}|\\s+|⚠`, "gu");

/**
 * An answer while it is written: pieces come as they are, and a sentence takes its checked form as soon as that comes.
 * The page is touched once a frame, and only at its end: a paragraph grows, and a list or table is written again until a
 * blank line ends it.
 */
export class Writing {
  constructor(root, onClaim) {
    this.root = root;
    this.onClaim = onClaim;
    this.text = ""; // what is not placed in a sentence yet
    this.claims = [];
    this.tail = h("span.pending");
    this.begin();
    this.due = 0;
  }

  /** Begin a block. */
  begin() {
    this.block = { text: "", placed: [], citations: [], grows: true };
    this.home = h("div.block", h("p", this.tail));
    this.root.append(this.home);
  }

  token(text) {
    this.text += this.text || this.claims.length ? text : text.trimStart();
    this.due ||= requestAnimationFrame(() => this.show());
  }

  show() {
    cancelAnimationFrame(this.due);
    this.due = 0;
    this.tail.textContent = this.text;
  }

  /** Put a checked sentence in the place of the words that it was written with. */
  claim(claim) {
    const index = this.claims.push(claim) - 1;
    const [from, to, behind] = this.find(claim.text);
    const before = this.text.slice(0, from);
    this.text = this.text.slice(to);
    const gap = before.search(/\n[ \t]*\n/u);
    if (gap >= 0 && this.block.text && (this.block.text.split(/^ {0,3}(?:```|~~~)/mu).length % 2)) {
      if (before.slice(0, gap).trim()) this.put(before.slice(0, gap), null, 0, gap);
      this.begin();
      const glue = before.slice(gap).trimStart();
      this.put(glue + claim.text + behind, claim, index, glue.length);
    } else {
      const glue = before || (this.block.text ? " " : "");
      this.put(glue + claim.text + behind, claim, index, glue.length);
    }
    this.show();
    this.onClaim(claim, index);
  }

  /** Add words to the block, with the sentence that begins at `from` in them. */
  put(words, claim, index, from) {
    const { block, home } = this;
    const start = block.text.length + from;
    const one = claim && { claim, index, start, end: start + claim.text.length };
    block.grows &&= !/[*_`|#\n\\]|^\s*(?:[-+•>~]|\d{1,2}[.)])\s/u.test(words);
    block.text += words;
    block.citations.push(...(claim?.citations ?? []));
    if (claim) block.placed.push(one);
    this.tail.remove();
    if (block.grows) {
      // Marks that came after the sentence before had been placed are its own.
      const late = MARKS_FIRST.exec(words.slice(0, from))?.[0] ?? "";
      const behind = late && home.querySelector(".sentence:last-of-type .last");
      if (behind) for (const mark of marks(late, block.citations)) behind.insertBefore(mark, behind.querySelector("button"));
      const own = written(words.slice(late.length), one ? [{ ...one, start: from - late.length, end: from - late.length + claim.text.length }] : [], claim?.citations ?? []);
      add(home.firstChild, [" ", [...(own[0]?.childNodes ?? [])], this.tail]);
    } else {
      home.replaceChildren(...written(block.text, block.placed, block.citations));
      let leaf = home.lastElementChild;
      while (leaf?.matches("ul, ol, li, blockquote") && leaf.lastElementChild?.matches("ul, ol, li, blockquote, p")) leaf = leaf.lastElementChild;
      if (leaf?.matches("p, li, h3")) leaf.append(" ", this.tail);
      else home.append(h("p", this.tail));
    }
  }

  /** Whether what stands here is, sentence by sentence, the answer, so that nothing has to be written again. */
  matches({ answer, status, metadata }) {
    this.show();
    const same = (claim, index) => claim.text === metadata.claims[index].text && claim.verdict === metadata.claims[index].verdict;
    const whole = this.claims.length > 0 && this.claims.length === metadata.claims.length && this.claims.every(same);
    return whole && status === "answered" && !this.text.trim() && !answer.includes("\n");
  }

  /** Find where a sentence stands in what is not placed yet, whatever became of its marks and spaces, and the marks behind it. */
  find(sentenceText) {
    const wanted = sentenceText.replace(LETTERS, "");
    const letters = [];
    let at = 0;
    for (const part of this.text.split(/(\[\d+\]|【\d+】|\s+|⚠)/u)) {
      if (part && !/^(\[\d+\]|【\d+】|\s+|⚠)$/u.test(part)) for (let i = 0; i < part.length; i += 1) letters.push([part[i], at + i]);
      at += part.length;
    }
    const joined = letters.map(([letter]) => letter).join("");
    const found = wanted ? joined.indexOf(wanted) : -1;
    if (found < 0) return [0, 0, ""];
    const end = letters[found + wanted.length - 1][1] + 1;
    const behind = MARKS_FIRST.exec(this.text.slice(end))?.[0] ?? "";
    return [letters[found][1], end + behind.length, /\d[\]】]$/u.test(sentenceText) ? "" : behind];
  }
}

/** Write the quotations of an answer without a model, those of a passage together: somebody else's words. */
export function quotations(answer) {
  const passages = Map.groupBy(answer.citations.map((citation, index) => ({ citation, index })), ({ citation }) => citation.parent_id);
  return [...passages.values()].map((places) => {
    const [{ citation, index }] = places;
    return h(`figure.quotations.${answer.status}`, { dir: direction(citation.quote) },
      places.map((one) => h("blockquote.quotation", { "data-claim": one.index, lang: one.citation.language }, quoted(one.citation))),
      h("figcaption", h("span", { dir: "auto" }, [citation.title || citation.source, ...place(citation)].join(" › ")),
        h("button.link", { type: "button", "data-claim": index, "aria-pressed": "false" }, t("wholePassage"))));
  });
}

// What ends no sentence: a note that is still open, a title, a month or an initial before more of the sentence.
const UNENDED = /\[[^\]]*$|(?:^|[\s("“‘'])\p{Lu}\p{Ll}{0,3}\.\s*$/u;

/** Cut a text into sentences, each with the notes behind it. */
function sentences(text, language) {
  const made = [];
  for (const { segment } of new Intl.Segmenter(language, { granularity: "sentence" }).segment(text)) {
    const more = made.length > 0 && (segment.startsWith("[") || UNENDED.test(made.at(-1)));
    made.push(more ? made.pop() + segment : segment);
  }
  return made;
}

/** The sentence that answers or is closest, and below it the sentences before and behind it. */
function quoted(citation) {
  const text = Array.from(citation.quote);
  const [from, to] = (citation.sentence ?? [citation.start, citation.end]).map((place) => Math.min(Math.max(place - citation.start, 0), text.length));
  const [before, own, after] = [[0, from], [from, to], [to, text.length]].map(([start, end]) => text.slice(start, end).join("").trim());
  const cut = (some, place) => sentences(some, citation.language).at(place)?.trim() ?? "";
  const [last, next] = [cut(before, -1), cut(after, 0)];
  return [h("p.closest", own.split("\n").flatMap((line, number) => [number > 0 && h("br"), line])),
    (last || next) && h("p.around", last, last && next ? " […] " : " … ", next)];
}

/** The passages to show for a sentence: those that it cites and the one that contradicts it. */
export const shownFor = (claim, citations) => (claim.against ? [...citations, claim.against] : citations);

/** The sentences of an answer that can be chosen, each with its passages. */
export function choices(answer) {
  if (quotes(answer)) return answer.citations.map((citation) => ({ claim: { verdict: answer.status, text: citation.quote }, citations: [citation] }));
  return answer.metadata.claims.map((claim) => ({
    claim,
    citations: shownFor(claim, answer.citations.filter((one) => one.claim?.start === claim.start && one.claim?.end === claim.end)),
  }));
}

/** The passages that an answer cites, each once, in the order of their numbers. */
export function sources(answer) {
  const seen = new Map(answer.citations.map((one) => [one.number, one]).reverse());
  return [...seen.values()].sort((one, other) => one.number - other.number);
}

/** Say that every sentence was checked, and of which verdicts are those with a fault. */
export function tally(claims) {
  const counts = new Map();
  for (const { verdict } of claims) if (verdict !== "supported") counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  if (!counts.size) return t("allChecked");
  return t("summary", claims.length, [...counts].map(([verdict, count]) => t("count", count, t(`verdict.${verdict}`))).join(t("comma")));
}
