// Why: what each stage did for an answer, its times and tokens, its receipt, and where a passage got lost.

import { call } from "./api.js";
import { add, h, icon } from "./dom.js";
import { failed } from "./failure.js";
import { said } from "./server.js";
import { number, t } from "./words.js";

const duration = (ms) => (ms >= 1000 ? t("seconds", number(Math.round(ms / 100) / 10)) : t("ms", number(Math.round(ms))));

/** Name a component of the mode as readers call it. */
function stageName(name) {
  const word = t(`stages.${name}`);
  return word === name ? name.replaceAll("_", " ") : word;
}

const lostAt = ({ stage, reason }) => (t(`lostAt.${stage}`) === stage ? said(reason) : t(`lostAt.${stage}`));

/** Write how an answer came about, folded until it is asked for and made when it is. */
export function whyBlock(answer) {
  const folded = h("details.why", h("summary", t("why")));
  folded.addEventListener("toggle", () => add(folded, whyOf(answer)), { once: true });
  return folded;
}

function whyOf(answer) {
  const { timings_ms: times = {}, usage = {}, llm_calls: calls, receipt, warnings = [], time_to_first_token_ms: first } = answer.metadata;
  const total = times.total || 1;
  const stages = Object.entries(times).filter(([name, ms]) => name !== "total" && ms >= 0.05);
  const facts = [
    [t("total"), duration(total)], first && calls > 0 && [t("firstWord"), duration(first)], [t("calls"), number(calls)],
    usage.total_tokens && [t("tokens"), number(usage.total_tokens)],
    answer.metadata.model && [t("model"), answer.metadata.model],
    receipt && [t("receipt"), h("a", { href: `#/answer/${receipt}` }, receipt.slice(0, 12))],
  ].filter(Boolean);
  const bars = stages.map(([name, ms]) => {
    const bar = h("i");
    bar.style.setProperty("inline-size", `${Math.max(0.5, Math.min(100, (100 * ms) / total))}%`);
    return h("tr", h("th", { scope: "row", title: name }, stageName(name)), h("td.bar", bar), h("td.figure", duration(ms)));
  });
  return [
    h("h3", t("whyHead")),
    h("dl", facts.map(([name, value]) => h("div", h("dt", name), h("dd", value)))),
    warnings.length > 0 && h("ul.warnings", { "aria-label": t("warnings") }, warnings.map((warning) => h("li", { dir: "auto" }, said(warning)))),
    h("table.times", h("caption", t("times")), h("tbody", bars)),
    lostForm(answer),
  ];
}

function lostForm(answer) {
  const field = h("textarea", { rows: 2, required: true, maxlength: 2000 });
  const result = h("div", { "aria-live": "polite" });
  return h("form.lost", { submit: look }, h("h3", t("lostHead")), h("label", t("lostLead"), field), h("button", { type: "submit" }, t("look")), result);

  async function look(event) {
    event.preventDefault();
    if (!field.value.trim()) return;
    result.replaceChildren(h("p.hint", "…"));
    try {
      const found = await call("/api/v1/why", { body: { query: answer.query, expected: field.value, mode: answer.mode } });
      result.replaceChildren(
        h("ul.ranks", found.passages.slice(0, 3).map((one) => h("li", [one.source, ...one.section].join(" › ")))),
        h("ol.ranks", Object.entries(found.ranks ?? {}).map(([step, rank]) => h("li", { class: rank === null ? "missed" : "met" },
          icon(rank === null ? "M4 4l8 8M12 4l-8 8" : "M3 8l4 4 6-8"), h("span", t(`steps.${step}`)),
          h("span.figure", rank === null ? t("notAmong", found.sizes[step]) : t("rank", rank, found.sizes[step]))))),
        h("p", h("strong", t(found.stage === "nothing_lost" ? "notLost" : "lost")), " ", lostAt(found)));
    } catch (error) {
      result.replaceChildren(failed(error));
    }
  }
}
