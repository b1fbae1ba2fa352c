"""Every mode of the embedded deployment, whole: real stores, the real embedder, an LLM over real HTTP or none."""

import pytest
from tests.doubles.small_library import TEXTS

from shiguan.engine.runner import Runner
from shiguan.llm.prompts import not_found_sentence

MODES = ["simple", "advanced", "precise", "agent"]
# How many calls a question may take at most, and how many of them one after the other.
CALLS = {"simple": (1, 1), "advanced": (7, 6), "precise": (6, 6), "agent": (7, 7)}

TANG = {"field": "meta.source", "operator": "==", "value": "tang.txt"}


@pytest.fixture(params=MODES, scope="module")
def mode(request):
    return request.param


@pytest.fixture(scope="module")
def runner(library, mode):
    """A mode without a model; those with one are opened by their tests, on an endpoint of their own."""
    with Runner("embedded", mode, data_dir=library) as runner:
        yield runner


def test_without_an_llm_every_mode_quotes_the_sources(runner):
    answer = runner.ask("Who proposed the two-tax reform?", tenant_id="a")
    citation = answer["citations"][0]
    assert (answer["status"], answer["metadata"]["claims"]) == ("quoted", [])
    assert (citation["source"], citation["verdict"], citation["quote"]) == ("tax.txt", "quoted", TEXTS["tax.txt"])
    assert TEXTS["tax.txt"][slice(*citation["sentence"])] == "Yang Yan proposed the two-tax reform in 780."
    assert (answer["metadata"]["model"], answer["metadata"]["llm_calls"]) == ("", 0)
    assert 0.5 < answer["metadata"]["confidence"] <= 1


@pytest.mark.parametrize(
    "query",
    ["\0two-tax\0 reform\0", "史" * 2000, "安禄山" * 666],
    ids=["NULs between words", "2,000 times one character", "2,000 Han characters"],
)
def test_an_odd_question_finds_what_is_there_or_nothing(runner, query):
    answer = runner.ask(query, tenant_id="a")
    assert answer["status"] in ("quoted", "closest", "not_found")
    assert all(citation["quote"] in TEXTS[citation["source"]] for citation in answer["citations"])
    assert bool(answer["citations"]) is (answer["status"] in ("quoted", "closest"))


def test_a_quotation_is_what_stands_at_its_place_in_the_stored_passage(runner):
    answer = runner.ask("安祿山在哪裡起兵？", tenant_id="a")
    assert "范阳" in answer["answer"]
    for one in answer["citations"]:
        assert TEXTS[one["source"]][one["start"] : one["end"]] == one["quote"]
        shown = answer["answer"][one["claim"]["start"] : one["claim"]["end"]]
        assert shown.replace("**", "").removeprefix("> ") == one["quote"]


def test_what_the_sources_do_not_say_gets_the_modes_own_sentence(runner, mode):
    answer = runner.ask("Who invented the telephone in Boston?", tenant_id="a")
    assert (answer["status"], answer["citations"]) == ("not_found", [])
    assert answer["answer"] == not_found_sentence(mode, "en")


@pytest.mark.parametrize("question", [
    "Who proposed the two-tax reform?",
    "Why did the state's income change between 758 and 780, and how did the reform relate to the salt monopoly?",
    "Compare the salt monopoly with the two-tax reform.",
])  # fmt: skip
def test_a_question_costs_no_more_calls_than_the_mode_promises(llm, opened, mode, question):
    llm.time_to_first_token = 0.1
    answer = opened(mode).ask(question, tenant_id="a", history=[{"role": "user", "content": "Tell me about taxes."}])
    most, in_a_row = CALLS[mode]
    assert 1 <= llm.calls <= most
    assert llm.critical_path <= in_a_row
    assert answer["metadata"]["llm_calls"] == llm.calls


def test_no_model_is_asked_where_nothing_was_found(llm, opened, mode):
    answer = opened(mode).ask("Who invented the telephone in Boston?", tenant_id="nobody")
    assert (answer["status"], answer["answer"]) == ("not_found", not_found_sentence(mode, "en"))
    # The agent may look in other words; without a passage what it says is not shown.
    assert (llm.calls, answer["metadata"]["llm_calls"]) == ((1, 1) if mode == "agent" else (0, 0))


def test_no_model_answers_below_the_threshold_of_a_caller(llm, opened, mode):
    answer = opened(mode).ask("Who invented the telephone in Boston?", tenant_id="a", confidence_threshold=0.5)
    assert (answer["status"], answer["answer"]) == ("not_found", not_found_sentence(mode, "en"))
    # The library has a Chinese book as well, in whose language the question is worded before anything is searched.
    wordings = ["query_rewriter"] * (mode in ("advanced", "precise"))
    assert [call["stage"] for call in answer["metadata"]["calls"]] == wordings
    assert llm.calls == answer["metadata"]["llm_calls"] == len(wordings)


def test_the_explanation_tells_what_each_stage_did(runner, mode):
    question = "Why was the salt monopoly set up?"
    explained = runner.ask(question, tenant_id="a", explain=True)["metadata"]["explain"]
    if mode in ("simple", "agent"):
        steps = {"steps": []} if mode == "agent" else {}  # without a model nobody asks for tools
        assert explained == {"source": "database", "queries": question, "memory": "", **steps}
    else:
        own = {"advanced": {"method", "sub_questions", "goal"}, "precise": {"relevance", "verdicts"}}[mode]
        assert set(explained) == {"analysis", "queries", "hypothetical_passages", "source", "memory", *own}
        assert explained["queries"] == [question]
        assert explained["analysis"]["language"] == "en"


def test_precise_without_a_judge_shows_nothing_that_only_another_language_has_in_part(opened, llm):
    llm.default = "In 755 An Lushan raised an army in Fanyang. [1] Penguins breed on the southern ice. [1]"
    answer = opened("precise").ask("Where did An Lushan raise an army?", tenant_id="a", filters=TANG)
    assert answer["answer"] == "The sources do not say this."
