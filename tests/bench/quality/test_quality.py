import importlib
import json
from pathlib import Path

import pytest
from bench.quality.quality import differences, several_queries, table
from bench.quality.quality_orders import reciprocal_rank, weighted_sum
from haystack import Document
from haystack.components.joiners import DocumentJoiner
from hypothesis import given
from hypothesis import strategies as st

GOLDEN = Path(__file__).parents[3] / "bench" / "quality" / "golden"


def _list(*scored: tuple[str, float]) -> list[Document]:
    return [Document(id=name, content=name, score=score) for name, score in scored]


WORDS = _list(("a", 9.0), ("b", 6.0), ("c", 3.0))
VECTORS = _list(("c", 0.9), ("d", 0.7), ("a", 0.5))


def _ids(documents):
    return [document.id for document in documents]


@pytest.mark.parametrize("script", sorted(path.stem for path in GOLDEN.parent.glob("*.py")))
def test_a_script_finds_what_it_imports(script):
    assert importlib.import_module(f"bench.quality.{script}").__doc__


def test_fusion_by_rank_adds_the_inverse_ranks():
    # k = 1: a 1/2 + 1/4 = .75, c 1/4 + 1/2 = .75, b 1/3, d 1/3; equal sums keep the order of the lists.
    assert _ids(reciprocal_rank(1)([WORDS, VECTORS])) == ["a", "c", "b", "d"]


def test_weighted_sum_compares_scores_of_one_deviation():
    # Both lists have deviations of -1.2247, 0 and 1.2247; measured from the lowest: 2.449, 1.2247, 0.
    # a .9 * 2.449, b .9 * 1.2247, c .1 * 2.449, d .1 * 1.2247
    assert _ids(weighted_sum((0.9, 0.1))([WORDS, VECTORS])) == ["a", "b", "c", "d"]


@given(st.lists(st.permutations("abcdef"), min_size=1, max_size=3))
def test_the_default_order_is_that_of_haystacks_joiner(orders):
    lists = [[Document(id=name, content=name) for name in order] for order in orders]
    joined = DocumentJoiner(join_mode="reciprocal_rank_fusion").run(documents=lists)["documents"]
    ours = reciprocal_rank()(lists)
    scores = {document.id: round(document.score, 12) for document in joined}
    # Where two documents have the same sum either may stand first.
    assert [scores[document.id] for document in ours] == sorted(scores.values(), reverse=True)


def test_rows_are_compared_with_the_first_one_question_by_question():
    values = {"first": {"set": [0.0, 1.0, 1.0, 0.0]}, "second": {"set": [1.0, 1.0, 1.0, 1.0]}}
    assert differences(values)["second"]["set"].difference == pytest.approx(0.5)
    text = table("title", values)
    assert "| first | 0.500 |" in text
    assert "| second | 1.000 (" in text


def test_every_expansion_belongs_to_a_question_and_gives_no_answer_away():
    rows = {row["id"]: row for row in map(json.loads, (GOLDEN / "sample_book.jsonl").read_text().splitlines())}
    expansions = [json.loads(line) for line in (GOLDEN / "expansions.jsonl").read_text().splitlines()]
    assert len(expansions) >= 60
    for entry in expansions:
        question = rows[entry["id"]]["question"].lower()
        answers = [answer.lower() for answer in rows[entry["id"]]["answers"] if answer.lower() not in question]
        assert entry["queries"]
        assert not [query for query in entry["queries"] for answer in answers if answer in query.lower()]


@pytest.mark.slow
def test_the_golden_set_is_asked_in_one_wording_and_in_several(tmp_path):
    values = several_queries(tmp_path)
    assert set(values["one query"]) == {f"{language} recall@{k}" for language in ("en", "zh") for k in (1, 5)}
    assert {len(numbers) for row in values.values() for numbers in row.values()} == {40, 44}
    # The book's own questions are found, or the library was not searched at all.
    assert min(sum(values["one query"][f"{language} recall@5"]) / 40 for language in ("en", "zh")) > 0.5
