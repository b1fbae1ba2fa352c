// The library: its sources and how far they are, putting in, taking out, and searching in the passages.

import { call, upload } from "./api.js";
import { bookAt, whereabouts } from "./beside.js";
import { add, h, toast } from "./dom.js";
import { failed } from "./failure.js";
import { written } from "./passage.js";
import { limitTo } from "./scope.js";
import { said } from "./server.js";
import { language, number, t } from "./words.js";

const AT_ONCE = 200;
const UNDO_SECONDS = 6;
const LOOK_MS = 700;
const LIST_MS = 3000;
const jobs = h("ul.jobs", { "aria-live": "polite" }); // goes on while other views are read
let atWork = 0;
const leaving = new Map(); // name -> what deletes it now

addEventListener("pagehide", () => { for (const remove of leaving.values()) remove(); });

/** Show the library. */
export async function libraryView(main, server) {
  const list = h("div.shelf");
  const count = h("p.count", { role: "status" });
  const filter = h("input", { type: "search", id: "filter", input: () => draw() });
  let sources = [];
  let all = false;
  let due = 0;
  const parts = [h("h1", t("library")), searchForm()];
  if (server.role !== "read") parts.push(dropZone(), jobs);
  main.replaceChildren(h("div.wide", parts, h("div.listhead", count, h("label", t("filter"), filter)), list));
  await load();

  async function load() {
    clearTimeout(due);
    try {
      const found = (await call("/api/v1/documents")).sources;
      if (!list.hasChildNodes() || JSON.stringify(found) !== JSON.stringify(sources)) {
        sources = found;
        const at = list.contains(document.activeElement) && document.activeElement.getAttribute("aria-label");
        draw();
        if (at) [...list.querySelectorAll("[aria-label]")].find((one) => one.getAttribute("aria-label") === at)?.focus();
      }
      if (list.isConnected && (atWork > 0 || sources.some((one) => !one.complete))) due = setTimeout(load, LIST_MS);
    } catch (error) {
      list.replaceChildren(failed(error, load));
    }
  }

  function draw() {
    const wanted = filter.value.trim().toLowerCase();
    const kept = sources.filter((one) => !leaving.has(one.source) && (!wanted || `${one.source} ${one.title ?? ""}`.toLowerCase().includes(wanted)));
    count.textContent = t("works", number(kept.length));
    const rows = kept.slice(0, all ? kept.length : AT_ONCE).map(row);
    list.replaceChildren();
    add(list, [h("ul", rows), kept.length > rows.length && h("button", { type: "button", click: () => { all = true; draw(); } }, t("showAll", number(kept.length)))]);
  }

  function row(one) {
    const address = `#/book?${new URLSearchParams({ source: one.source })}`;
    return h("li.source",
      h("div.name", h("a", { href: address, lang: one.language, dir: "auto" }, one.title || one.source), one.title && h("span", one.source)),
      h("div.facts", h("span.tongue", { lang: language() }, tongue(one.language)), h("span", t("passages", number(one.passages)))),
      h("div.state", one.complete ? h("span", `✓ ${t("complete")}`) : [h("span", t("incomplete")), bar(t("words"), one.words, one.units), bar(t("vectors"), one.vectors, one.units)]),
      h("div.actions",
        h("button.link", { type: "button", "aria-label": `${t("onlyThis")}: ${one.title || one.source}`, click: () => limitTo({ sources: [one.source], sections: [] }) }, t("onlyThis")),
        server.role !== "read" && h("button.link", { type: "button", "aria-label": `${t("remove")}: ${one.title || one.source}`, click: () => remove(one) }, t("remove"))));
  }

  function remove(one) {
    const now = async (options = {}) => {
      clearTimeout(timer);
      leaving.delete(one.source);
      try {
        await call(`/api/v1/documents/${one.source.split("/").map(encodeURIComponent).join("/")}`, { method: "DELETE", ...options });
      } catch (error) {
        toast(error.message);
      }
      await load();
    };
    const timer = setTimeout(now, UNDO_SECONDS * 1000);
    leaving.set(one.source, now);
    toast(t("removed", one.title || one.source), [t("undo"), () => { clearTimeout(timer); leaving.delete(one.source); draw(); }], UNDO_SECONDS);
    draw();
  }

  function dropZone() {
    const choose = h("input", { type: "file", multiple: true, id: "files", class: "hidden", change: () => { take(choose.files); choose.value = ""; } });
    const zone = h("div.drop", h("p", t("drop"), " ", choose, h("label.button", { for: "files" }, t("choose"))),
      h("p.hint", t("formats", number(Math.floor((server.limits?.upload_bytes ?? 0) / 1_048_576)))));
    for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, (event) => { event.preventDefault(); zone.classList.add("over"); });
    zone.addEventListener("dragleave", () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => { event.preventDefault(); zone.classList.remove("over"); take(event.dataTransfer.files); });
    return zone;
  }

  /** Send files up one after the other, and follow all of them at once. */
  async function take(files) {
    const lines = [...files].map((file) => {
      const line = h("li");
      const report = (...told) => { line.replaceChildren(); add(line, [h("strong", file.name), " ", told]); };
      report(t("waiting"));
      jobs.append(line);
      return [file, report];
    });
    atWork += lines.length;
    for (const [file, report] of lines) {
      try {
        const job = await upload(file, (share) => report(t("sending"), " ", bar("", Math.round(share * 100), 100)));
        follow(job, report);
      } catch (error) {
        atWork -= 1;
        report(h("span.bad", t("failed")), failed(error));
      }
      load();
    }
  }

  async function follow(taken, report) {
    let job = taken;
    try {
      while (job.state === "queued" || job.state === "running") {
        const { stage, done, total } = job.progress;
        report(t(job.state === "queued" ? "waiting" : "ingesting"), " ", stage && total > 0 && bar(t(stage), done, total));
        await new Promise((resolve) => { setTimeout(resolve, LOOK_MS); });
        job = await call(`/api/v1/documents/jobs/${job.id}`);
      }
      report(outcome(job));
    } catch (error) {
      report(h("span.bad", t("failed")), failed(error));
    }
    atWork -= 1;
    if (list.isConnected) load();
  }

  function searchForm() {
    const field = h("input", { type: "search", id: "search", maxlength: 2000, required: true });
    const years = h("input", { id: "years", maxlength: 100, autocomplete: "off", placeholder: "755..763" });
    const found = h("div.found", { "aria-live": "polite" });
    return h("form.search", { submit }, h("label", { for: "search" }, t("search")), h("div.line", field, h("button", { type: "submit" }, t("searchGo"))),
      h("label", { for: "years" }, t("years")), h("div.line", years, h("button", { type: "button", click: byYear }, t("byYear"))), found);

    /** List what the library says by year, of what is searched where something is. */
    async function byYear() {
      found.replaceChildren(h("p.hint", "…"));
      try {
        const query = Object.fromEntries(Object.entries({ query: field.value.trim(), when: years.value.trim() }).filter(([, value]) => value));
        const { lines, count } = await call("/api/v1/library/timeline", { query });
        found.replaceChildren(h("p.hint", lines.length < count ? t("of", number(lines.length), number(count)) : lines.length ? t("found", lines.length) : t("nothing")), ...lines.map((one) => h("section.hit",
          h("h3.when", one.how === "carried" ? `[${one.as}]` : one.as, one.western && h("span.hint", ` = ${one.western}`)),
          whereabouts(one),
          h("blockquote", { dir: "auto" }, one.text),
          h("p.actions", h("a.link", { href: bookAt({ ...one, parent_id: one.passage }) }, t("openBook"))))));
      } catch (error) {
        found.replaceChildren(failed(error));
      }
    }

    async function submit(event) {
      event.preventDefault();
      if (!field.value.trim()) return;
      found.replaceChildren(h("p.hint", "…"));
      try {
        const when = years.value.trim();
        const { passages } = await call("/api/v1/library/search", { query: { query: field.value, ...(when && { when }) } });
        found.replaceChildren(h("p.hint", passages.length ? t("found", passages.length) : t("nothing")), ...passages.map((one) => h("section.hit",
          whereabouts(one),
          h("div.passage", { lang: one.language }, written(one)),
          h("p.actions", h("a.link", { href: bookAt({ ...one, start: 0, end: 0 }) }, t("openBook"))))));
        for (const text of found.querySelectorAll(".passage")) text.classList.toggle("cut", text.scrollHeight > text.clientHeight + 4);
      } catch (error) {
        found.replaceChildren(failed(error));
      }
    }
  }
}

/** Name a language in the language of the page. */
function tongue(code) {
  try {
    return new Intl.DisplayNames(language(), { type: "language" }).of(code);
  } catch {
    return code ?? "";
  }
}

function bar(label, value, total) {
  const part = h("i");
  part.style.setProperty("inline-size", `${total ? Math.min(100, (100 * value) / total) : 0}%`);
  return h("span.progress", label && h("span", label), h("span.bar", { "aria-hidden": "true" }, part), h("span.figure", t("of", number(value), number(total))));
}

function outcome(job) {
  const { result, error, state } = job;
  if (state !== "done") return [h("span.bad", t(state)), error && [h("p", said(error.message)), h("p", said(error.next_step))]];
  return [h("span", `✓ ${t("ingested", number(result.parents), number(result.new), number(result.vectors))}`),
    result.warnings.map((warning) => h("p", said(warning))),
    result.skipped.length > 0 && h("details", h("summary", `${t("skipped")} (${result.skipped.length})`), h("ul", result.skipped.map((one) => h("li", h("strong", one.source), `: ${one.cause}. ${one.next_step}.`))))];
}
