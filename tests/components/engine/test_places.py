"""Places that are looked for in a source that has changed."""

import re

import pytest
from haystack import Document

from shiguan.claims.citations import cited_place
from shiguan.engine.places import PlaceFinder

PARAGRAPHS = [
    "An Lushan rose at Fanyang in the eleventh month of 755, with more than a hundred thousand men.",
    "The court heard of it a week later. Nobody believed the messengers at first.",
    "Geshu Han held the pass until the following summer. Nobody believed the messengers who came from him.",
    "The emperor fled to Shu, and Yang Guifei died on the way, at Mawei.",
]


def passages(paragraphs, href="ch1.xhtml"):
    found = []
    for number, text in enumerate(paragraphs, 1):
        anchor = {"href": href, "spine": 0, "path": f"/html/body/p[{number}]", "offset": 0}
        blocks = [{"start": 0, "end": len(text), "kind": "text", "anchor": anchor}]
        meta = {"source": "tang.epub", "title": "Tang", "section": ["One"], "anchor": anchor, "blocks": blocks}
        found.append(Document(id=f"{href}-{number}-{text[:9]}", content=text, meta=meta))
    return found


def cited(words, paragraphs=PARAGRAPHS):
    text = next(one for one in paragraphs if words in one)
    document = passages(paragraphs)[paragraphs.index(text)]
    start = text.index(words)
    return cited_place(document, (start, start + len(words)))


def found(words, edited):
    result = PlaceFinder(passages(edited)).find(cited(words))
    now = result["now"]
    return result["state"], now and int(re.search(r"\d+", now["anchor"]["path"])[0]), now and now["quote"]


GONE = ("gone", None, None)
FLED = "The emperor fled to Shu"


HELD = "Geshu Han held the pass until the following summer."
HELD_NOW = HELD.replace("until the following summer", "to the last day of that summer")
NOBODY = "Nobody believed the messengers"
WIDE = " \n  "
CASES = {
    "unchanged": (FLED, PARAGRAPHS, ("stands", 4, FLED)),
    "behind a new paragraph": (FLED, ["A new first paragraph.", *PARAGRAPHS], ("moved", 5, FLED)),
    "in another order": (FLED, PARAGRAPHS[::-1], ("moved", 1, FLED)),
    "other line breaks and spaces": (
        FLED, [text.replace(" ", WIDE) for text in PARAGRAPHS], ("stands", 4, FLED.replace(" ", WIDE)),
    ),
    "words that were edited": (HELD, [text.replace(HELD, HELD_NOW) for text in PARAGRAPHS], ("changed", 3, HELD_NOW)),
    "twice, told apart by what stands around": (
        NOBODY, [PARAGRAPHS[0], PARAGRAPHS[2], PARAGRAPHS[1], PARAGRAPHS[3]], ("moved", 3, NOBODY),
    ),
    "removed, and not another with some of its words": (f"{NOBODY} at first.", [PARAGRAPHS[0], *PARAGRAPHS[2:]], GONE),
    "removed wherever it stood": (NOBODY, [PARAGRAPHS[0], PARAGRAPHS[3]], GONE),
    "another text": (FLED, ["Something else altogether."], GONE),
    "no text": (FLED, [], GONE),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_place_is_found_with_what_became_of_it(case):
    words, edited, expected = CASES[case]
    assert found(words, edited) == expected


def test_what_stands_twice_with_the_same_surroundings_is_doubtful_unless_one_is_at_its_path():
    text = "He said so. He said so. He said so. He said so. He said so. He said so. He said so. He said so."
    citation = cited_place(passages([text])[0], (36, 47))
    twice = PlaceFinder(passages(["New.", text, text])).find(citation)
    assert twice == {"state": "doubtful", "now": None}
    assert PlaceFinder(passages([text, text])).find(citation)["state"] == "stands"


def test_a_receipt_of_before_has_words_alone():
    old = {name: value for name, value in cited(FLED).items() if name not in ("selector", "anchor", "cfi")}
    assert PlaceFinder(passages(PARAGRAPHS)).find(old)["now"]["anchor"]["path"] == "/html/body/p[4]"
    assert PlaceFinder(passages([*PARAGRAPHS, FLED])).find(old) == {"state": "doubtful", "now": None}


def test_a_citation_without_words_is_nowhere():
    for bad in ({}, {"selector": None}, {"quote": " \n"}, {"selector": {"exact": ""}}):
        assert PlaceFinder(passages(PARAGRAPHS)).find(bad) == {"state": "gone", "now": None}
