// Errors as a reader meets them: what happened, what to do next, the number for the log.

import { h } from "./dom.js";
import { t } from "./words.js";

/** Write an error; `again` is what its button does. */
export function failed(error, again = null) {
  const own = t(`error.${error.kind}`);
  const message = own !== error.kind ? own : error.message || String(error);
  const next = own !== error.kind && error.kind !== "too_many_requests" ? "" : error.next;
  return h("div.failure", { role: "alert" },
    h("p", message), next && h("p", next),
    error.retry && h("p", t("waitFor", error.retry)),
    error.id && h("p.reference", t("reference", error.id)),
    again && h("button", { type: "button", click: again }, t("again")));
}
