// Past questions: the conversations that the server keeps.

import { call } from "./api.js";
import { download, h, toast } from "./dom.js";
import { language, t } from "./words.js";

const UNDO_SECONDS = 6;

/** Show the conversations, the newest first. */
export async function pastView(main, server) {
  const { conversations } = await call("/api/v1/conversations");
  const when = new Intl.DateTimeFormat(language(), { dateStyle: "medium", timeStyle: "short" });
  const list = h("ul.past", conversations.map(row));
  main.replaceChildren(h("div.wide", h("h1", t("pastHead")), conversations.length ? list : h("p.hint", t("pastEmpty"))));

  function row(one) {
    const path = `/api/v1/conversations/${encodeURIComponent(one.id)}`;
    const link = h("a", { href: `#/ask/${encodeURIComponent(one.id)}`, dir: "auto" }, one.title || one.id);
    const line = h("li", h("div.name", link, h("span", [when.format(new Date((one.updated ?? one.created ?? 0) * 1000)), one.turns && t("turns", one.turns)].filter(Boolean).join(" · "))),
      h("div.actions",
        h("button.link", { type: "button", click: save }, t("export")),
        server.role !== "read" && h("button.link", { type: "button", click: rename }, t("rename")),
        server.role !== "read" && h("button.link", { type: "button", click: remove }, t("remove"))));
    return line;

    async function save() {
      download(`${one.id.replace(/\W/gu, "-")}.md`, await call(`${path}/export`), "text/markdown");
    }

    function rename() {
      const field = h("input", { value: link.textContent, maxlength: 200, required: true, "aria-label": t("title") });
      const form = h("form.line", { submit: async (event) => {
        event.preventDefault();
        await call(path, { method: "PATCH", body: { title: field.value } });
        link.textContent = field.value;
        form.replaceWith(link);
      } }, field, h("button", { type: "submit" }, t("save")));
      link.replaceWith(form);
      field.focus();
    }

    function remove() {
      line.hidden = true;
      const timer = setTimeout(() => call(path, { method: "DELETE" }).catch((error) => toast(error.message)), UNDO_SECONDS * 1000);
      toast(t("removed", link.textContent), [t("undo"), () => { clearTimeout(timer); line.hidden = false; }], UNDO_SECONDS);
    }
  }
}
