// An answer on the page: sentences with their verdicts, as they come and when they are complete.

import { add, h, shape } from "./dom.js";
import { t } from "./words.js";

const MARK = /(\[\d+\](?:\s*\[\d+\])*)/u;

/** Write a sentence: its words, `**strong**` ones, and its marks as small numbers. */
function sentence(text) {
  return text.split(MARK).flatMap((part, place, parts) => {
    if (MARK.test(part)) return part.match(/\d+/gu).map((one) => h("sup.mark", one));
    return (place + 1 < parts.length ? part.trimEnd() : part).split(/(\*\*[^*]+\*\*)/u).map((piece) => (/^\*\*.+\*\*$/u.test(piece) ? h("strong", piece.slice(2, -2)) : piece));
  });
}

/** A verdict as a button that opens the sentence's passage: shape and word. */
function verdictButton(claim, index) {
  const word = t(`verdict.${claim.verdict}`);
  const label = `${t("sentence", index + 1)}: ${word}`;
  return h(
    `button.verdict.${claim.verdict.replace(/\W/gu, "")}`,
    { type: "button", "data-claim": index, "aria-label": label, "aria-pressed": "false", title: claim.reason || label },
    shape(claim.verdict), h("span", word),
  );
}

function claimed(claim, index) {
  const parts = sentence(claim.text).filter((part) => part !== "");
  // The last word stays with its verdict.
  const last = [];
  while (parts.length && !last.some((part) => /[\p{L}\p{N}]/u.test(part.textContent ?? part))) {
    const part = parts.pop();
    const word = typeof part === "string" ? /(?:[^\s\p{Script=Han}]{1,24}|\p{Script=Han})[^\p{L}\p{N}]*$/u.exec(part) : null;
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
      if (!list) blocks.push((list = h("ul")));
      list.append(add(h("li"), line));
    } else if (!empty) {
      list = null;
      blocks.push(add(h(head ? "h4" : "p"), line));
    }
  }
  return blocks;
}

/** Write the text of an answer whose sentences are known. */
export function prose(text, claims) {
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
    const own = points.slice(claim.start, claim.end).join("");
    lines.at(-1).push(claimed({ ...claim, text: own }, index));
    at = claim.end;
  }
  glue(points.slice(at).join(""));
  return laidOut(lines.map((line) => line.flatMap((part) => (typeof part === "string" && !/^\s*([-*•#]|\d)/u.test(part) ? sentence(part) : part))));
}

const LETTERS = /\[\d+\]|【\d+】|\s+/gu;

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
    const [from, to] = this.find(claim.text);
    const before = this.text.slice(0, from);
    this.text = this.text.slice(to);
    if (/\n/u.test(before) && this.paragraph.childNodes.length > 1) {
      this.paragraph = h("p");
      this.root.append(this.paragraph);
    }
    const glue = before.replace(/^[\s#*•-]+|\s+$/gu, "");
    this.tail.remove();
    add(this.paragraph, [glue && `${glue} `, claimed(claim, index), " ", this.tail]);
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

  /** Find where a sentence stands in what is not placed yet, whatever became of its marks and spaces. */
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
    if (found < 0) return [0, 0];
    let end = letters[found + wanted.length - 1][1] + 1;
    const marks = /^(?:\s*(?:\[\d+\]|【\d+】))+/u.exec(this.text.slice(end));
    if (marks) end += marks[0].length;
    return [letters[found][1], end];
  }
}

/** Write the quotations of an answer without a model: each as what it is, somebody else's words. */
export function quotations(answer) {
  return answer.citations.map((citation, index) => h(
    "figure.quotation",
    { "data-claim": index },
    h("blockquote", quoted(citation)),
    h("figcaption", h("span", [citation.title, ...(citation.section ?? [])].filter(Boolean).join(" › ") || citation.source), verdictButton({ verdict: "quoted" }, index)),
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
  if (answer.status === "quoted") return answer.citations.map((citation) => ({ claim: { verdict: "quoted", text: citation.quote }, citations: [citation] }));
  return answer.metadata.claims.map((claim) => ({
    claim,
    citations: answer.citations.filter((one) => one.claim?.start === claim.start && one.claim?.end === claim.end),
  }));
}

/** Count the verdicts in words: "3 supported, 1 not supported". */
export function tally(claims) {
  const counts = new Map();
  for (const { verdict } of claims) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  return [...counts].map(([verdict, count]) => `${count} ${t(`verdict.${verdict}`)}`).join(", ");
}
