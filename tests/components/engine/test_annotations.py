"""EPUB Annotations: their structure is the draft's, and their selectors lead back to the cited words."""

import json
import re

import pytest
from tests.doubles.receipts import Parents, hostile_receipt

from shiguan import __version__
from shiguan.engine.exports import export_answer
from shiguan.errors import RefusedError


@pytest.mark.parametrize("number", range(20))
def test_every_citation_is_an_annotation_and_nothing_is_lost(number):
    receipt, parents = hostile_receipt(number)
    written = json.loads(export_answer(receipt, parents, "annotations"))
    sets = written if isinstance(written, list) else [written]
    items = [item for one in sets for item in one["items"]]
    assert len({one["id"] for one in [*items, *sets]}) == len(items) + len(sets)
    assert len(sets) == len({one.source for one in receipt.answer.citations})
    found = []
    for item in items:
        *fragments, quote = item["target"]["selector"]
        found.append((item["target"]["source"], quote["exact"], [one["value"] for one in fragments]))
    cited = [one.model_dump() for one in receipt.answer.citations]
    plain = [
        (one["anchor"]["href"], one["quote"].encode("utf-8", "replace").decode(), [one["cfi"]] if "cfi" in one else [])
        for one in cited
    ]
    assert sorted(found) == sorted(plain)
    for item in items:
        assert item["body"]["value"].endswith(f"\nShiguan receipt: {receipt.id}")
        assert ("\nSentence\n" in item["body"]["value"]) == (receipt.answer.status == "answered")
    assert json.loads(export_answer(receipt, parents, "annotations")) == written


def test_a_set_has_the_structure_of_the_draft():
    receipt, _ = hostile_receipt(4)
    citation = receipt.answer.citations[0]
    citation.quote, citation.title, citation.cfi = "It rose", "Annals", "epubcfi(/6/2!/4/2:3)"
    receipt.answer.citations, receipt.answer.query, receipt.answer.status = [citation], "What rose?", "answered"
    receipt.answer.answer = "It rose. [1]"
    own = {citation.source: {"title": "Annals", "author": ["Liu Xu"], "year": 1975, "identifier": ["9780306406157"]}}
    one = json.loads(export_answer(receipt, Parents([]), "annotations", own=own))
    (item,) = one["items"]
    for identifier in (one.pop("id"), item.pop("id")):
        assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", identifier)
    assert one == {
        "@context": "https://www.w3.org/ns/epub-anno.jsonld",
        "type": "AnnotationSet",
        "generator": {"id": "urn:x-shiguan", "type": "Software", "name": f"Shiguan {__version__}"},
        "generated": "2026-01-02T03:04:05Z",
        "title": "What rose?",
        "about": {
            "dc:format": "application/epub+zip", "dc:title": "Annals", "dc:creator": ["Liu Xu"], "dc:date": "1975",
            "dc:identifier": ["urn:isbn:9780306406157"],
        },
        "items": [item],
    }  # fmt: skip
    assert item == {
        "type": "Annotation",
        "motivation": "highlighting",
        "created": "2026-01-02T03:04:05Z",
        "creator": {"id": "urn:x-shiguan", "type": "Software", "name": "Shiguan"},
        "target": {
            "source": "OEBPS/c1.xhtml",
            "selector": [
                {
                    "type": "FragmentSelector", "value": "epubcfi(/6/2!/4/2:3)",
                    "conformsTo": "http://www.idpf.org/epub/linking/cfi/epub-cfi.html",
                },
                {"type": "TextQuoteSelector", "exact": "It rose", "prefix": "before ", "suffix": " after"},
            ],
        },
        "body": {
            "type": "TextualBody", "format": "text/plain",
            "value": f"What rose?\nIt rose.\nShiguan receipt: {receipt.id}",
        },
    }  # fmt: skip


def test_an_answer_that_cites_no_epub_has_none():
    receipt, _ = hostile_receipt(1)
    for citation in receipt.answer.citations:
        citation.anchor = None
    with pytest.raises(RefusedError, match="cites no place in an EPUB"):
        export_answer(receipt, Parents([]), "annotations")
