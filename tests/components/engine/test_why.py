"""The stage that lost a passage, for every stage."""

import pytest
from haystack import Document, GeneratedAnswer

from shiguan.engine.why import ExpectedPassage, StageTrace, attribute, loss_of

TEXT = "Nan Jiyun shot Yin Ziqi in the left eye."
GOLD = Document(id="gold", content=f"It was autumn. {TEXT}")
OTHER = Document(id="other", content="Du Fu wrote of a broken country.")
EXPECTED = ExpectedPassage(TEXT, (GOLD,))


def child(parent, score=1.0):
    return Document(id=f"{parent.id}-1", content="", meta={"parent_id": parent.id}, score=score)


def answer(text="", cited=(), status="answered", quote=""):
    citations = [{"parent_id": one.id, "quote": quote} for one in cited]
    return GeneratedAnswer(data=text, query="", documents=[], meta={"status": status, "citations": citations})


def trace(**changes):
    whole = {
        "bm25": [child(OTHER), child(GOLD)], "vectors": [child(GOLD)], "fused": [child(GOLD), child(OTHER)],
        "fetched": [OTHER, GOLD], "ranked": [GOLD, OTHER], "context": [GOLD], "answer": answer(f"{TEXT} [1]", [GOLD]),
    }  # fmt: skip
    lists = {**whole, **changes}
    said = lists.pop("answer")
    return StageTrace({name: found for name, found in lists.items() if found is not None}, said)


def test_a_passage_that_is_cited_is_not_lost_and_has_its_ranks():
    found = attribute(trace(), EXPECTED)
    assert found.stage == "nothing_lost"
    assert found.ranks == {"bm25": 2, "vectors": 1, "fused": 1, "fetched": 2, "ranked": 1, "context": 1}
    assert found.sizes == {"bm25": 2, "vectors": 1, "fused": 2, "fetched": 2, "ranked": 2, "context": 1}


@pytest.mark.parametrize(("expected", "quote", "stage"), [
    (TEXT, f"It was autumn. {TEXT}", "nothing_lost"),
    (TEXT, "Nan Jiyun shot Yin Ziqi", "nothing_lost"),
    (TEXT, "It was autumn.", "not_used"), ("", "It was autumn.", "nothing_lost"),
])  # fmt: skip
def test_a_passage_is_cited_where_its_words_are_shown(expected, quote, stage):
    said = answer("It happened in autumn. [1]", [GOLD], quote=quote)
    found = attribute(trace(answer=said), ExpectedPassage(expected, (GOLD,)))
    assert (found.stage, "cites it" in found.reason) == (stage, stage == "nothing_lost")


NOTHING = {
    "fused": [child(OTHER)], "fetched": [OTHER], "ranked": [OTHER], "context": [OTHER], "answer": answer("x [1]", [OTHER]),
}  # fmt: skip


@pytest.mark.parametrize(("stage", "changes"), [
    ("not_found_by_either", {"bm25": [child(OTHER)], "vectors": [child(OTHER)], **NOTHING}),
    ("not_found_by_bm25", {"bm25": [child(OTHER)], "vectors": None, **NOTHING}),
    ("not_found_by_vectors", {"bm25": None, "vectors": [], **NOTHING}),
    ("not_found_by_either", {"bm25": None, "vectors": None, **{key: [] for key in NOTHING.keys() - {"answer"}}}),
    ("fused_out", NOTHING),
    ("parent_not_fetched", {**NOTHING, "fused": [child(GOLD), child(OTHER)]}),
    ("ranked_out", {**NOTHING, "fused": [child(OTHER), child(GOLD)]}),
    ("ranked_out", {"ranked": [OTHER], "context": [OTHER]}),
    ("cut_by_budget", {"context": [OTHER]}),
    ("cut_by_budget", {"context": [Document(id="gold", content="It was autumn.")]}),
    ("refused", {"answer": answer("The sources do not say this.", status="not_found")}),
    ("not_used", {"answer": answer("Du Fu wrote of a broken country. [2]", [OTHER])}),
    ("not_cited", {"answer": answer(f"{TEXT} [2]", [OTHER])}),
])  # fmt: skip
def test_the_first_stage_behind_which_it_is_missing_is_named(stage, changes):
    found = attribute(trace(**changes), EXPECTED)
    assert found.stage == stage
    assert found.reason.endswith(".")


def test_what_was_never_ingested_is_said_before_all_else():
    assert attribute(trace(), ExpectedPassage(TEXT, ())).stage == "never_ingested"


def test_words_over_two_units_that_nothing_found_are_split():
    split = ExpectedPassage(TEXT, (GOLD,), split=True)
    lost = trace(bm25=[child(OTHER)], vectors=None, **NOTHING)
    assert attribute(lost, split).stage == "split_across_children"
    assert attribute(trace(), split).stage == "nothing_lost"


def test_a_search_without_an_answer_ends_with_the_passages():
    assert attribute(trace(context=None, answer=None), EXPECTED).stage == "nothing_lost"


def test_of_several_passages_the_first_loss_counts():
    second = ExpectedPassage("never", ())
    assert loss_of(trace(), [EXPECTED, second]).stage == "never_ingested"
    assert loss_of(trace(), []) is None
