// Take away: an answer as the server writes it for notes, word processors and bibliographies.

import { file } from "./api.js";
import { download, h, toast } from "./dom.js";
import { t } from "./words.js";

const FORMS = [["saveMd", "markdown", "md"], ["saveDocx", "docx", "docx"], ["saveBib", "bibtex", "bib"], ["saveRis", "ris", "ris"], ["saveCsl", "csl", "csl.json"], ["saveAnno", "annotations", "annotations.json"]];

/** The buttons of an answer; what has no receipt cannot be written. */
export function takeBlock(answer) {
  const receipt = answer.metadata?.receipt;
  if (!receipt) return false;
  const written = (form) => file(`/api/v1/receipts/${encodeURIComponent(receipt)}/export`, { form });
  const failed = (error) => toast([error.message, error.next].filter(Boolean).join(" "));
  const copy = async (put) => {
    try { await put(); toast(t("copied")); } catch (error) { if (error.kind) failed(error); }
  };
  // As a promise: a browser lets a page write to the clipboard only right after a click.
  const type = "text/plain";
  const copyText = () => navigator.clipboard.write([new ClipboardItem({
    [type]: written("markdown").then(async (one) => new Blob([await one.text()], { type })) })]);
  const save = async (form, ending) => {
    try {
      const content = await written(form);
      download(`shiguan-${receipt.slice(0, 8)}.${ending}`, content, content.type.split(";")[0]);
    } catch (error) { failed(error); }
  };
  const buttons = [
    [t("copyMd"), () => copy(copyText)],
    [t("copyLink"), () => copy(() => navigator.clipboard.writeText(`${location.origin}/#/answer/${receipt}`))],
    ...FORMS.map(([word, form, ending]) => [t(word), () => save(form, ending)]),
    [t("print"), () => print()],
  ];
  return h("details.take", h("summary", t("take")), h("p.actions", buttons.map(([word, click]) => h("button", { type: "button", click }, word))));
}
