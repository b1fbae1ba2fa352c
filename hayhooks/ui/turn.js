// A turn: the question, what kind of answer it got, its text, its sources, and what became of it.

import { call } from "./api.js";
import { choices, prose, quotations, quotes, sources, tally } from "./answer.js";
import { bookAt } from "./beside.js";
import { add, h } from "./dom.js";
import { judgeBlock } from "./judge.js";
import { place } from "./passage.js";
import { said } from "./server.js";
import { takeBlock } from "./take.js";
import { whyBlock } from "./why.js";
import { around, number, speaking, t } from "./words.js";

const UNSURE = new Set(["closest", "not_found"]);
// Why no model answered, by `metadata.reason`; other reasons show in the status.
const CAUSES = { no_model: "noModel", refused_key: "refusedKey", no_credit: "noCredit", budget: "budget", rate_limit: "unreached", server_error: "unreached", unreachable: "unreached", timeout: "unreached", unreadable: "unreached" };

/** Write a turn; `choosable(root, given)` lets its sentences be chosen, `retry(query)` puts another question into the field. */
export function writtenTurn(turn, { choosable, retry }) {
  const { answer } = turn;
  const head = h("h2.query", turn.query);
  if (!answer) return h("article.turn", head);
  const text = h("div.answer");
  const given = answer.metadata ? choices(answer) : [];
  choosable(text, () => given);
  add(text, quotes(answer) ? quotations(answer) : prose(answer.answer, answer.metadata?.claims ?? [], answer.citations));
  return h("article.turn", head, turn.stale && h("p.notice", t("stale")), noticeOf(turn, retry), text, ...belowText(turn));
}

/** Write what stands below the text of a turn. */
export function belowText({ answer, drafts }) {
  const claims = answer.metadata?.claims ?? [];
  return [
    claims.length > 0 && h("p.tally", tally(claims)),
    sourcesBlock(answer),
    answer.metadata && judgeBlock(answer),
    answer.metadata && h("div.more", changesBlock(answer), draftsBlock(drafts), whyBlock(answer), takeBlock(answer)),
  ].filter(Boolean);
}

function noticeOf({ query, answer }, retry) {
  const [say, lang] = speaking(answer.metadata?.language);
  const word = say(`status.${answer.status}`);
  if (answer.status === "answered" || word === answer.status) return null;
  // What the quotations are stands before them in the answer: closest passages, or a chapter's first sentences.
  const told = answer.status === "quoted" && lang === answer.metadata?.language && /^[^>[\n]+?[.。]/u.exec(answer.answer);
  const notice = h("div.notice", { lang }, h("p", h("strong", told ? told[0] : word)));
  const cause = CAUSES[answer.metadata?.reason];
  if (cause && quotes(answer) && (answer.status === "quoted" || cause !== "noModel")) notice.append(h("p", say(`cause.${cause}`)));
  if (!UNSURE.has(answer.status)) return notice;
  const { absent = [], waiting = 0 } = answer.metadata ?? {};
  for (const { term, near } of absent ?? []) {
    notice.append(h("p", around("absent", h("bdi", term), say), near?.length > 0 && [say("near"), near.map((name, index) => [index > 0 && say("comma"),
      h("button.link", { type: "button", dir: "auto", click: () => retry(query.replaceAll(term, name)) }, name)])]));
  }
  if (waiting > 0) notice.append(h("p", say("stillReading", number(waiting)), " ", h("a", { href: "#/library" }, say("howFar"))));
  if (answer.status === "not_found") sayIfEmpty(notice, say);
  return notice;
}

/** An empty library answers nothing, and that is not what the sources say. */
async function sayIfEmpty(notice, say) {
  const found = await call("/api/v1/documents").catch(() => null);
  if (found?.sources.length === 0) notice.replaceChildren(h("p", h("strong", say("emptyHead"))), h("p", say("emptyAsked"), " ", h("a", { href: "#/library" }, say("toLibrary"))));
}

/** The cited passages by their numbers; printed, with what is quoted of them. */
function sourcesBlock(answer) {
  const cited = sources(answer);
  return cited.length > 0 && h("section", { class: `sources ${quotes(answer) ? "printed" : ""}` }, h("h3", t("sources")), h("ol", cited.map((one) => h("li", { value: one.number },
    h("a", { href: bookAt(one), dir: "auto" }, [one.title || one.source, ...place(one)].filter(Boolean).join(" › ")),
    h("q.printed", { lang: one.language }, one.quote)))));
}

function changesBlock(answer) {
  // Marks that were set right are of no use to a reader, and sentences with a fault say so themselves.
  const removed = (answer.metadata.changes ?? []).filter((one) => one.kind === "removed");
  return removed.length > 0 && h("details.changes", h("summary", t("removedSentences", removed.length)), h("ul", removed.map((one) => h("li",
    h("del", { dir: "auto" }, one.claim ?? ""), one.reason && h("span.reason", said(one.reason))))));
}

const draftsBlock = (drafts) => drafts?.length > 0 && h("details.changes", h("summary", t("rejected", drafts.length)), h("ul", drafts.map((one) => h("li", { dir: "auto" }, one))));
