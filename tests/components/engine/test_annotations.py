"""EPUB Annotations: their structure is the draft's, and their selectors lead back to the cited words."""

import json
import random
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from shiguan.engine.exports import export_answer
from shiguan.engine.receipts import Receipt
from shiguan.errors import RefusedError

HOSTILE = ["<script>alert(1)</script>", "\u202eevil\x00", '"}],"items":[', "舊唐書・卷九", "a\r\nb", "\ud800half"]
URN = Annotated[str, Field(pattern=r"^urn:uuid:[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$")]
TIME = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")]


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Software(Closed):
    id: str
    type: Literal["Software"]
    name: str


class Quote(Closed):
    type: Literal["TextQuoteSelector"]
    exact: Annotated[str, Field(min_length=1)]
    prefix: str
    suffix: str


class Fragment(Closed):
    type: Literal["FragmentSelector"]
    conformsTo: Literal["http://www.idpf.org/epub/linking/cfi/epub-cfi.html"]
    value: Annotated[str, Field(pattern=r"^epubcfi\(.+\)$")]


class Target(Closed):
    source: Annotated[str, Field(pattern=r"^[^/:]+(/[^/]+)*$")]
    selector: Annotated[list[Quote | Fragment], Field(min_length=1)]


class Body(Closed):
    type: Literal["TextualBody"]
    format: Literal["text/plain"]
    value: str


class Annotation(Closed):
    id: URN
    type: Literal["Annotation"]
    motivation: Literal["bookmarking", "highlighting"]
    created: TIME
    creator: Software
    target: Target
    body: Body


class About(Closed):
    format: Literal["application/epub+zip"] = Field(alias="dc:format")
    title: Annotated[str, Field(min_length=1)] = Field(alias="dc:title")
    identifier: list[str] = Field([], alias="dc:identifier")
    creator: list[str] = Field([], alias="dc:creator")
    publisher: str = Field("", alias="dc:publisher")
    date: Annotated[str, Field(pattern=r"^-?\d{3,4}$")] = Field("1900", alias="dc:date")


class AnnotationSet(Closed):
    context: Literal["https://www.w3.org/ns/epub-anno.jsonld"] = Field(alias="@context")
    id: URN
    type: Literal["AnnotationSet"]
    generator: Software
    generated: TIME
    title: str
    about: About
    items: Annotated[list[Annotation], Field(min_length=1)]


class Parents:
    def filter_documents(self, filters):
        return []


def receipt_of(number):
    """A seeded answer that cites one to three books, in places with and without a CFI."""
    draw = random.Random(number)
    citations = []
    for at in range(1, draw.randint(2, 6)):
        quote = f"{draw.choice(HOSTILE)} word {at}"
        place = {"cfi": f"epubcfi(/6/{at}!/4/2:3)"} if draw.random() < 0.7 else {}
        citations.append(
            {
                "number": at, "parent_id": f"p{at}", "source": f"book {draw.randint(1, 3)}.epub", "title": draw.choice(HOSTILE),
                "section": [], "start": 0, "end": 9, "quote": quote, "claim": {"start": 0, "end": 8},
                "anchor": {"href": f"OEBPS/c{at}.xhtml"}, **place,
                "selector": {"type": "TextQuoteSelector", "exact": quote, "prefix": "before ", "suffix": " after"},
            }
        )  # fmt: skip
    shown = {
        "query": draw.choice(HOSTILE),
        "mode": "simple",
        "status": draw.choice(["answered", "quoted"]),
        "answer": "It rose. [1]",
        "citations": citations,
    }
    return Receipt.model_construct(
        id=f"{number:064x}",
        tenant_id="t",
        written="2026-01-02T03:04:05Z",
        answer=Receipt.model_fields["answer"].annotation.model_validate(shown),
    )


@pytest.mark.parametrize("number", range(50))
def test_annotations_have_the_structure_of_the_draft_and_lose_nothing(number):
    receipt = receipt_of(number)
    written = json.loads(export_answer(receipt, Parents(), "annotations"))
    sets = TypeAdapter(list[AnnotationSet]).validate_python(written if isinstance(written, list) else [written])
    items = [item for one in sets for item in one.items]
    assert len({item.id for item in items} | {one.id for one in sets}) == len(items) + len(sets)
    assert len(sets) == len({one.source for one in receipt.answer.citations})
    found = sorted(
        (item.target.source, item.target.selector[-1].exact, [one.value for one in item.target.selector[:-1]])
        for item in items
    )
    cited = [one.model_dump() for one in receipt.answer.citations]
    plain = [
        (one["anchor"]["href"], one["quote"].encode("utf-8", "replace").decode(), [one["cfi"]] if "cfi" in one else [])
        for one in cited
    ]
    assert found == sorted(plain)
    for item in items:
        assert item.body.value.endswith(f"\nShiguan receipt: {receipt.id}")
        assert ("It rose." in item.body.value) == (receipt.answer.status == "answered")
    assert json.loads(export_answer(receipt, Parents(), "annotations")) == written


def test_an_answer_that_cites_no_epub_has_none():
    receipt = receipt_of(1)
    for citation in receipt.answer.citations:
        citation.anchor = None
    with pytest.raises(RefusedError, match="cites no place in an EPUB"):
        export_answer(receipt, Parents(), "annotations")
