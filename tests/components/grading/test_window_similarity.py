"""How near claims and windows are, with embedders whose vectors can be seen."""

from dataclasses import replace

import pytest

from shiguan.grading.window_similarity import window_similarities
from shiguan.llm.run import Run

VECTORS = {"a claim": [1.0, 0.0], "near": [3.0, 4.0], "far": [0.0, 2.0]}


class Plain:
    def run(self, documents):
        return {"documents": [replace(one, embedding=VECTORS[one.content]) for one in documents]}


class Asking:
    """Turns what is embedded as a question by a right angle."""

    def run(self, documents, kind="passage"):
        turned = {text: [-y, x] if kind == "query" else [x, y] for text, (x, y) in VECTORS.items()}
        return {"documents": [replace(one, embedding=turned[one.content]) for one in documents]}


class Counting(Plain):
    def __init__(self):
        self.asked = []

    def run(self, documents):
        self.asked += [one.content for one in documents]
        return super().run(documents)


class Without:
    def run(self, documents):
        return {"documents": documents}


PAIRS = [("a claim", ["far", "near", " "]), ("a claim", []), (" ", ["near"])]


def test_the_nearest_window_counts_and_nothing_to_compare_gives_none():
    nearest, *others = window_similarities(Plain(), PAIRS)
    assert nearest == pytest.approx(0.6)
    assert others == [None, None]


def test_a_claim_is_embedded_as_a_question_where_the_embedder_knows_the_difference():
    # (1, 0) turned is (0, 1), which is just where "far" points.
    assert window_similarities(Asking(), PAIRS)[0] == pytest.approx(1.0)


def test_without_vectors_nothing_is_said():
    assert window_similarities(Without(), PAIRS) == [None, None, None]
    assert window_similarities(Plain(), []) == []


def test_a_second_check_of_a_tenants_question_embeds_what_is_new_alone():
    embedder = Counting()
    with Run(tenant_id="t").entered():
        first = window_similarities(embedder, PAIRS)
        assert window_similarities(embedder, PAIRS) == first
        assert sorted(embedder.asked) == ["a claim", "far", "near"]
    with Run(tenant_id="another").entered():
        assert window_similarities(embedder, PAIRS) == first
    assert len(embedder.asked) == 6
