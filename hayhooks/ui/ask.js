// Ask: a conversation, each answer written sentence by sentence with its verdicts, and the passage beside it.

import { call, stream } from "./api.js";
import { choices, prose, quotations, tally, Writing } from "./answer.js";
import { besidePane } from "./beside.js";
import { add, h, kept, shape } from "./dom.js";
import { failed } from "./failure.js";
import { judgeBlock } from "./judge.js";
import { scope, unlimited } from "./scope.js";
import { takeBlock } from "./take.js";
import { whyBlock } from "./why.js";
import { t } from "./words.js";

/** The turns of this tab by conversation, so that the way to a book and back costs nothing. */
const talks = new Map();
let running = null;

const newId = () => `page-${Date.now().toString(36)}-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;

/** Show a conversation; without an id a new one. */
export async function askView(main, id, server) {
  const conversation = id ?? newId();
  const thread = h("div.thread");
  const { pane, show, clear } = besidePane(() => { choose(null); });
  const composer = composed(server, (body) => ask(body));
  const status = h("p.hidden", { role: "status" });
  const reading = h("div.reading", h("h1.hidden", t("ask")), thread, composer.form, status);
  main.replaceChildren(h("div.desk", reading, pane));
  let chosen = null;

  if (!id) {
    thread.append(await welcome());
  } else if (talks.has(id)) {
    for (const turn of talks.get(id)) thread.append(shownTurn(turn));
    thread.lastElementChild?.scrollIntoView({ block: "start" });
  } else {
    await recall();
  }
  composer.label(thread.querySelector(".turn") !== null);
  composer.field.focus({ preventScroll: true });

  async function recall() {
    try {
      const { turns } = await call(`/api/v1/conversations/${encodeURIComponent(id)}`);
      const whole = await Promise.all(turns.map(async (turn) => {
        const receipt = turn.meta?.receipt;
        const found = receipt && (await call(`/api/v1/receipts/${receipt}`).catch(() => null));
        return { query: turn.question, answer: found ? fromReceipt(found) : told(turn) };
      }));
      talks.set(id, whole);
      for (const turn of whole) thread.append(shownTurn(turn));
    } catch (error) {
      thread.append(failed(error));
    }
  }

  function choose(index, choice) {
    chosen?.forEach((one) => one.classList.remove("chosen"));
    main.querySelectorAll(".verdict[aria-pressed=true]").forEach((one) => one.setAttribute("aria-pressed", "false"));
    chosen = null;
    if (!choice) return clear();
    const { root } = choice;
    chosen = root.querySelectorAll(`:is(.sentence, .quotation)[data-claim="${index}"]`);
    chosen.forEach((one) => one.classList.add("chosen"));
    root.querySelector(`button[data-claim="${index}"]`)?.setAttribute("aria-pressed", "true");
    return show(choice);
  }

  /** Let sentences of an answer be chosen, by a click anywhere in them or their buttons, and the arrow keys. */
  function choosable(root, given) {
    root.addEventListener("click", (event) => {
      const at = event.target.closest("[data-claim]");
      if (!at || getSelection()?.toString()) return;
      const index = Number(at.dataset.claim);
      const choice = given()[index];
      if (choice) choose(index, { ...choice, root });
    });
    root.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (!step || !event.target.matches("button.verdict")) return;
      const all = [...root.querySelectorAll("button.verdict")];
      const next = all[all.indexOf(event.target) + step];
      if (!next) return;
      event.preventDefault();
      next.focus();
      next.click();
    });
  }

  async function ask(body) {
    thread.querySelector(".welcome")?.remove();
    const turn = { query: body.query };
    const talk = talks.get(conversation) ?? [];
    talks.set(conversation, [...talk, turn]);
    history.replaceState(null, "", `#/ask/${conversation}`);
    kept("last", location.hash);
    const head = h("h2.query", turn.query);
    const state = h("p.state", { role: "status" }, t("stage.query_rewritten"));
    const text = h("div.answer", { "aria-busy": "true" });
    const drafts = h("ul");
    const shown = h("article.turn", head, state, text);
    thread.append(shown);
    shown.scrollIntoView({ block: "start" });
    const given = [];
    choosable(text, () => given);
    const writing = new Writing(text, (claim) => given.push({ claim, citations: claim.citations }));
    running = new AbortController();
    composer.busy(running);
    composer.label(true);
    const mine = running;
    try {
      turn.answer = await stream({ ...body, conversation_id: conversation, ...limits() }, (name, data) => {
        if (name === "token") writing.token(data.text);
        else if (name === "claim") writing.claim(data);
        else if (name === "draft_rejected") drafts.append(h("li", data.feedback));
        else if (name === "documents_retrieved") state.textContent = t("stage.documents_retrieved", data.documents.length);
        else state.textContent = t(`stage.${name}`);
      }, mine.signal);
      turn.drafts = [...drafts.children].map((one) => one.textContent);
      const index = text.querySelector(".verdict[aria-pressed=true]")?.dataset.claim;
      const focused = text.contains(document.activeElement) ? document.activeElement.dataset.claim : null;
      const own = choices(turn.answer);
      const stands = writing.matches(turn.answer);
      if (stands) {
        given.splice(0, given.length, ...own);
        text.removeAttribute("aria-busy");
      }
      const whole = shownTurn(turn, stands ? text : null);
      shown.replaceWith(whole);
      if (index !== undefined && !stands) whole.querySelector(`button[data-claim="${index}"]`)?.click();
      if (focused !== null) whole.querySelector(`button[data-claim="${focused}"]`)?.focus();
      status.textContent = `${t("done")} ${tally(turn.answer.metadata.claims)}`;
    } catch (error) {
      writing.show();
      talks.set(conversation, talks.get(conversation).filter((one) => one !== turn));
      const why = error.name === "AbortError" ? { kind: "stopped" } : error;
      state.remove();
      text.removeAttribute("aria-busy");
      shown.append(failed(why, () => { shown.remove(); ask(body); }));
    } finally {
      if (mine === running) running = null;
      composer.idle();
    }
  }

  /** Write a turn; where its text stands already as the answer has it, it is taken over as it is. */
  function shownTurn(turn, standing = null) {
    const { answer } = turn;
    if (!answer) return h("article.turn", h("h2.query", turn.query));
    const text = standing ?? h("div.answer");
    const given = answer.metadata ? choices(answer) : [];
    if (!standing) choosable(text, () => given);
    const notice = t(`status.${answer.status}`);
    const plain = answer.status === "answered" || notice === answer.status;
    if (standing) { /* complete */ } else if (answer.status === "quoted") add(text, quotations(answer));
    else add(text, prose(answer.answer, answer.metadata?.claims ?? []));
    const claims = answer.metadata?.claims ?? [];
    return h("article.turn", h("h2.query", turn.query),
      turn.stale && h("p.notice", t("stale")),
      !plain && h("p.notice", h("strong", notice), answer.status === "quoted" && h("span", t("quotedLead"))),
      text,
      claims.length > 0 && h("p.tally", t("summary", claims.length, tally(claims))),
      answer.metadata && judgeBlock(answer),
      answer.metadata && h("div.more", changesBlock(answer), draftsBlock(turn.drafts), whyBlock(answer), takeBlock(answer)));
  }

  async function welcome() {
    const found = await call("/api/v1/documents").catch(() => null);
    const empty = found?.sources.length === 0;
    return h("section.welcome", h("h2", t(empty ? "emptyHead" : "askHead")), h("p", t(empty ? "emptyLead" : "askLead")),
      empty ? h("p", h("a.button", { href: "#/library" }, t("toLibrary"))) : h("ul.legend", { "aria-hidden": "true" },
        ["supported", "partial", "unsupported", "contradicted"].map((one) => h(`li.verdict.${one}`, shape(one), t(`verdict.${one}`)))));
  }
}

const limits = () => Object.fromEntries(Object.entries(scope()).filter(([, names]) => names.length));
const told = (turn) => ({ answer: turn.answer, status: turn.meta?.status ?? "answered", citations: [], query: turn.question });
const fromReceipt = ({ receipt }) => ({ ...receipt.answer, metadata: { ...receipt.answer.metadata, receipt: receipt.id } });

function changesBlock(answer) {
  const changes = answer.metadata.changes ?? [];
  const numbers = (given) => (given?.length ? given.map((one) => `[${one}]`).join(" ") : t("none"));
  return changes.length > 0 && h("details.changes", h("summary", t("changes", changes.length)), h("ul", changes.map((one) => h("li",
    h("strong", t(`change.${one.kind}`)), h(one.kind === "removed" ? "del" : "q", one.claim ?? one.text ?? ""),
    one.was && h("span.figure", t("was", numbers(one.was), numbers(one.numbers))), one.reason && h("span.reason", one.reason)))));
}

const draftsBlock = (drafts) => drafts?.length > 0 && h("details.changes", h("summary", t("rejected", drafts.length)), h("ul", drafts.map((one) => h("li", one))));

function composed(server, send) {
  const field = h("textarea", { rows: 1, maxlength: 2000, id: "question", enterkeyhint: "send" });
  const label = h("label.hidden", { for: "question" }, t("question"));
  const modes = h("select", { id: "mode", "aria-describedby": "promise" }, server.modes.map((mode) => h("option", { value: mode }, mode)));
  const promise = h("span.promise", { id: "promise" });
  const go = h("button.primary", { type: "submit" }, t("send"));
  const fresh = h("a.link", { href: "#/ask", hidden: true }, t("newTalk"));
  const limit = h("div.limit");
  const form = h("form.composer", { submit }, limit, h("div.line", label, field, go), h("div.line.small", h("label", { for: "mode" }, t("mode")), modes, promise, fresh));
  let stopping = null;
  modes.value = server.modes.includes(kept("mode")) ? kept("mode") : server.modes.find((mode) => mode === "simple") ?? server.modes[0];
  modes.addEventListener("change", promised);
  field.addEventListener("input", grow);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  });
  promised();
  limited();
  return {
    form, field,
    label: (going) => { field.placeholder = t(going ? "followUp" : "question"); fresh.hidden = !going; },
    busy: (controller) => { stopping = controller; go.textContent = t("stop"); },
    idle: () => { stopping = null; go.textContent = t("send"); },
  };

  function promised() {
    kept("mode", modes.value);
    const word = t(`promise.${modes.value}`);
    promise.textContent = word === modes.value ? "" : word;
  }

  function grow() {
    field.style.setProperty("block-size", "auto");
    field.style.setProperty("block-size", `${Math.min(field.scrollHeight + 2, 220)}px`);
  }

  function limited() {
    const { sources, sections } = scope();
    const names = [...sources, ...sections];
    limit.hidden = !names.length;
    limit.replaceChildren();
    add(limit, [h("span", t("only")), names.map((name) => h("span.chip", name)), h("button.link", { type: "button", click: () => { unlimited(); limited(); field.focus(); } }, t("everywhere"))]);
  }

  function submit(event) {
    event.preventDefault();
    if (stopping) {
      if (event.type === "submit") stopping.abort();
      return;
    }
    const query = field.value.trim();
    if (!query) return;
    field.value = "";
    grow();
    send({ query, mode: modes.value });
  }
}

/** Show one answer by its receipt. */
export async function receiptView(main, id, server) {
  const found = await call(`/api/v1/receipts/${encodeURIComponent(id)}`);
  const answer = fromReceipt(found);
  const name = `receipt-${id}`;
  talks.set(name, [{ query: answer.query, answer, stale: found.stale }]);
  await askView(main, name, server);
  main.querySelector("form.composer")?.remove();
}
