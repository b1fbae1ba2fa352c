"""A harmful change is caught by the gate and a harmless one is not, whichever questions happen to be asked."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from bench.quality.comparison import GATES, compare_results
from bench.quality.gate import (
    BASELINE,
    DEPLOYMENT,
    GOLDEN,
    MODES,
    READ,
    RECORDED,
    RECORDED_GATES,
    RECORDED_MODES,
    RECORDING,
    REPLY_TOKENS,
    by_words_alone,
    other_answers,
    placed,
    recorded_plan,
    told_missing,
)
from bench.quality.gate import measured as measured_by_the_gate
from bench.quality.recording import CHANGED, OTHER_PASSAGES, RecordedModel
from bench.quality.sample_library import prepare
from bench.quality.small_model import MODEL
from haystack import Document

from shiguan.answer import citation_extractor
from shiguan.engine.loading import pipeline_path
from shiguan.errors import ModelMissingError, RefusedError
from shiguan.evaluation.json_lines import read_json_lines
from shiguan.evaluation.questions import GoldPassage, Question, QuestionSet, read_golden_set
from shiguan.evaluation.results import read_results
from shiguan.models.engine import engine
from shiguan.stores.embedded.shards import close_all_shards

SEEDS = range(20)
SHARE = 0.8
"""Of the questions, drawn anew for every seed."""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    yield prepare(tmp_path_factory.mktemp("gate"))
    close_all_shards()


@pytest.fixture(scope="module")
def measured(library, tmp_path_factory):
    """The results of the mode as it is and of its variants, each measured once through its real pipeline."""
    folder = tmp_path_factory.mktemp("variants")
    golden = read_golden_set(GOLDEN)
    # Every second question: both languages, all kinds, half the time.
    golden = replace(golden, questions=golden.questions[::2])
    simple = pipeline_path(DEPLOYMENT, "simple").read_text(encoding="utf-8")

    def variant(name: str, *changes: tuple[str, str]):
        text = simple
        for old, new in changes:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        path = folder / f"{name}.yml"
        path.write_text(text, encoding="utf-8")
        return measured_by_the_gate(golden, path, library)

    found = {
        "simple": variant("simple"),
        "fusion off": variant(
            "fusion_off",
            ("  - {sender: bm25_retriever.documents, receiver: joiner.documents}\n", ""),
        ),
        "fewer fused": variant(
            "fewer_fused",
            ("{join_mode: merge, top_k: 50}", "{join_mode: merge, top_k: 45}"),
        ),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(citation_extractor, "NOTHING_BELOW", 0.85)
        unsure = (
            "{document_store: *children}}\n# ---- end",
            "{document_store: *children, closest_below: 0.85}}\n# ---- end",
        )
        found["refusing too much"] = variant("refusing", unsure)
    return found


def _breaches(before, after, seed):
    drawn = random.Random(seed).sample(range(len(before.questions)), round(SHARE * len(before.questions)))
    before, after = (replace(run, questions=[run.questions[at] for at in drawn]) for run in (before, after))
    return compare_results(before, after, GATES).breaches


@pytest.mark.slow
@pytest.mark.parametrize("change", ["fusion off", "refusing too much"])
def test_a_harmful_change_is_caught_whichever_questions_are_asked(measured, change):
    assert [seed for seed in SEEDS if not _breaches(measured["simple"], measured[change], seed)] == []


@pytest.mark.slow
def test_a_harmless_change_is_not_caught(measured):
    assert [_breaches(measured["simple"], measured["fewer fused"], seed) for seed in SEEDS] == [[]] * len(SEEDS)


def test_the_committed_baseline_fits_the_questions_of_the_gate():
    questions = {one.id: one.text for one in read_golden_set(GOLDEN).questions}
    for mode in MODES:
        run = read_results(BASELINE / f"{mode}.json")
        assert {question.id: question.details["question"] for question in run.questions} == questions
        # Quotations claim nothing whose citations could be right or wrong.
        assert set(GATES) - {"citation_precision", "citation_recall"} <= set(run.metrics)
        assert Path(BASELINE / f"{mode}.json").stat().st_size < 200_000


def test_a_question_is_judged_by_the_stored_passages_that_hold_its_gold_ones():
    texts = {"a": "He rose in 755.", "b": "He rose in 755. He fell in 757.", "c": "He fell in 757."}
    parents = [Document(id=name, content=text) for name, text in texts.items()]
    whole = Question("q", "When?", gold=(GoldPassage("rose in 755"), GoldPassage("fell in 757")))
    questions = QuestionSet([whole, Question("none", "Why?", answerable=False)], {}, "tiny")
    both, none = placed(questions, parents).questions
    assert both.grades == {"a": 1.0}  # `b` holds both, so that any of the three stands for them
    cut = Document(id="cut", content="", meta={"parent_id": "c"})
    assert [both.document_of(one) for one in (*parents, cut)] == ["a"] * 4
    assert (none.grades, none.document_of(parents[0])) == ({}, None)
    with pytest.raises(RefusedError, match="quote of the question `q`"):
        placed(questions, parents[:1])


def test_the_recording_fits_its_questions_and_says_what_it_is():
    about, *replies = (row for _, row in read_json_lines(RECORDING))
    assert (about["questions"], about["modes"]) == (list(RECORDED), list(RECORDED_MODES))
    assert (about["asked"], about["max_tokens"], about["model"]) == (READ, REPLY_TOKENS, MODEL)
    assert {row["question"] for row in replies} <= set(RECORDED)
    for mode in RECORDED_MODES:
        run = read_results(BASELINE / f"recorded-{mode}.json")
        assert [question.id for question in run.questions] == list(RECORDED)
        assert set(RECORDED_GATES) & set(run.metrics)


def test_a_changed_prompt_stops_the_gate_and_is_named(capsys):
    assert told_missing("simple", {}, 4) == 0
    assert told_missing("simple", {"en-person-3": OTHER_PASSAGES}, 4) == 0
    assert told_missing("simple", {"en-person-3": OTHER_PASSAGES, "zh-follow-up-1": OTHER_PASSAGES}, 4) == 1
    capsys.readouterr()
    assert told_missing("simple", {"en-person-3": CHANGED}, 4) == 1
    assert "recorded-simple: unrecorded: en-person-3: the prompt changed." in capsys.readouterr().out


def test_an_answer_that_the_same_replies_made_otherwise_is_named():
    before = read_results(BASELINE / "recorded-simple.json")
    first, *rest = before.questions
    other = replace(first, details={**first.details, "answer": "Something else."})
    assert other_answers(before, before) == []
    assert other_answers(before, replace(before, questions=[other, *rest])) == [first.id]


def test_recorded_questions_are_asked_of_words_alone_and_the_others_with_vectors_again():
    for _ in range(2):
        with by_words_alone(), pytest.raises(ModelMissingError):
            engine()
        assert engine().embed(["a"], "query").shape == (1, 384)


@pytest.mark.slow
def test_the_recorded_prompts_are_those_of_today_and_another_one_is_seen(library, tmp_path):
    changed = pipeline_path(DEPLOYMENT, "simple").read_text(encoding="utf-8")
    (tmp_path / "changed.yml").write_text(changed.replace("temperature: 0.2", "temperature: 0.3"), encoding="utf-8")
    with by_words_alone(), RecordedModel(RECORDING) as model:
        model.measure(recorded_plan("simple", library))
        assert CHANGED not in model.missing.values()
        model.measure(recorded_plan(tmp_path / "changed.yml", library))
        assert set(model.missing.values()) == {CHANGED}
