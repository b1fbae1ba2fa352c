// The field in which a question is typed: its mode, its limits, and the button that asks or stops.

import { add, h, kept } from "./dom.js";
import { scope, unlimited } from "./scope.js";
import { number, t } from "./words.js";

const LONGEST = 2000; // characters of a question
const ORDER = ["simple", "advanced", "precise", "agent"]; // from the quickest on

/** The form; `send(body)` asks. */
export function composed(server, send) {
  const field = h("textarea", { rows: 1, id: "question", enterkeyhint: "send" });
  const label = h("label.hidden", { for: "question" }, t("question"));
  const rank = (mode) => (ORDER.indexOf(mode) + 1 || ORDER.length + 1);
  const costs = (mode) => (t(`promise.${mode}`) === mode ? "" : `: ${t(`promise.${mode}`)}`);
  const modes = h("select", { id: "mode", "aria-describedby": server.model === false && "alike", change: () => kept("mode", modes.value) },
    server.modes.toSorted((one, other) => rank(one) - rank(other)).map((mode) => h("option", { value: mode }, t(`modes.${mode}`), costs(mode))));
  const go = h("button.primary", { type: "submit" }, t("send"));
  const fresh = h("a.link", { href: "#/ask", hidden: true }, t("newTalk"));
  const limit = h("div.limit");
  const form = h("form.composer", { submit }, limit, h("div.line", label, field, go), h("div.line.small", h("label", { for: "mode" }, t("mode")), modes, server.model === false && h("span.promise", { id: "alike" }, t("alike")), fresh));
  let stopping = null;
  modes.value = server.modes.includes(kept("mode")) ? kept("mode") : modes.options[0].value;
  field.addEventListener("input", () => { field.setCustomValidity(""); grow(); });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  });
  kept("mode", modes.value);
  limited();
  return {
    form, field,
    fill: (text) => { field.value = text; grow(); field.focus(); },
    label: (going) => { field.placeholder = t(going ? "followUp" : "question"); fresh.hidden = !going; },
    busy: (controller) => { stopping = controller; go.textContent = t("stopAsking"); },
    idle: () => { stopping = null; go.textContent = t("send"); },
  };

  function grow() {
    field.style.setProperty("block-size", "auto");
    field.style.setProperty("block-size", `${Math.min(field.scrollHeight + 2, 220)}px`);
  }

  function limited() {
    const { sources, sections } = scope();
    const names = [...sources, ...sections];
    limit.hidden = !names.length;
    limit.replaceChildren();
    add(limit, [h("span", t("only")), names.map((name) => h("span.chip", { dir: "auto" }, name)), h("button.link", { type: "button", click: () => { unlimited(); limited(); field.focus(); } }, t("everywhere"))]);
  }

  function submit(event) {
    event.preventDefault();
    if (stopping) {
      if (event.type === "submit") stopping.abort();
      return;
    }
    const query = field.value.trim();
    if (!query) return;
    const length = [...query].length; // a limit of the field itself would cut what is pasted, without a word
    if (length > LONGEST) field.setCustomValidity(t("tooLong", number(length), number(LONGEST)));
    if (!field.reportValidity()) return;
    field.value = "";
    grow();
    send({ query, mode: modes.value });
  }
}
