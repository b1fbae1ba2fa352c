"""Places that are looked for in a source that has changed."""

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
    return result["state"], now and (now["anchor"]["path"], now["quote"])


FLED = "The emperor fled to Shu"


def test_a_place_stands_where_its_path_and_its_words_are_as_they_were():
    assert found(FLED, PARAGRAPHS) == ("stands", ("/html/body/p[4]", FLED))


def test_a_place_is_found_behind_a_new_paragraph_and_in_another_order():
    assert found(FLED, ["A new first paragraph.", *PARAGRAPHS]) == ("moved", ("/html/body/p[5]", FLED))
    assert found(FLED, PARAGRAPHS[::-1]) == ("moved", ("/html/body/p[1]", FLED))


def test_line_breaks_and_spaces_change_nothing():
    wide = [text.replace(" ", " \n  ") for text in PARAGRAPHS]
    assert found(FLED, wide) == ("stands", ("/html/body/p[4]", FLED.replace(" ", " \n  ")))


def test_words_that_were_edited_are_found_with_what_they_are_now():
    edited = [*PARAGRAPHS[:2], PARAGRAPHS[2].replace("until the following summer", "to the last day of that summer")]
    words = "Geshu Han held the pass until the following summer."
    state, (path, now) = found(words, [*edited, PARAGRAPHS[3]])
    assert (state, path) == ("changed", "/html/body/p[3]")
    assert now == "Geshu Han held the pass to the last day of that summer."


def test_a_paragraph_that_was_removed_is_gone_and_not_another_with_some_of_its_words():
    assert found("Nobody believed the messengers at first.", [*PARAGRAPHS[:1], *PARAGRAPHS[2:]]) == ("gone", None)
    assert found("Nobody believed the messengers", [PARAGRAPHS[0], PARAGRAPHS[3]]) == ("gone", None)
    assert found(FLED, ["Something else altogether."]) == ("gone", None)
    assert found(FLED, []) == ("gone", None)


def test_words_that_stand_twice_are_told_apart_by_what_stands_around_them():
    swapped = [PARAGRAPHS[0], PARAGRAPHS[2], PARAGRAPHS[1], PARAGRAPHS[3]]
    assert found("Nobody believed the messengers", swapped) == (
        "moved",
        ("/html/body/p[3]", "Nobody believed the messengers"),
    )


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


@pytest.mark.parametrize("bad", [{}, {"selector": None}, {"quote": " \n"}, {"selector": {"exact": ""}}])
def test_a_citation_without_words_is_nowhere(bad):
    assert PlaceFinder(passages(PARAGRAPHS)).find(bad) == {"state": "gone", "now": None}
