"""Writes the citations of an answer as EPUB Annotations 1.0 (W3C working draft), which e-book readers can import."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from shiguan import __version__
from shiguan.engine.receipts import CitedSpan, Receipt
from shiguan.errors import RefusedError
from shiguan.text.works import isbn_of, plain_line

_CONTEXT = "https://www.w3.org/ns/epub-anno.jsonld"
_CFI = "http://www.idpf.org/epub/linking/cfi/epub-cfi.html"
_SOFTWARE = {"id": "urn:x-shiguan", "type": "Software", "name": "Shiguan"}
_LONGEST = 10_000


def annotation_sets(receipt: Receipt, works: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """Write a set of annotations for each EPUB that is cited: one object, or a list where there are several."""
    sets = [found for source, work in works if (found := _set(receipt, source, work))["items"]]
    if not sets:
        raise RefusedError(
            "The answer cites no place in an EPUB, so nothing can be marked in one. Choose another form."
        )
    return json.dumps(sets[0] if len(sets) == 1 else sets, ensure_ascii=False, indent=2) + "\n"


def _set(receipt: Receipt, source: str, work: dict[str, Any]) -> dict[str, Any]:
    cited = [citation for citation in receipt.answer.citations if citation.source == source and _href(citation)]
    about = {
        "title": work.get("title") or plain_line(source),
        "publisher": work.get("publisher"),
        "date": work.get("year"),
        "creator": work.get("author"),
        "identifier": [f"urn:isbn:{name}" if isbn_of(name) else name for name in work.get("identifier", ())],
    }
    return {
        "@context": _CONTEXT,
        "id": _urn(receipt, source),
        "type": "AnnotationSet",
        "generator": {**_SOFTWARE, "name": f"Shiguan {__version__}"},
        "generated": receipt.written,
        "title": plain_line(receipt.answer.query),
        "about": {
            "dc:format": "application/epub+zip",
            **{f"dc:{name}": value for name, value in about.items() if value},
        },
        "items": [_annotation(receipt, citation, f"{source} {place}") for place, citation in enumerate(cited)],
    }


def _annotation(receipt: Receipt, citation: CitedSpan, name: str) -> dict[str, Any]:
    quotation = citation.other("selector", dict) or {}
    around = {side: str(quotation.get(side) or "") for side in ("prefix", "suffix")}
    selectors = [{"type": "TextQuoteSelector", "exact": citation.quote, **around}]
    if (cfi := citation.other("cfi", str)) is not None:
        selectors.insert(0, {"type": "FragmentSelector", "conformsTo": _CFI, "value": cfi})
    lines = [receipt.answer.query]
    claim, answer = citation.other("claim", dict) or {}, receipt.answer.other("answer", str) or ""
    start, end = claim.get("start"), claim.get("end")
    if receipt.answer.status == "answered" and isinstance(start, int) and isinstance(end, int):
        lines.append(answer[start:end])
    comment = "\n".join([*(plain_line(line, _LONGEST) for line in lines), f"Shiguan receipt: {receipt.id}"])
    return {
        "id": _urn(receipt, name),
        "type": "Annotation",
        "motivation": "highlighting",
        "created": receipt.written,
        "creator": _SOFTWARE,
        "target": {"source": _href(citation), "selector": selectors},
        "body": {"type": "TextualBody", "format": "text/plain", "value": comment},
    }


def _href(citation: CitedSpan) -> str:
    """Return the file of the book that a citation points into; empty where it is not in an EPUB."""
    href = (citation.other("anchor", dict) or {}).get("href")
    return href if isinstance(href, str) else ""


def _urn(receipt: Receipt, name: str) -> str:
    return f"urn:uuid:{uuid5(NAMESPACE_URL, f'{receipt.id} {name}')}"
