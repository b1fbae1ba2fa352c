"""Receipts without a question having been asked."""

import random

from haystack import Document

from shiguan.engine.receipts import Receipt, ShownAnswer
from shiguan.text.works import work_of


def receipt(tenant_id="a", question="Who?", *, answer="", quotes=()):
    """Give a receipt as a server keeps it, with its own id."""
    place = {"number": 1, "parent_id": "p", "source": "tang.epub", "section": [], "start": 0, "end": 1}
    found = Receipt.model_validate(
        {
            "version": 1, "written": "2026-01-01T00:00:00+00:00", "shiguan": "0.1.0", "tenant_id": tenant_id,
            "deployment": "embedded", "mode_sha256": "", "parameters": {}, "prompt": {}, "passages": [], "calls": [],
            "grading": {},
            "answer": {
                "query": question, "mode": "simple", "status": "answered" if quotes else "not_found", "answer": answer,
                "citations": [{**place, "quote": quote} for quote in quotes],
            },
        }
    )  # fmt: skip
    return found.model_copy(update={"id": found.own_id()})


HOSTILE = [
    "\\input{/etc/passwd}", "50% & more_#1 $x$ ~ ^ {a}", "=HYPERLINK(\"http://x\")", "<script>alert(1)</script>", "A\r\nER  - \r\nTY  - JOUR",
    "x}\n}\n@book{forged,", "[^1]: forged", "![i](http://x/y.png)", "\u202eevil\u202c", "\x1b]8;;http://x\x07b", "a\x00b\x0bc", "# Heading",
    "`code` *bold* _under_", "𠀀 舊唐書・卷九", "علم", "O'Brien \"quoted\" “curly”", "&lt;b&gt; &amp; &#91;1&#93;", "[1] [99]", "]]>", "--- 1. x | y", "\ud800half",
    "Smith and Sons", "Curry, Charles M.", "van Beethoven, Ludwig, Jr.", "Ouyang Xiu", "歐陽修", "p. 63: “x” Shiguan receipt: y",
]  # fmt: skip
IDENTIFIERS = [
    "9780306406157", "urn:uuid:12-3", "https://example.org/a_b?c=1&d=~2", "doi:10.1000/xyz_(1)", "javascript:alert(1)",
    "=1+1",
]  # fmt: skip


class Parents:
    def __init__(self, documents):
        self.documents = documents

    def filter_documents(self, filters):
        return self.documents


def hostile_receipt(number):
    """Give the receipt of a seeded answer to books that say everything against it, and the passages that it cites."""
    draw = random.Random(number)
    some = lambda most: [draw.choice(HOSTILE) for _ in range(draw.randint(0, most))]  # noqa: E731
    documents, citations = [], []
    for at in range(1, draw.randint(2, 5)):
        source = f"book {draw.randint(1, 3)}.epub"
        work = work_of(
            {
                "title": draw.choice(HOSTILE) + f" {at}", "author": some(3), "editor": some(2), "translator": some(1),
                "edition": draw.choice(["", *HOSTILE]), "year": draw.choice(["", "1975", "0945-01-01"]),
                "publisher": draw.choice(["", *HOSTILE]), "identifier": draw.sample(IDENTIFIERS, draw.randint(0, 4)),
            }
        )  # fmt: skip
        documents.append(
            Document(id=f"p{at}", content="x", meta={"source_id": f"s{at}", "source": source, "work": work})
        )
        for _ in range(draw.randint(1, 2)):
            place = draw.choice([{"page": "63"}, {"page": "63–65"}, {"paragraph": 4}, {}])
            quote = {"quote": draw.choice(HOSTILE) + " " + "word " * draw.randint(1, 80), "section": some(2), **place}
            span = {"start": draw.randint(0, 9), "end": 10, "claim": {"start": 0, "end": 8}}
            found = {
                "anchor": {"href": f"OEBPS/c{at}.xhtml"},
                "selector": {"exact": quote["quote"], "prefix": "before ", "suffix": " after"},
                **({"cfi": f"epubcfi(/6/{at}!/4/2:3)"} if draw.random() < 0.7 else {}),
            }
            about = {"number": at, "parent_id": f"p{at}", "source": source, "title": "T"}
            citations.append({**about, **span, **quote, **found})
    numbers = sorted({one["number"] for one in citations})
    text = "\n\n".join(f"Sentence {draw.choice(HOSTILE)}. [{n}] And so on [{n}]." for n in numbers)
    receipt = Receipt.model_construct(
        id=f"{number:064x}", tenant_id="t", written="2026-01-02T03:04:05Z",
        answer=ShownAnswer.model_validate({
            "query": draw.choice(HOSTILE), "mode": "simple", "answer": text, "citations": citations,
            "status": draw.choice(["answered", "quoted"]),
        }),
    )  # fmt: skip
    return receipt, Parents(documents)
