// Judge: two buttons under an answer, and a form for what is wrong with it.

import { call } from "./api.js";
import { h } from "./dom.js";
import { failed } from "./failure.js";
import { t } from "./words.js";

const WRONG = ["wrong", "wrong_citation", "missing"];

/** Let a reader say whether an answer is right; what is said later replaces it. */
export function judgeBlock(answer) {
  const { receipt } = answer.metadata;
  if (!receipt) return null;
  const right = h("button.link", { type: "button", "aria-pressed": "false", click: () => give("right", "") }, t("right"));
  const kind = h("select", WRONG.map((one) => h("option", { value: one }, t(`kind.${one}`))));
  const note = h("textarea", { rows: 2, maxlength: 2000 });
  const form = h("form", { submit }, h("label", t("kindOf"), kind), h("label", t("note"), note), h("button", { type: "submit" }, t("tell")));
  const wrong = h("details", h("summary", t("wrong")), form);
  const said = h("div", { role: "status" });
  return h("div.judge", { role: "group", "aria-label": t("judge") }, right, wrong, said);

  async function submit(event) {
    event.preventDefault();
    if (!(await give(kind.value, note.value))) return;
    wrong.open = false;
    wrong.firstElementChild.focus();
  }

  async function give(what, words) {
    try {
      await call("/api/v1/feedback", { body: { receipt, kind: what, note: words } });
      right.setAttribute("aria-pressed", String(what === "right"));
      said.replaceChildren(h("p", t("thanks", t(what === "right" ? "right" : `kind.${what}`))));
      return true;
    } catch (error) {
      said.replaceChildren(failed(error));
      return false;
    }
  }
}
