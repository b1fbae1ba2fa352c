// Reports of `shiguan eval`: their list, and one of them, of which the server gives the few elements that a report has.

import { call } from "./api.js";
import { h } from "./dom.js";
import { language, t } from "./words.js";

/** Show the list, or the report of a name. */
export async function reportsView(place, name) {
  const back = h("p.bar", h("a.button", { href: name ? "#/reports" : "#/library" }, `← ${t(name ? "reports" : "library")}`));
  if (name) {
    const { body } = await call(`/api/v1/reports/${name.split("/").map(encodeURIComponent).join("/")}`);
    place.replaceChildren(h("div.wide.report", back, body.map((part) => drawn(part))));
    return;
  }
  const { reports } = await call("/api/v1/reports");
  const when = new Intl.DateTimeFormat(language(), { dateStyle: "medium", timeStyle: "short" });
  const rows = reports.map((one) => h("li", h("div.name", h("a", { href: `#/reports/${encodeURIComponent(one.name)}` }, one.title), h("span", `${when.format(new Date(one.written))} · ${one.name}`))));
  place.replaceChildren(h("div.wide", back, h("h1", t("reports")), rows.length ? h("ul.past", rows) : h("p.hint", t("reportsEmpty"))));
}

function drawn(part) {
  if (typeof part === "string") return part;
  const [name, given, ...inner] = part;
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  made.append(...inner.map(drawn));
  return made;
}
