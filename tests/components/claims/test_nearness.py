"""Claims in another language than their passages: what is searched for them, and what the check makes of it."""

import copy
from dataclasses import replace

import pytest
from haystack import Document, component

from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.claims.checker import checker_of
from shiguan.claims.claims import split_claims
from shiguan.claims.nearness import ClaimMatcher, Nearest
from shiguan.errors import ShiguanError

TENANT = {"field": "meta.tenant_id", "operator": "==", "value": "a"}
ZH = "在天宝十四载的十一月，安禄山在范阳起兵反叛了朝廷。第二年，将军郭子仪已经把长安收复了。"
RISE, TAKE = slice(0, 25), slice(25, 43)
CLASSICAL = "天寶十四載十一月，安祿山反於范陽。明年，郭子儀收長安。"


@component
class Embedder:
    def __init__(self, embedding=(1.0,)):
        self.embedding = list(embedding)

    @component.output_types(embedding=list[float])
    def run(self, text: str):
        return {"embedding": self.embedding}


@component
class Retriever:
    def __init__(self, hits: list | None = None):
        self.hits = list(hits or [])
        self.asked = []

    @component.output_types(documents=list[Document])
    def run(self, query_embedding: list[float], filters: dict | None = None, top_k: int | None = None):
        self.asked.append(filters)
        return {"documents": list(self.hits)}


def hit(parent, place, score):
    meta = {"parent_id": parent, "start": place.start, "end": place.stop}
    return Document(id=f"{parent}{place}", score=score, meta=meta)


def compared(*hits, passages=(ZH,), embedding=(1.0,), near=0.78):
    retriever = Retriever(hits)
    documents = [Document(id=f"p{at}", content=text, score=1.0) for at, text in enumerate(passages, start=1)]
    matcher = ClaimMatcher(retriever, text_embedder=Embedder(embedding), near=near)
    # As a pipeline hands it on: copied, and with the store and the model not copied.
    return copy.deepcopy(matcher.compared(documents, TENANT)), retriever


def support(claim, *hits, **more):
    documents, _ = compared(*hits, **more)
    return checker_of({1: documents[0]}).relation(claim, 1)


def test_nothing_is_searched_for_a_claim_in_the_language_of_its_passage():
    documents, retriever = compared(hit("p1", RISE, 0.9))
    assert checker_of({1: documents[0]}).relation("安禄山在范阳起兵反叛了朝廷。", 1).verdict == "supported"
    assert retriever.asked == []


def test_the_children_of_the_passages_are_searched_once_for_each_claim_and_under_the_callers_filters():
    documents, retriever = compared(hit("p1", TAKE, 0.9), hit("p1", RISE, 0.85))
    for _ in range(2):
        assert documents[0].nearest("He took it.") == Nearest(TAKE.start, TAKE.stop, 0.9, 0.78)
    by_parent = {"field": "meta.parent_id", "operator": "in", "value": ["p1"]}
    assert retriever.asked == [{"operator": "AND", "conditions": [by_parent, TENANT]}]


@pytest.mark.parametrize(
    ("claim", "searches"),
    [
        ("An Lushan raised an army in 903.", 0),
        ("Casanova and Bonaparte raised an army.", 0),
        ("An Lushan raised an army in 755.", 1),
    ],
)
def test_nothing_is_searched_for_a_claim_whose_numbers_or_names_no_passage_has(claim, searches):
    documents, retriever = compared(hit("p1", RISE, 0.9))
    found = checker_of({1: documents[0]}).relation(claim, 1)
    assert (found.verdict, len(retriever.asked)) == ("partial" if searches else "unsupported", searches)


@pytest.mark.parametrize(
    ("claim", "passage", "cosine", "verdict", "searches"),
    [
        ("The village was moved up the hill.", ZH, 0.97, "partial", 1),  # its words are not there, its meaning is
        ("The village was moved up the hill.", ZH, 0.9, "unsupported", 1),
        ("The army rose in revolt against the court.", ZH, 0.7, "partial", 1),
        ("The village was moved up the hill.", CLASSICAL, 0.99, "unsupported", 0),
        ("It was Casanova and Bonaparte who moved up the hill.", ZH, 0.99, "unsupported", 0),
    ],
)
def test_a_claim_without_a_mark_is_compared_with_passages_in_another_language(
    claim, passage, cosine, verdict, searches
):
    own = "The Salt Commission sold salt to licensed merchants."
    documents, retriever = compared(hit("p2", RISE, cosine), passages=(own, passage))
    checker = checker_of(dict(enumerate(documents, start=1)))
    (found,) = checker.check(split_claims(claim))
    assert (found.support.verdict, len(retriever.asked)) == (verdict, searches)


def test_the_children_of_another_passage_are_no_places_in_this_one():
    documents, _ = compared(hit("p2", RISE, 0.9), passages=(ZH, ZH))
    assert [document.nearest("He rose.") for document in documents] == [None, Nearest(0, 25, 0.9, 0.78)]


def test_a_cut_passage_has_the_children_that_were_read_of_it():
    retriever = Retriever([hit("p1", RISE, 0.9), hit("p1", TAKE, 0.8)])
    matcher = ClaimMatcher(retriever, text_embedder=Embedder(), near=0.78)
    cut = Document(id="p1", content=ZH[TAKE], meta={"cut": [TAKE.start, TAKE.stop]})
    (document,) = matcher.compared([cut], TENANT)
    assert document.nearest("He took it.") == Nearest(0, 18, 0.8, 0.78)


def test_a_copy_that_lost_the_search_and_a_claim_without_a_vector_have_no_nearest_place():
    (document,), _ = compared(hit("p1", RISE, 0.9))
    assert replace(document, score=0.1).nearest("He took it.") is None
    (document,), retriever = compared(hit("p1", RISE, 0.9), embedding=())
    assert (document.nearest("He took it."), retriever.asked) == (None, [])


def test_a_near_claim_is_supported_in_part_and_its_place_is_the_nearest_child():
    found = support("The general rebelled against the court.", hit("p1", RISE, 0.83), hit("p1", TAKE, 0.8))
    assert (found.verdict, found.start, found.end) == ("partial", 0, 25)
    assert found.score == pytest.approx(0.55 + 0.12 * 0.5)


@pytest.mark.parametrize(("cosine", "verdict"), [(0.83, "partial"), (0.78, "unsupported")])
def test_the_cosine_that_counts_as_near_decides(cosine, verdict):
    claim = "The soldier rose against the throne in the winter."  # few of its words have a translation there
    assert support(claim, hit("p1", RISE, cosine)).verdict == verdict


@pytest.mark.parametrize(
    "claim", ["The army rose in 755.", "An Lushan raised an army.", "Guo Ziyi recovered the capital."]
)
def test_a_number_or_name_that_is_there_outweighs_a_vector_that_is_far(claim):
    assert support(claim, hit("p1", RISE, 0.75)).verdict == "partial"


def test_vectors_do_not_decide_about_classical_passages_but_names_do():
    far = hit("p1", slice(0, 17), 0.7)
    assert support("Guo Ziyi took Chang'an the next year.", far, passages=(CLASSICAL,)).verdict == "partial"
    assert support("Shi Siming took Chang'an the next year.", far, passages=(CLASSICAL,)).verdict == "unsupported"


def test_where_no_cosine_is_known_to_be_near_numbers_and_names_decide():
    assert support("The general rebelled.", hit("p1", RISE, 0.1), near=None).verdict == "partial"
    assert support("The general rebelled in 756.", hit("p1", RISE, 0.99), near=None).verdict == "unsupported"


@pytest.mark.parametrize(
    ("claim", "verdict", "reason"),
    [
        ("An Lushan rebelled in the eleventh month of 755.", "partial", "something like it is there"),
        ("An Lushan rebelled in the twelfth month of 755.", "unsupported", "twelfth"),
        ("Guo Ziyi took the city in 763.", "unsupported", "763"),
        ("Tian Chengsi rebelled in 755.", "unsupported", "no passage has Tian Chengsi"),
    ],
)
def test_numbers_dates_and_full_names_are_compared_across_languages(claim, verdict, reason):
    found = support(claim, hit("p1", RISE, 0.83))
    assert found.verdict == verdict
    assert reason in found.reason


def test_a_numeral_inside_a_chinese_word_counts_as_said():
    passage = "他写了四音符的主题曲。"
    assert support("He wrote a four-note tune.", hit("p1", slice(0, 11), 0.8), passages=(passage,)).verdict == "partial"
    assert (
        support("He wrote a five-note tune.", hit("p1", slice(0, 11), 0.8), passages=(passage,)).verdict
        == "unsupported"
    )


def test_the_nearest_of_several_passages_is_the_one_that_counts():
    passages = (ZH, "唐代的盐由国家专卖，商人须有许可。")
    documents, _ = compared(hit("p2", slice(0, 17), 0.86), hit("p1", RISE, 0.79), passages=passages)
    checker = checker_of(dict(enumerate(documents, start=1)))
    (claim,) = checker.check(split_claims("Salt was sold by licence [1][2]."))
    assert (claim.support.verdict, claim.support.passage, claim.quote) == ("partial", 1, passages[1])
    (wrong,) = checker.check(split_claims("Salt was sold by licence in 758 [1][2]."))
    assert wrong.support.verdict == "unsupported"


@pytest.mark.parametrize("near", [1.5, -2])
def test_near_is_a_cosine(near):
    with pytest.raises(ValueError, match="`near` must be a cosine"):
        ClaimMatcher(Retriever(), text_embedder=Embedder(), near=near)


def test_without_a_tenants_filters_nothing_runs():
    with pytest.raises(ShiguanError):
        ClaimMatcher(Retriever(), text_embedder=Embedder()).compared([], None)


def test_a_cosine_that_was_scaled_counts_as_it_was():
    scaled = hit("p1", RISE, 1.0)
    (document,), _ = compared(replace(scaled, meta={**scaled.meta, "raw_score": 0.77}))
    assert document.nearest("He rose.") == Nearest(RISE.start, RISE.stop, 0.77, 0.78)


def test_the_citations_of_an_answer_in_another_language_are_checked_by_it():
    retriever = Retriever([hit("p1", RISE, 0.83)])
    extractor = CitationExtractor(claim_matcher=ClaimMatcher(retriever, text_embedder=Embedder(), near=0.78))
    passage = Document(id="p1", content=ZH, score=1.0, meta={"number": 1})
    (answer,) = extractor.run(["The general rebelled against the court [1]."], [passage], filters=TENANT)["answers"]
    assert answer.meta["claims"][0]["verdict"] == "partial"
    assert [citation["quote"] for citation in answer.meta["citations"]] == [ZH[RISE]]
    assert len(retriever.asked) == 1
