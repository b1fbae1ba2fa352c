import pytest
from haystack import Document, Pipeline, component

from shiguan.errors import StoreFormatError
from shiguan.retrieval.fallback_ranker import FallbackRanker
from shiguan.support.ranking import as_found, ranking_of, stamped

PASSAGES = [Document(id=name, content=name, score=1 - place / 10) for place, name in enumerate("abc")]


@component
class Backwards:
    """Turns the order around, or says why not."""

    def __init__(self, skipped: str = "", error: str = "") -> None:
        self.skipped = skipped
        self.error = error
        self.warm = 0
        self.asked = []

    def warm_up(self) -> None:
        self.warm += 1

    @component.output_types(documents=list[Document], ranking=list[dict], skipped=str, warnings=list[str])
    def run(self, query: str, documents: list[Document], top_k: int | None = None) -> dict:
        self.asked.append((query, top_k))
        if self.error:
            raise {"format": StoreFormatError, "other": RuntimeError}[self.error]("the tensor is bent")
        if self.skipped:
            return as_found(documents, top_k, self.skipped)
        ranked = [stamped(document, document.score, "backwards") for document in documents[::-1][:top_k]]
        return {"documents": ranked, "ranking": ranking_of(documents, ranked), "skipped": "", "warnings": []}


@component
class Filtered(Backwards):
    """Reads a store, and so wants the filters."""

    @component.output_types(documents=list[Document], ranking=list[dict], skipped=str, warnings=list[str])
    def run(self, query: str, documents: list[Document], filters: dict | None = None, top_k: int | None = None) -> dict:
        self.asked.append((query, filters))
        return as_found(documents, top_k)


def names(result):
    return "".join(document.id for document in result["documents"])


def test_the_first_that_can_rank_does_and_the_next_is_not_asked():
    second = Backwards()
    result = FallbackRanker([Backwards(), second]).run("salt", PASSAGES)
    assert names(result) == "cba"
    assert second.asked == []


def test_the_next_ranks_without_a_warning_where_the_first_cannot():
    result = FallbackRanker([Backwards("its files are not on this machine"), Backwards()]).run("salt", PASSAGES)
    assert names(result) == "cba"
    assert result["warnings"] == []
    assert result["skipped"] == ""
    assert [entry["ranked_by"] for entry in result["ranking"]] == ["backwards"] * 3


def test_where_none_can_rank_one_warning_gives_all_reasons():
    result = FallbackRanker([Backwards("no files"), Backwards("no vectors"), Backwards("no files")]).run("s", PASSAGES)
    assert [(d.id, d.score) for d in result["documents"]] == [("a", 1.0), ("b", 0.9), ("c", 0.8)]
    assert result["warnings"] == ["Passages stand in the order of the fusion: no files; no vectors."]
    assert result["skipped"] == "no files; no vectors"
    assert [entry["ranked_by"] for entry in result["ranking"]] == ["fusion"] * 3


def test_a_ranker_that_breaks_down_costs_a_warning_and_not_the_answer():
    result = FallbackRanker([Backwards(error="other"), Backwards()]).run("salt", PASSAGES)
    assert names(result) == "cba"
    assert result["warnings"] == ["Backwards failed (RuntimeError); the passages were ranked by another ranker."]
    alone = FallbackRanker([Backwards(error="other")]).run("salt", PASSAGES)
    assert names(alone) == "abc"
    assert alone["warnings"] == ["Passages stand in the order of the fusion: Backwards failed (RuntimeError)."]


def test_what_a_person_must_mend_is_not_passed_over():
    with pytest.raises(StoreFormatError, match="bent"):
        FallbackRanker([Backwards(error="format"), Backwards()]).run("salt", PASSAGES)


@pytest.mark.parametrize(("top_k", "expected"), [(None, "cb"), (1, "c"), (0, ""), (9, "cba")])
def test_top_k_of_the_call_overrides_that_of_the_pipeline(top_k, expected):
    ranker = FallbackRanker([Backwards("cannot"), Backwards()], top_k=2)
    assert names(ranker.run("salt", PASSAGES, top_k=top_k)) == expected


def test_no_passages_are_no_case_for_a_ranker():
    ranker = Backwards()
    result = FallbackRanker([ranker]).run("salt", [])
    assert result == {"documents": [], "ranking": [], "skipped": "", "warnings": []}
    assert ranker.asked == []


def test_filters_go_to_the_rankers_that_take_them():
    plain, filtered = Backwards("cannot"), Filtered()
    FallbackRanker([plain, filtered]).run("salt", PASSAGES, filters={"field": "meta.tenant_id"})
    assert filtered.asked == [("salt", {"field": "meta.tenant_id"})]
    assert plain.asked == [("salt", 5)]


def test_all_rankers_are_warmed_up():
    rankers = [Backwards(), Backwards()]
    FallbackRanker(rankers).warm_up()
    assert [ranker.warm for ranker in rankers] == [1, 1]


def test_inputs_are_not_changed():
    FallbackRanker([Backwards("cannot")]).run("salt", PASSAGES)
    assert all("ranked_by" not in passage.meta for passage in PASSAGES)


def test_it_round_trips_through_yaml():
    pipeline = Pipeline()
    pipeline.add_component("ranker", FallbackRanker([Backwards("one"), Backwards("two")], top_k=3))
    loaded = Pipeline.loads(pipeline.dumps()).get_component("ranker")
    assert [ranker.skipped for ranker in loaded.rankers] == ["one", "two"]
    assert loaded.top_k == 3


@pytest.mark.parametrize("parameters", [{"rankers": []}, {"rankers": [Backwards()], "top_k": 0}])
def test_parameters_out_of_range_are_refused(parameters):
    with pytest.raises(ValueError, match=f"`{list(parameters)[-1]}`"):
        FallbackRanker(**parameters)
