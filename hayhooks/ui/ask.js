// Ask: a conversation, each answer written sentence by sentence with its verdicts, and the passage beside it.

import { call, stream } from "./api.js";
import { choices, shownFor, tally, Writing } from "./answer.js";
import { besidePane } from "./beside.js";
import { composed } from "./composer.js";
import { h, kept } from "./dom.js";
import { failed } from "./failure.js";
import { scope } from "./scope.js";
import { said } from "./server.js";
import { belowText, writtenTurn } from "./turn.js";
import { welcome } from "./welcome.js";
import { t } from "./words.js";

/** The turns of this tab by conversation, so that the way to a book and back costs nothing. */
const talks = new Map();
let running = null;

const newId = () => `page-${Date.now().toString(36)}-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;
/** Where the passage has a place of its own beside the answer, it opens by itself. */
const isWide = () => matchMedia("(min-width: 62.01rem)").matches;
const limits = () => Object.fromEntries(Object.entries(scope()).filter(([, names]) => names.length));
const fromTurn = (turn) => ({ answer: turn.answer, status: turn.meta?.status ?? "answered", citations: [], query: turn.question });
const fromReceipt = ({ receipt }) => ({ ...receipt.answer, metadata: { ...receipt.answer.metadata, receipt: receipt.id } });

/** Show a conversation; without an id a new one. */
export async function askView(main, id, server) {
  const conversation = id ?? newId();
  const thread = h("div.thread");
  const { pane, show, read, clear } = besidePane(() => { choose(null); });
  const composer = composed(server, (body) => ask(body));
  const status = h("p.hidden", { role: "status" });
  const reading = h("div.reading", h("h1.hidden", t("ask")), thread, composer.form, status);
  main.replaceChildren(h("div.desk", reading, pane));
  let chosen = null;

  if (!id) {
    thread.append(await welcome(server, composer.fill));
  } else if (talks.has(id)) {
    for (const turn of talks.get(id)) thread.append(shownTurn(turn));
    atTop(thread.lastElementChild);
  } else {
    await recall();
  }
  chooseFirst(thread.querySelector(".turn:last-of-type"));
  composer.label(thread.querySelector(".turn") !== null);
  composer.field.focus({ preventScroll: true });

  async function recall() {
    try {
      const { turns } = await call(`/api/v1/conversations/${encodeURIComponent(id)}`);
      const whole = await Promise.all(turns.map(async (turn) => {
        const receipt = turn.meta?.receipt;
        const found = receipt && (await call(`/api/v1/receipts/${receipt}`).catch(() => null));
        return { query: turn.question, answer: found ? fromReceipt(found) : fromTurn(turn) };
      }));
      talks.set(id, whole);
      for (const turn of whole) thread.append(shownTurn(turn));
      atTop(thread.lastElementChild);
    } catch (error) {
      thread.append(failed(error));
    }
  }

  /** Let a turn be the one that begins at the top, with as much room below as that takes. */
  function atTop(turn) {
    if (!turn) return;
    thread.querySelector(".newest")?.classList.remove("newest");
    turn.classList.add("newest");
    const room = isWide() ? thread.clientHeight : innerHeight - composer.form.offsetHeight;
    thread.style.setProperty("--room", `${room}px`);
    turn.scrollIntoView({ block: "start" });
  }

  function choose(index, choice, place = 0) {
    chosen?.forEach((one) => one.classList.remove("chosen"));
    main.querySelectorAll("button[data-claim][aria-pressed=true]").forEach((one) => one.setAttribute("aria-pressed", "false"));
    chosen = null;
    if (!choice) return clear();
    const { root } = choice;
    chosen = root.querySelectorAll(`:is(.sentence, .quotation)[data-claim="${index}"]`);
    chosen.forEach((one) => one.classList.add("chosen"));
    root.querySelector(`button[data-claim="${index}"]`)?.setAttribute("aria-pressed", "true");
    return show(choice, place);
  }

  /** Open the first passage of an answer, where nothing was chosen and there is room. */
  function chooseFirst(turn) {
    if (!turn || chosen || !isWide()) return;
    const { root, given } = choosables.get(turn.querySelector(".answer")) ?? {};
    const index = given?.().findIndex((one) => one.citations.length > 0) ?? -1;
    if (index >= 0) choose(index, { ...given()[index], root });
  }

  /** Let sentences of an answer be chosen, by a click anywhere in them, their marks or buttons, and the arrow keys. */
  function choosable(root, given) {
    choosables.set(root, { root, given });
    root.addEventListener("click", (event) => {
      const at = event.target.closest("[data-claim]");
      const mark = event.target.closest("a[data-number]");
      if (!at || getSelection()?.toString() || (mark && (event.ctrlKey || event.metaKey || event.shiftKey))) return;
      const index = Number(at.dataset.claim);
      const choice = given()[index];
      if (!choice) return;
      const place = mark ? choice.citations.findIndex((one) => one.number === Number(mark.dataset.number)) : 0;
      if (place < 0) return; // the mark of another sentence leads into the book
      if (mark) event.preventDefault();
      choose(index, { ...choice, root }, place);
    });
    root.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      const own = event.target.closest("[data-claim]")?.dataset.claim;
      if (!step || own === undefined) return;
      const all = [...root.querySelectorAll(":is(button[data-claim], .sentence a[data-number])")];
      const there = (one) => one.closest("[data-claim]").dataset.claim;
      const next = (step > 0 ? all : all.reverse()).slice(all.indexOf(event.target)).find((one) => there(one) !== own);
      if (!next) return;
      event.preventDefault();
      next.focus();
      next.click();
    });
  }

  function shownTurn(turn) {
    return writtenTurn(turn, { choosable, retry: composer.fill });
  }

  async function ask(body) {
    thread.querySelector(".welcome")?.remove();
    const turn = { query: body.query };
    const talk = talks.get(conversation) ?? [];
    talks.set(conversation, [...talk, turn]);
    history.replaceState(null, "", `#/ask/${conversation}`);
    kept("last", location.hash);
    choose(null);
    const head = h("h2.query", turn.query);
    const state = h("p.state", { role: "status" }, t("stage.query_rewritten"));
    const found = h("section.readings", { hidden: true });
    const text = h("div.answer", { "aria-busy": "true" });
    const drafts = h("ul");
    const shown = h("article.turn", head, state, found, text);
    thread.append(shown);
    atTop(shown);
    const given = [];
    choosable(text, () => given);
    const writing = new Writing(text, (claim) => {
      given.push({ claim, citations: shownFor(claim, claim.citations ?? []) });
      chooseFirst(shown);
    });
    running = new AbortController();
    composer.busy(running);
    composer.label(true);
    const mine = running;
    const events = {
      token: ({ text: piece }) => { found.hidden = true; writing.token(piece); },
      claim: (claim) => writing.claim(claim),
      draft_rejected: ({ feedback }) => drafts.append(h("li", feedback)),
      documents_retrieved: ({ documents }) => {
        state.textContent = t("stage.documents_retrieved", documents.length);
        if (chosen || !documents.some((one) => one.id)) return;
        found.hidden = isWide();
        read(documents, found.hidden ? null : found);
      },
    };
    try {
      turn.answer = await stream({ ...body, conversation_id: conversation, ...limits() }, (name, data) => {
        if (events[name]) events[name](data);
        else if (t(`stage.${name}`) !== name) state.textContent = t(`stage.${name}`);
      }, mine.signal);
      turn.drafts = [...drafts.children].map((one) => said(one.textContent));
      finish(turn, { shown, text, given, writing, passing: [state, found] });
    } catch (error) {
      writing.show();
      talks.set(conversation, talks.get(conversation).filter((one) => one !== turn));
      const why = error.name === "AbortError" ? { kind: "stopped" } : error;
      state.remove();
      // What was read is not lost with the model.
      found.hidden = text.textContent !== "";
      text.removeAttribute("aria-busy");
      const failure = failed(why, () => { shown.remove(); ask(body); });
      shown.append(failure);
      failure.scrollIntoView({ block: "nearest" });
    } finally {
      if (mine === running) running = null;
      composer.idle();
    }
  }

  /** Put the whole turn in the place of what was written while it came, and keep what was chosen and focused in it. */
  function finish(turn, { shown, text, given, writing, passing }) {
    status.textContent = [t("done"), turn.answer.metadata.claims.length > 0 && tally(turn.answer.metadata.claims)].filter(Boolean).join(" ");
    if (writing.matches(turn.answer)) {
      // What stands is not touched, so that nothing of a long answer is laid out again.
      given.splice(0, given.length, ...choices(turn.answer));
      text.removeAttribute("aria-busy");
      for (const one of passing) one.remove();
      text.after(...belowText(turn));
      chooseFirst(shown);
      return;
    }
    const index = text.querySelector(".chosen")?.dataset.claim;
    const focused = text.contains(document.activeElement) ? document.activeElement.closest("[data-claim]")?.dataset.claim : undefined;
    const whole = shownTurn(turn);
    whole.classList.toggle("newest", shown.matches(".newest"));
    shown.replaceWith(whole);
    const control = (claim) => whole.querySelector(`:is(button, .sentence)[data-claim="${claim}"]`);
    if (index !== undefined) control(index)?.click();
    if (focused !== undefined) (control(focused)?.querySelector("a[data-number]") ?? control(focused))?.focus();
    chooseFirst(whole);
  }
}

/** What can be chosen in the text of an answer. */
const choosables = new WeakMap();

/** Show one answer by its receipt. */
export async function receiptView(main, id, server) {
  const found = await call(`/api/v1/receipts/${encodeURIComponent(id)}`);
  const answer = fromReceipt(found);
  const name = `receipt-${id}`;
  talks.set(name, [{ query: answer.query, answer, stale: found.stale }]);
  await askView(main, name, server);
  main.querySelector("form.composer")?.remove();
}
