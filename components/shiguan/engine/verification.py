"""Checks any text against a library: its quotations and its claims."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from haystack import Document
from haystack.dataclasses import ByteStream

from shiguan.claims.checker import checker_of
from shiguan.claims.citations import cited_place, said_otherwise
from shiguan.engine.library import Library, read_file
from shiguan.errors import RefusedError
from shiguan.ingest.file_types import MARKDOWN, TEXT, decode_text, opened, type_by_name
from shiguan.verify.quotations import QuotationSearch
from shiguan.verify.reading import Part, read_text

MOST_CHARACTERS = 5_000_000
PASSAGES, _LONGEST = 5, 2000
# Of a text with thousands of quotations that are everywhere, not every place is listed.
_MOST_LISTED = 2000
_UNREAD = "{source} is still being read: {words:,} of {units:,} retrieval units are there, so more may be found later."

OnItem = Callable[[dict[str, Any], int, int], object]
"""Called with each part that was checked, its number and how many there are."""
Search = Callable[[str], list[Document]]


def read_document(source: Path | bytes, deployment: str, name: str = "standard input") -> str:
    """Read a document to check: text and Markdown unchanged, other kinds of files as an ingest reads them."""
    name = source.name if isinstance(source, Path) else name
    kind = type_by_name(name)
    if isinstance(source, Path):
        with opened(source, name) as file:
            source = file.read()
    if kind is None or kind in (TEXT, MARKDOWN):
        decoded = decode_text(source)
        if decoded is None:
            raise RefusedError(f"{name} is not text in an encoding that can be detected. Save it as UTF-8, or as DOCX.")
        return decoded.text
    documents = read_file(ByteStream(source, meta={"file_name": name}), deployment)
    return "\n\n".join(document.content or "" for document in documents)


def check_claim(claim: str, *searches: Search) -> dict[str, Any]:
    """Check a sentence like one of an answer, with the passages of one search after the other until it is supported."""
    best: dict[str, Any] = {}
    documents: dict[str, Document] = {}
    for search in searches:
        documents |= {document.id: document for document in search(claim)}
        numbered = dict(enumerate(documents.values(), start=1))
        checker = checker_of(numbered)
        checked = checker.check(checker.split(claim))
        if not checked:
            return {"verdict": "nothing", "reason": "it makes no claim", "score": None}
        supports = [part.support for part in checked]
        verdicts = {support.verdict for support in supports}
        verdict = next(iter(verdicts)) if len(verdicts) == 1 else "partial"
        support = worst = min(supports, key=lambda support: support.score)
        if "contradicted" in verdicts:
            verdict, support = "contradicted", next(s for s in supports if s.verdict == "contradicted")
        elif len(verdicts) > 1:  # what is there has a place, what is missing has a reason
            support = max(supports, key=lambda support: support.score)
        reason = worst.reason if verdict == "partial" else support.reason
        if verdict == "partial" and worst.verdict == "unsupported":
            reason = f"only a part of it is there: {reason}"
        best = {"verdict": verdict, "reason": reason, "score": round(min(worst.score, support.score), 4)}
        if support.passage >= 0:
            best |= cited_place(numbered[checker.numbers[support.passage]], (support.start, support.end))
        if verdict == "supported":
            for part in checked:
                number = checker.numbers[part.support.passage]
                if (other := said_otherwise(part.stated, [number], checker, numbered)) is not None:
                    words, place = other
                    del place["number"]
                    best |= {"reason": f"{support.reason}; {words}", "against": place}
            break
    return best


def verify_text(
    text: str | Iterable[Mapping[str, Any]],
    library: Library,
    tenant_id: str,
    search: Search,
    *,
    on_item: OnItem | None,
) -> dict[str, Any]:
    """Check a text or rows part by part; see `Runner.verify`."""
    sources = library.sources(tenant_id=tenant_id)
    if not sources:
        raise RefusedError(f"The tenant `{tenant_id}` has nothing in this library. Give the sources to check against.")
    warnings = [_UNREAD.format(**source) for source in sources if source["words"] < source["units"]]
    rows, unclosed = _parts_of(text)
    if unclosed:
        warnings.append(f"Quotation marks that do not close within their paragraph were ignored: {unclosed:,}.")
    quotations = QuotationSearch(library.stores, tenant_id)

    def by_words(claim: str) -> list[Document]:
        return quotations.passages(claim, PASSAGES)

    items: list[dict[str, Any]] = []
    listed = 0
    for own, part in rows:
        if part.kind == "claim":
            found = check_claim(part.text[:_LONGEST], by_words, search)
            if len(part.text) > _LONGEST and found["verdict"] == "supported":
                found |= {"verdict": "partial", "reason": f"only its first {_LONGEST:,} characters were checked"}
        else:
            found = quotations.check(part.text, part.named[:1000], in_context=not own)
            found["also"] = found["also"][: max(0, _MOST_LISTED - listed)]
            listed += len(found["also"])
        items.append({**own, "kind": part.kind, "text": part.text, "in_text": [part.start, part.end], **found})
        if on_item is not None:
            on_item(items[-1], len(items), len(rows))
    kinds = ("quotation", "claim")
    counts = {kind: dict(Counter(item["verdict"] for item in items if item["kind"] == kind)) for kind in kinds}
    return {"items": items, "counts": counts, "warnings": warnings}


def _parts_of(text: str | Iterable[Mapping[str, Any]]) -> tuple[list[tuple[dict[str, Any], Part]], int]:
    """Split a text into parts, or make each row with `text` and optionally `id` and `source` a quotation."""
    if isinstance(text, str):
        if len(text) > MOST_CHARACTERS:
            raise RefusedError(f"The text has {len(text):,} characters, the limit is {MOST_CHARACTERS:,}. Split it.")
        parts, unclosed = read_text(text)
        return [({}, part) for part in parts], unclosed
    rows = []
    for at, row in enumerate(text):
        fields: Mapping[str, Any] = row if isinstance(row, Mapping) else {}
        quoted, named = fields.get("text"), fields.get("source") or ""
        known = fields.keys() <= {"id", "text", "source"}  # a misspelled source would limit nothing
        if not known or not isinstance(quoted, str) or not quoted.strip() or not isinstance(named, str):
            shown = f"{row}"[:200]
            raise RefusedError(
                f'Quotation {at + 1} is not {{"id", "text", "source"?}} with a text: {shown}. Correct it.'
            )
        rows.append(({"id": fields.get("id", at)}, Part("quotation", 0, len(quoted), quoted, named)))
    return rows, 0
