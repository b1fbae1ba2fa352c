// An answer on the page: sentences with their verdicts, as they come and when they are complete.

import { bookAt } from "./beside.js";
import { add, direction, h, shape } from "./dom.js";
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

/** Write a sentence: its words, `**strong**` ones, and its marks. */
function sentence(text, citations) {
  return text.split(MARK).flatMap((part) => {
    if (MARK.test(part)) return marks(part, citations);
    return part.split(/(\*\*[^*]+\*\*)/u).map((piece) => (/^\*\*.+\*\*$/u.test(piece) ? h("strong", piece.slice(2, -2)) : piece));
  });
}

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

function claimed(claim, index, citations) {
  const parts = sentence(claim.text, citations).filter((part) => part !== "");
  // The last word stays with its marks and its verdict.
  const last = [];
  for (let word = null; parts.length && word === null;) {
    const part = parts.pop();
    if (typeof part === "string") word = /(?:[^\s\p{Script=Han}]{1,24}|\p{Script=Han})[^\p{L}\p{N}]*$/u.exec(part);
    else if (part.localName === "strong") word = "";
    if (word) parts.push(part.slice(0, word.index));
    last.unshift(word ? word[0] : part);
  }
  return h("span.sentence", { "data-claim": index }, parts, h("span.last", last, verdictButton(claim, index)));
}

/** Lay lines of an answer out as paragraphs, headings and lists; a line is a list of texts and elements. */
function laidOut(lines) {
  const blocks = [];
  let list = null;
  for (const line of lines) {
    const first = typeof line[0] === "string" ? line[0] : "";
    const item = /^\s*(?:[-*•]|\d{1,2}[.)])\s+/u.exec(first);
    const head = /^#{1,4}\s+/u.exec(first);
    if (item || head) line[0] = first.slice((item ?? head)[0].length);
    const empty = !line.some((part) => part instanceof Node || part.trim());
    if (item) {
      if (!list) blocks.push((list = h("ul", { dir: direction(line.map((part) => part.textContent ?? part).join("")) })));
      list.append(add(h("li"), line));
    } else if (!empty) {
      list = null;
      blocks.push(add(h(head ? "h4" : "p"), line));
    }
  }
  return blocks;
}

/** The citations of a claim, and behind them those of the others, where its marks name one of these. */
const citedBy = (claim, citations) => {
  const own = (one) => one.claim?.start === claim.start && one.claim?.end === claim.end;
  return [...citations.filter(own), ...citations.filter((one) => !own(one))];
};

/** Write the text of an answer whose sentences are known. */
export function prose(text, claims, citations = []) {
  const points = Array.from(text);
  const lines = [[]];
  const glue = (piece) => piece.split("\n").forEach((part, index) => {
    if (index) lines.push([]);
    if (part) lines.at(-1).push(part);
  });
  let at = 0;
  const placed = claims.map((claim, index) => [claim, index]).sort(([one], [other]) => one.start - other.start);
  for (const [claim, index] of placed) {
    if (claim.start < at) continue;
    glue(points.slice(at, claim.start).join(""));
    // Marks behind the full stop are the sentence's, too.
    const behind = MARKS_FIRST.exec(points.slice(claim.end, claim.end + 200).join(""))?.[0] ?? "";
    const own = points.slice(claim.start, claim.end).join("");
    lines.at(-1).push(claimed({ ...claim, text: own + behind }, index, citedBy(claim, citations)));
    at = claim.end + Array.from(behind).length;
  }
  glue(points.slice(at).join(""));
  return laidOut(lines.map((line) => line.flatMap((part) => (typeof part === "string" && !/^\s*([-*•#]|\d)/u.test(part) ? sentence(part, citations) : part))));
}

const LETTERS = new RegExp(`${ONE_MARK}|\\s+`, "gu");

/**
 * An answer while it is written: pieces come as they are, and a sentence takes its checked form as soon as that comes.
 * The page is touched once a frame, and only at its end, however long the answer is.
 */
export class Writing {
  constructor(root, onClaim) {
    this.root = root;
    this.onClaim = onClaim;
    this.text = "";
    this.claims = [];
    this.tail = h("span.pending");
    this.paragraph = h("p", this.tail);
    root.replaceChildren(this.paragraph);
    this.due = 0;
  }

  token(text) {
    this.text += this.text ? text : text.trimStart();
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
    let before = this.text.slice(0, from);
    this.text = this.text.slice(to);
    // Marks that came after the sentence before had been placed are its own.
    const late = index > 0 && MARKS_FIRST.exec(before);
    if (late) {
      this.root.querySelector(`button[data-claim="${index - 1}"]`)?.before(...marks(late[0], this.claims[index - 1].citations ?? []));
      before = before.slice(late[0].length);
    }
    if (/\n/u.test(before) && this.paragraph.childNodes.length > 1) {
      this.paragraph = h("p");
      this.root.append(this.paragraph);
    }
    const glue = before.replace(/^[\s#*•-]+|\s+$/gu, "");
    this.tail.remove();
    add(this.paragraph, [glue && `${glue} `, claimed({ ...claim, text: claim.text + behind }, index, claim.citations ?? []), " ", this.tail]);
    this.show();
    this.onClaim(claim, index);
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
    for (const part of this.text.split(/(\[\d+\]|【\d+】|\s+)/u)) {
      if (part && !/^(\[\d+\]|【\d+】|\s+)$/u.test(part)) for (let i = 0; i < part.length; i += 1) letters.push([part[i], at + i]);
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

/** Write the quotations of an answer without a model: each as what it is, somebody else's words. */
export function quotations(answer) {
  return answer.citations.map((citation, index) => h(
    `figure.quotation.${answer.status}`,
    { "data-claim": index, dir: direction(citation.quote) },
    h("blockquote", { lang: citation.language }, quoted(citation)),
    h("figcaption", h("span", [citation.title, ...(citation.section ?? [])].filter(Boolean).join(" › ") || citation.source), verdictButton({ verdict: answer.status }, index)),
  ));
}

function quoted(citation) {
  const text = Array.from(citation.quote);
  const [from, to] = (citation.sentence ?? [0, 0]).map((place) => Math.min(Math.max(place - citation.start, 0), text.length));
  const parts = [[0, from], [from, to], [to, text.length]].map(([start, end]) => text.slice(start, end).join(""));
  const lines = [[]];
  parts.forEach((part, number) => part.split("\n").forEach((line, place) => {
    if (place) lines.push([]);
    if (line) lines.at(-1).push(number === 1 ? h("em.closest", line) : line);
  }));
  return lines.filter((line) => line.length).map((line) => h("p", line));
}

/** The sentences of an answer that can be chosen, each with its citations. */
export function choices(answer) {
  if (quotes(answer)) return answer.citations.map((citation) => ({ claim: { verdict: answer.status, text: citation.quote }, citations: [citation] }));
  return answer.metadata.claims.map((claim) => ({
    claim,
    citations: answer.citations.filter((one) => one.claim?.start === claim.start && one.claim?.end === claim.end),
  }));
}

/** The passages that an answer cites, each once, in the order of their numbers. */
export function sources(answer) {
  const seen = new Map(answer.citations.map((one) => [one.number, one]).reverse());
  return [...seen.values()].sort((one, other) => one.number - other.number);
}

/** Count the verdicts in words: "3 supported, 1 not supported". */
export function tally(claims) {
  const counts = new Map();
  for (const { verdict } of claims) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  return [...counts].map(([verdict, count]) => t("count", count, t(`verdict.${verdict}`))).join(t("comma"));
}
