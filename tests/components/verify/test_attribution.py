"""Whether a quotation stands where a text says it does."""

import pytest

from shiguan.verify.attribution import Attribution

METAS = [
    {"source": "moby-dick.epub", "title": "Moby-Dick; or, The Whale", "author": "Herman Melville", "section": [name]}
    for name in ("Chapter 1. Loomings.", "Chapter 42. The Whiteness of The Whale.", "Epilogue")
] + [
    {"source": "jts.epub", "title": "旧唐书（选卷）", "author": "刘昫 等", "section": ["本纪", "本纪 卷二 太宗上"]},
    {"source": "jts.epub", "title": "旧唐书（选卷）", "author": "刘昫 等", "section": ["本纪", "本纪 卷二十 昭宗"]},
]
LOOMINGS = {**METAS[0], "anchor": {"page": 12}}
TAIZONG = {**METAS[3], "anchor": None}


@pytest.mark.parametrize(
    ("named", "place", "allowed"),
    [
        ("Moby Dick", LOOMINGS, True), ("Herman Melville, Moby-Dick, ch. 1", LOOMINGS, True),
        ("Melville", LOOMINGS, True), ("Moby-Dick, chapter I", LOOMINGS, True),
        ("Moby-Dick, chapter XLII", LOOMINGS, False), ("Chapter 42. The Whiteness of the Whale", LOOMINGS, False),
        ("moby-dick.epub", LOOMINGS, True), ("Moby-Dick, p. 12", LOOMINGS, True),
        ("Moby-Dick, p. 13", LOOMINGS, False), ("War and Peace", LOOMINGS, False), ("旧唐书", LOOMINGS, False),
        ("《舊唐書》卷二", TAIZONG, True), ("《舊唐書》卷二十", TAIZONG, False), ("舊唐書·太宗上", TAIZONG, True),
        ("劉昫", TAIZONG, True), ("《史記》", TAIZONG, False),
    ],
)  # fmt: skip
def test_a_source_that_is_named_is_compared_with_the_place(named, place, allowed):
    assert Attribution(METAS).allows(named, place) is allowed


@pytest.mark.parametrize(
    ("sentence", "place", "allowed"),
    [
        ("He begins with a name.", LOOMINGS, True),
        ("As Tolstoy writes in War and Peace:", LOOMINGS, True),  # what the library does not know cannot be told
        ("The second chapter, chapter 2 of Moby-Dick, begins:", LOOMINGS, False),
        ("《史記》曰：", TAIZONG, False),
        ("太宗，《舊唐書》曰：", TAIZONG, True),
        ("Unlike 旧唐书, Moby-Dick begins:", LOOMINGS, True),
    ],
)
def test_in_a_sentence_only_what_the_library_knows_is_a_place(sentence, place, allowed):
    assert Attribution(METAS).allows(sentence, place, in_context=True) is allowed


def test_the_names_of_the_library_are_looked_for_once_for_all_places_of_a_quotation(monkeypatch):
    asked, find = [], Attribution._find_meant
    monkeypatch.setattr(Attribution, "_find_meant", lambda self, *given: asked.append(given) or find(self, *given))
    names = Attribution(METAS)
    assert all(names.allows("Moby Dick", {**LOOMINGS, "anchor": {"page": page}}) for page in range(1_000))
    assert [field for field, *_ in asked] == ["source", "author", "section"]
