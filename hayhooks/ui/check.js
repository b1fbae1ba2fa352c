// Check a text: every quotation and sentence of it beside its passage, with a verdict.

import { stream, textOf } from "./api.js";
import { bookAt, whereabouts } from "./beside.js";
import { h, kept, shape } from "./dom.js";
import { failed } from "./failure.js";
import { said } from "./server.js";
import { number, t } from "./words.js";

const PLAIN = /\.(txt|md|markdown)$/i;

/** Show the field for a text, and under it what was found. */
export async function checkView(main) {
  const field = h("textarea", { id: "text", rows: 10, required: true, value: kept("checked") ?? "" });
  const choose = h("input", { type: "file", id: "draft", class: "hidden", accept: ".txt,.md,.markdown,.docx", change: () => { take(choose.files); choose.value = ""; } });
  const count = h("p.count", { role: "status" });
  const list = h("ol.checked");
  const chosen = h("p.actions.filter", { role: "group", "aria-label": t("showOnly") });
  const go = h("button.primary", { type: "submit" }, t("checkGo"));
  const stop = h("button", { type: "button", hidden: true, click: () => running?.abort() }, t("stopAsking"));
  const form = h("form.search.drop", { submit }, h("label", { for: "text" }, t("checkText")), field,
    h("p.actions", go, stop, choose, h("label.button", { for: "draft" }, t("checkFile"))));
  let running = null;
  for (const name of ["dragenter", "dragover"]) form.addEventListener(name, (event) => { event.preventDefault(); form.classList.add("over"); });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => { event.preventDefault(); form.classList.remove("over"); take(event.dataTransfer.files); });
  main.replaceChildren(h("div.wide", h("h1", t("checkHead")), h("p.hint", t("checkLead")), form, count, chosen, list));

  /** A button that shows the parts of one verdict alone, or all again. */
  function filterOf([kind, verdict, times]) {
    const button = h(`button.verdict.${SHAPE[verdict] ?? verdict}`, { type: "button", "aria-pressed": "false", click: () => {
      const only = button.getAttribute("aria-pressed") === "false";
      for (const one of chosen.children) one.setAttribute("aria-pressed", String(only && one === button));
      for (const part of list.children) part.hidden = only && !(part.dataset.verdict === verdict && part.dataset.kind === kind);
    } }, shape(SHAPE[verdict] ?? verdict), `${t(`checks.${verdict}`)} ${number(times)}`);
    return button;
  }

  async function take([file]) {
    if (!file) return;
    try {
      field.value = PLAIN.test(file.name) ? await file.text() : await textOf(file);
    } catch (error) {
      list.replaceChildren(h("li", failed(error)));
    }
  }

  async function submit(event) {
    event.preventDefault();
    if (!field.value.trim() || running) return;
    kept("checked", field.value.length < 100_000 ? field.value : null);
    running = new AbortController();
    list.replaceChildren();
    chosen.replaceChildren();
    count.textContent = "…";
    go.disabled = true;
    stop.hidden = false;
    try {
      const done = await stream({ text: field.value, stream: true }, (name, item) => {
        if (name !== "item") return;
        count.textContent = t("of", number(item.number), number(item.count));
        list.append(row(item));
      }, running.signal, "/api/v1/verify");
      const counts = Object.entries(done.counts).flatMap(([kind, some]) => Object.entries(some).map(([verdict, times]) => [kind, verdict, times]));
      count.replaceChildren(counts.length ? t("checkedParts", number(done.items)) : t("nothing"), ...done.warnings.map((one) => h("span.hint", " ", said(one))));
      chosen.replaceChildren(...counts.map(filterOf));
    } catch (error) {
      if (error.name === "AbortError") count.append(` ${t("error.stopped")}`);
      else list.append(h("li", failed(error)));
    }
    running = null;
    go.disabled = false;
    stop.hidden = true;
  }
}

/** Write a part of the text, and beside it where it stands. */
function row(item) {
  const differs = (item.difference ?? []).map((one) => h("li", one.quoted && h("del", one.quoted), one.quoted && one.stands && " → ", one.stands && h("ins", one.stands)));
  const others = (item.places ?? 0) - 1;
  const why = item.kind === "claim" && item.verdict !== "nothing" && h("p.reason", said(item.reason));
  return h("li.part", { "data-verdict": item.verdict, "data-kind": item.kind },
    h("div.mine", h("p.standing", h(`span.verdict.${(SHAPE[item.verdict] ?? item.verdict).replace(/\W/gu, "")}`, shape(SHAPE[item.verdict] ?? item.verdict), h("strong", t(`checks.${item.verdict}`)))), item.kind === "quotation" ? h("blockquote", item.text) : h("p", item.text)),
    h("div.theirs", item.source ? [whereabouts(item), h("blockquote", item.quote), differs.length > 0 && h("ul.differs", differs), h("p.actions", h("a.link", { href: bookAt(item) }, t("openBook"), h("span.hidden", `: ${item.title || item.source}`)), others > 0 && h("span.hint", t("checkMore", number(others)))), why, item.against && [whereabouts(item.against), h("blockquote", item.against.quote)]] : why));
}

const SHAPE = { found: "supported", altered: "partial", stitched: "partial", misattributed: "contradicted", absent: "unsupported", too_short: "closest", nothing: "closest" };
