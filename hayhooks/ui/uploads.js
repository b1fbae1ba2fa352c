// Putting files in: where they are dropped, and how far the server is with each.

import { call, upload } from "./api.js";
import { add, h } from "./dom.js";
import { failed } from "./failure.js";
import { said } from "./server.js";
import { number, t } from "./words.js";

const LOOK_MS = 700;
const jobs = h("ul.jobs", { "aria-live": "polite" }); // goes on while other views are read
let atWork = 0;

/** Whether files are on their way. */
export const isAtWork = () => atWork > 0;

/** The place for files, and the list of those on their way; `changed()` is called when the library may have changed. */
export const uploads = (server, changed) => [dropZone(server, changed), jobs];

function dropZone(server, changed) {
  const choose = h("input", { type: "file", multiple: true, id: "files", class: "hidden", change: () => { take(choose.files, changed); choose.value = ""; } });
  const zone = h("div.drop", h("p", t("drop"), " ", choose, h("label.button", { for: "files" }, t("choose"))),
    h("p.hint", t("formats", number(Math.floor((server.limits?.upload_bytes ?? 0) / 1_048_576)))));
  for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => { event.preventDefault(); zone.classList.remove("over"); take(event.dataTransfer.files, changed); });
  return zone;
}

/** Send files up one after the other, and follow all of them at once. */
async function take(files, changed) {
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
      follow(job, report, changed);
    } catch (error) {
      atWork -= 1;
      report(h("span.bad", t("failed")), failed(error));
    }
    changed();
  }
}

async function follow(taken, report, changed) {
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
  changed();
}

/** A bar of how much is done. */
export function bar(label, value, total) {
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
