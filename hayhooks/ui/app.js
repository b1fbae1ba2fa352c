// The page: its frame, its addresses, its key.

import { call, onMissingKey } from "./api.js";
import { askView, receiptView } from "./ask.js";
import { bookView } from "./book.js";
import { checkView } from "./check.js";
import { h, icon, kept } from "./dom.js";
import { failed } from "./failure.js";
import { libraryView } from "./library.js";
import { pastView } from "./past.js";
import { language, switchLanguage, t } from "./words.js";

const THEMES = ["", "light", "dark"];
const ICONS = {
  ask: "M3 3h10v7H8l-3 3v-3H3z",
  library: "M3 3h3v10H3zM7 3h3v10H7zM11 4l2-.5L15 13l-2 .5z",
  check: "M2 4h8M2 8h5M2 12h4M9 11l2 2 4-5",
  past: "M8 2a6 6 0 1 1-5.6 3.9M2 3v3h3M8 5v3.5l2.5 1.5",
  theme: ["M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2z", { d: "M8 2a6 6 0 0 1 0 12z", fill: true }],
  key: "M10.5 2.5a3 3 0 1 1-2 5.2L4 12.3V14H2v-2.5l5-5a3 3 0 0 1 3.5-4z",
};

let server = null;
let main = null;

function frame() {
  const theme = kept("theme", undefined, localStorage) ?? "";
  if (theme) document.documentElement.dataset.theme = theme;
  document.documentElement.lang = language() === "zh" ? "zh-Hans" : "en";
  main = h("main", { id: "main", tabindex: "-1" });
  const link = (name) => h("a", { href: `#/${name}`, "data-view": name }, icon(ICONS[name]), h("span", t(name)));
  const rail = h("header.rail",
    h("a.slip", { href: "#/ask", "aria-label": "Shiguan" }, h("span", { lang: "zh-Hant" }, "史官")),
    h("nav", { "aria-label": "Shiguan" }, ["ask", "library", "check", "past"].map(link)),
    h("div.tools",
      h("button", { type: "button", lang: language() === "en" ? "zh" : "en", click: () => { switchLanguage(); start(); } }, t("language")),
      h("button", { type: "button", title: t("theme"), "aria-label": `${t("theme")}: ${t(`themeNames.${theme}`) || t("themeNames")}`, click: turnTheme }, icon(ICONS.theme)),
      kept("key") && h("button", { type: "button", title: t("leave"), "aria-label": t("leave"), click: () => { kept("key", null); location.reload(); } }, icon(ICONS.key))));
  const skip = h("a.skip", { href: "#main", click: (event) => { event.preventDefault(); main.focus(); } }, t("skip"));
  document.body.replaceChildren(skip, rail, main, h("div.toasts", { role: "status" }));
}

function turnTheme() {
  const theme = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme ?? "") + 1) % THEMES.length];
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  kept("theme", theme, localStorage);
}

/** Ask for the key; gives it, or null where the reader turns away. */
function askForKey(wrong) {
  return new Promise((resolve) => {
    const field = h("input", { type: "password", id: "key", autocomplete: "off", spellcheck: "false", required: true });
    const dialog = h("dialog.key", { "aria-labelledby": "key-head" }, h("form", { method: "dialog", submit: () => { kept("key", field.value.trim()); dialog.close("given"); } },
      h("h2", { id: "key-head" }, t("keyHead")), h("p", t(wrong ? "keyWrong" : "keyLead")),
      h("label", { for: "key" }, t("key")), field,
      h("p.hint", t("keyMake"), " ", h("code", "shiguan keys add --tenant NAME --role write")),
      h("p.actions", h("button.primary", { type: "submit" }, t("enter")))));
    dialog.addEventListener("close", () => { dialog.remove(); resolve(dialog.returnValue === "given" ? kept("key") : null); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

async function route() {
  const [path, asked] = (location.hash.slice(1) || "/ask").split("?");
  const [view, id] = path.split("/").slice(1).map(decodeURIComponent);
  const query = new URLSearchParams(asked);
  document.title = "Shiguan 史官";
  if (view === "ask" || view === "answer") kept("last", location.hash);
  for (const link of document.querySelectorAll("[data-view]")) {
    const here = link.dataset.view === view;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const place = h("div.view", h("h1.hidden", "Shiguan")); // of its own, so that a view that comes late does not come over the next one
  main.replaceChildren(place);
  try {
    server ??= await call("/api/v1/rag/health");
    if (view === "library") await libraryView(place, server);
    else if (view === "check") await checkView(place);
    else if (view === "past") await pastView(place, server);
    else if (view === "book") await bookView(place, query);
    else if (view === "answer" && id) await receiptView(place, id, server);
    else await askView(place, id || null, server);
  } catch (error) {
    place.replaceChildren(h("div.wide", h("h1.hidden", "Shiguan"), failed(error, route)));
  }
  document.body.dataset.ready = view || "ask";
}

onMissingKey(askForKey);
addEventListener("hashchange", () => { scrollTo(0, 0); route(); });

function start() {
  frame();
  return route();
}

start();
