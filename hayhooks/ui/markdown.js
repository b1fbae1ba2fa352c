// Markdown as elements: bold, italics, headings, lists, tables, code and quotations, made of text and never of markup.
// Sentences stay whole: each is an element around its emphasis, in as many blocks as it stands in.

import { direction, h } from "./dom.js";

const DEEPEST = 6; // quotations and lists inside one another
const FENCE = /^ {0,3}(`{3,}|~{3,})/u;
const HEADING = /^ {0,3}(#{1,6})\s+/u;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/u;
const QUOTE = /^ {0,3}> ?/u;
const ITEM = /^([ \t]*)([-*+•]|\d{1,2}[.)])[ \t]+/u;
const ROW = /^\s{0,8}\|/u;
const UNDER_HEAD = /^\s{0,8}\|?\s*:?-[-:|\s]*$/u;
const TOKEN = /\\[\\`*_[\]{}()#+.!|>~-]|`+|\*{1,3}|_{1,3}/gu;
const STYLES = { 1: ["em"], 2: ["strong"], 3: ["strong", "em"] };

/**
 * Write a text. `spans` are its sentences, `{start, end}` in ascending order. `piece(words, span)` makes what stands in
 * plain words, `sentence(span, parts)` the element of a sentence or of what of it stands in one block, and
 * `ended(span, element)` completes the last of these.
 */
export function rendered(text, spans, { piece, sentence, ended }) {
  const lines = [];
  for (let start = 0; start <= text.length;) {
    const stop = text.indexOf("\n", start);
    const end = stop < 0 ? text.length : stop;
    lines.push([start, end]);
    start = end + 1;
  }
  let next = 0; // the first sentence that may still go on
  const last = new Map(); // the element in which each sentence ends
  const made = blocks(lines, 0);
  for (const [span, element] of last) ended(span, element);
  return made;

  function blocks(rest, depth) {
    const made = [];
    const read = ([start, end]) => text.slice(start, end);
    for (let at = 0; at < rest.length;) {
      const line = read(rest[at]);
      const fence = FENCE.exec(line);
      const item = depth < DEEPEST && ITEM.exec(line);
      const heading = HEADING.exec(line);
      const from = at;
      at += 1;
      if (!line.trim() || RULE.test(line)) {
        if (line.trim()) made.push(h("hr"));
      } else if (fence) {
        while (at < rest.length && !read(rest[at]).trimStart().startsWith(fence[1])) at += 1;
        made.push(h("pre", { tabindex: "0" }, inline(rest.slice(from + 1, at), true)));
        at += 1;
      } else if (heading) {
        made.push(h("h3", inline([[rest[from][0] + heading[0].length, rest[from][1]]])));
      } else if (depth < DEEPEST && QUOTE.test(line)) {
        while (at < rest.length && QUOTE.test(read(rest[at]))) at += 1;
        const inner = rest.slice(from, at).map(([start, end]) => [start + QUOTE.exec(text.slice(start, end))[0].length, end]);
        made.push(h("blockquote", blocks(inner, depth + 1)));
      } else if (ROW.test(line) && at < rest.length && UNDER_HEAD.test(read(rest[at]))) {
        at += 1;
        while (at < rest.length && ROW.test(read(rest[at]))) at += 1;
        made.push(table([rest[from], ...rest.slice(from + 2, at)]));
      } else if (item) {
        at = from;
        const ordered = /\d/u.test(item[2]);
        const items = [];
        const begun = at;
        for (let mark; at < rest.length && (mark = ITEM.exec(read(rest[at]))) && /\d/u.test(mark[2]) === ordered;) {
          const width = mark[0].length;
          const inner = [[rest[at][0] + width, rest[at][1]]];
          at += 1;
          // What is indented further is the item's own; so is a line directly below that begins nothing else.
          while (at < rest.length) {
            const below = read(rest[at]);
            const indent = /^[ \t]*/u.exec(below)[0].length;
            const blank = !below.trim();
            const after = rest.slice(at, at + 2).map(read).find((one) => one.trim()) ?? "";
            const inside = indent > mark[1].length || (blank && /^[ \t]*/u.exec(after)[0].length > mark[1].length);
            if (!inside && (blank || begins(below))) break;
            inner.push([rest[at][0] + Math.min(indent, width), rest[at][1]]);
            at += 1;
          }
          items.push(h("li", bare(blocks(inner, depth + 1))));
          if (at + 1 < rest.length && !read(rest[at]).trim() && ITEM.test(read(rest[at + 1]))) at += 1;
        }
        const start = ordered && Number.parseInt(item[2], 10);
        made.push(h(ordered ? "ol" : "ul", { start: start !== 1 && start, dir: direction(text.slice(rest[begun][0], rest[begun][1])) }, items));
      } else {
        while (at < rest.length && read(rest[at]).trim() && !begins(read(rest[at]))) at += 1;
        const parts = inline(rest.slice(from, at));
        if (parts.length) made.push(h("p", parts));
      }
    }
    return made;
  }

  /** An item of one paragraph needs none around its words. */
  function bare([first, ...more]) {
    return first?.localName === "p" ? [...first.childNodes, ...more] : [first, ...more];
  }

  function table(rows) {
    const cells = ([start, end], name) => {
      const places = [];
      let from = start + text.slice(start, end).indexOf("|") + 1;
      for (let place = from; place <= end; place += 1) {
        if (place < end && (text[place] !== "|" || text[place - 1] === "\\")) continue;
        if (place > from && (place < end || text.slice(from, place).trim())) places.push([from, place]);
        from = place + 1;
      }
      return h("tr", places.map((one) => h(name, inline([trimmed(one)]))));
    };
    const [head, ...body] = rows;
    return h("div.table", { tabindex: "0", role: "group", dir: direction(text.slice(...head)) },
      h("table", h("thead", cells(head, "th")), h("tbody", body.map((row) => cells(row, "td")))));
  }

  function trimmed([start, end]) {
    const words = text.slice(start, end);
    const from = start + words.length - words.trimStart().length;
    return [from, Math.max(from, end - (words.length - words.trimEnd().length))];
  }

  /** The words of some lines, sentence by sentence. */
  function inline(places, code = false) {
    const breaks = places.slice(1).map(([start]) => ({ start, end: start, line: true }));
    const words = code ? places.map(([start, end]) => ({ start, end, styles: [] })) : styled(places);
    const made = [];
    let own = null; // the sentence that is written, with its parts
    for (const run of [...breaks, ...words].sort((one, other) => one.start - other.start)) {
      let at = run.start;
      do {
        while (next < spans.length && spans[next].end <= at) next += 1;
        const span = spans[next]?.start <= at ? spans[next] : null;
        const stop = Math.min(run.end, span?.end ?? spans[next]?.start ?? run.end);
        if (own && own.span !== span) close();
        if (span) own ??= { span, parts: [] };
        (own?.parts ?? made).push(...(run.line ? [code ? "\n" : h("br")] : dressed(text.slice(at, stop), run.styles, span)));
        at = stop;
      } while (at < run.end);
    }
    close();
    return made;

    function close() {
      if (own?.parts.length) {
        const element = sentence(own.span, own.parts);
        last.set(own.span, element);
        made.push(element);
      }
      own = null;
    }
  }

  function dressed(words, styles, span) {
    const parts = styles.at(-1) === "code" ? [words] : piece(words, span);
    // Marks stand outside of emphasis, and so does white space.
    return parts.map((part) => (part instanceof Node || !part.trim() ? part : styles.reduceRight((inner, name) => h(name, inner), part)));
  }

  /** Cut lines where emphasis begins and ends; its signs and the backslashes before signs are left out. */
  function styled(places) {
    const signs = []; // {start, end, styles, opens}: left out, and what begins or ends there
    const open = [];
    for (const [start, end] of places) {
      TOKEN.lastIndex = start;
      for (let found; (found = TOKEN.exec(text)) && found.index < end;) {
        const [sign] = found;
        const [from, to] = [found.index, found.index + sign.length];
        if (to > end) break;
        if (sign[0] === "\\") signs.push({ start: from, end: from + 1 });
        else if (sign[0] === "`") {
          const stop = text.indexOf(sign, to);
          if (stop < 0 || stop >= end) continue;
          signs.push({ start: from, end: to, opens: ["code"] }, { start: stop, end: stop + sign.length, closes: 1 });
          TOKEN.lastIndex = stop + sign.length;
        } else {
          const [before, after] = [text[from - 1] ?? " ", text[to] ?? " "];
          const inWord = sign[0] === "_" && /[\p{L}\p{N}]/u.test(before) && /[\p{L}\p{N}]/u.test(after);
          const place = /\s/u.test(before) || from === start || inWord ? -1 : open.findLastIndex((one) => one.sign === sign);
          if (place >= 0) {
            const [opened] = open.splice(place);
            signs.push(opened, { start: from, end: to, closes: opened.opens.length });
          } else if (!/\s/u.test(after) && to < end && !inWord && open.length < DEEPEST) {
            open.push({ sign, start: from, end: to, opens: STYLES[sign.length] });
          }
        }
      }
    }
    signs.sort((one, other) => one.start - other.start);
    const runs = [];
    const styles = [];
    let sign = 0;
    for (const [start, end] of places) {
      let at = start;
      for (; sign < signs.length && signs[sign].start < end; sign += 1) {
        const one = signs[sign];
        if (one.start > at) runs.push({ start: at, end: one.start, styles: [...styles] });
        at = one.end;
        if (one.opens) styles.push(...one.opens);
        if (one.closes) styles.splice(-one.closes);
      }
      if (end > at) runs.push({ start: at, end, styles: [...styles] });
    }
    return runs;
  }
}

const begins = (line) => FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line) || ROW.test(line);
