// Errors as a reader meets them: what happened, what to do next, the number for the log.

import { h } from "./dom.js";
import { said } from "./server.js";
import { language, t } from "./words.js";

/** Write an error; `again` is what its button does. */
export function failed(error, again = null) {
  const own = t(`error.${error.kind}`);
  const known = own !== error.kind;
  const message = error.message || String(error);
  // What is known of a kind is said in the page's words; where the server names something, that stands below.
  const named = known && ["refused", "invalid_request", "not_found"].includes(error.kind) ? message : "";
  const next = known ? "" : error.next;
  return h("div.failure", { role: "alert" },
    h("p", known ? own : said(message)),
    named && h("p", { lang: said(named) === named ? "en" : language() }, said(named)),
    next && h("p", said(next)),
    error.retry && h("p", t("waitFor", error.retry)),
    error.id && h("p.reference", t("reference", error.id)),
    again && h("button", { type: "button", click: again }, t("again")));
}
