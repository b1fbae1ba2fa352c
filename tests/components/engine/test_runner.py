import asyncio
import re
import threading

import pytest
from tests.doubles.small_library import TENANT, small_library

from shiguan.engine import runner as runner_module
from shiguan.engine.mode_pipeline import checked_question
from shiguan.engine.runner import Runner
from shiguan.errors import AnswerError, ConfigurationError, RefusedError

PIPELINE = """\
# tiny: for tests.
components:
  tenant_filter: {type: shiguan.retrieval.tenant_filter.TenantFilter}
  query_rewriter:
    type: shiguan.query.query_rewriter.QueryRewriter
    init_parameters: {method: none}
  router:
    type: haystack.components.routers.conditional_router.ConditionalRouter
    init_parameters:
      routes:
        - {condition: "{{ 'Who' in query }}", output: "{{ query }}", output_name: text, output_type: str}
        - {condition: "{{ 'Who' not in query }}", output: "{{ query }}", output_name: other, output_type: str}
  prompt_builder:
    type: haystack.components.builders.chat_prompt_builder.ChatPromptBuilder
    init_parameters:
      template: "{% message role='user' %}He, says {{ filters.conditions[0].value }}.{% endmessage %}"
      required_variables: "*"
  answers:
    type: haystack.components.builders.answer_builder.AnswerBuilder
connections:
  - {sender: tenant_filter.filters, receiver: prompt_builder.filters}
  - {sender: prompt_builder.prompt, receiver: answers.replies}
  - {sender: tenant_filter.filters, receiver: query_rewriter.filters}
  - {sender: query_rewriter.query, receiver: router.query}
  - {sender: router.text, receiver: answers.query}
inputs:
  query: [query_rewriter.query]
  history: [query_rewriter.history]
  tenant_id: [tenant_filter.tenant_id]
  filters: [tenant_filter.filters]
outputs:
  answers: answers.answers
  documents: answers.answers
  method: query_rewriter.method
"""


@pytest.fixture
def runner(write_mode):
    write_mode(PIPELINE)
    with Runner("here", "tiny") as runner:
        yield runner


def test_flat_arguments_reach_the_components_that_listen(runner):
    answer = runner.ask(" Who? ", tenant_id="library")
    assert (answer["query"], answer["answer"], answer["mode"]) == ("Who?", "He, says library.", "tiny")
    assert set(answer) == {
        "answer", "query", "rewritten_query", "mode", "status", "citations", "formatted_citations", "sources", "documents",
        "retrieved_count", "generation_time", "metadata",
    }  # fmt: skip
    assert {"router", "tenant_filter", "prompt_builder", "answers", "total"} <= set(answer["metadata"]["timings_ms"])


def test_warnings_of_all_stages_come_together_and_what_these_did_is_told_on_request(runner):
    told = runner.ask("Who?", tenant_id="a", history=[{"role": "nobody", "content": "?"}])["metadata"]
    assert (len(told["warnings"]), "role" in told["warnings"][0], "explain" in told) == (1, True, False)
    assert runner.ask("Who?", tenant_id="a", explain=True)["metadata"]["explain"] == {"method": "none"}


def test_a_trace_gives_the_outputs_that_are_named_with_times_and_warnings(runner):
    traced = runner.trace("Who?", tenant_id="a", outputs=["answers"])
    assert [answer.data for answer in traced["outputs"]["answers"]] == ["He, says a."]
    assert (traced["llm_calls"], traced["usage"], traced["warnings"]) == (0, {}, [])
    assert {"router", "answers", "total"} <= set(traced["timings_ms"])
    with pytest.raises(ConfigurationError, match=r"no output `passages`\. Its outputs: answers, documents, method"):
        runner.trace("Who?", tenant_id="a", outputs=["passages"])


def test_a_run_without_an_answer_is_an_error_that_names_the_stage(runner):
    # Only a question with "Who" reaches `answers`, whose `query` comes from the router.
    with pytest.raises(AnswerError, match=re.escape("ended without an answer. A stage before `answers.answers`")):
        runner.ask("誰？", tenant_id="a")


def test_our_own_errors_come_through_and_none_is_its_own_cause(runner):
    with pytest.raises(RefusedError, match="not a Haystack filter") as raised:
        runner.ask("Who?", tenant_id="a", filters={"title": "x"})
    causes, cause = [], raised.value
    while cause is not None:
        assert cause not in causes
        causes.append(cause)
        cause = cause.__cause__


@pytest.mark.parametrize(("typed", "clean"), [
    (" Who? ", "Who?"), ("a\x00b", "a b"), ("a\udcffb", "a b"), ("line\nline", "line\nline"),
    ("\x1b[31mred", "[31mred"), ("問" * 2000, "問" * 2000),
])  # fmt: skip
def test_a_question_is_cleaned(typed, clean):
    assert checked_question(typed) == clean


@pytest.mark.parametrize(("typed", "told"), [
    *((empty, "The question is empty") for empty in ("", "  \n", "\x00\x01", "\udcff")),
    ("x" * 10_000, "has 10,000 characters, the limit is 2,000"),
])  # fmt: skip
def test_an_empty_and_a_long_question_are_refused(typed, told):
    with pytest.raises(RefusedError, match=told):
        checked_question(typed)


@pytest.mark.parametrize("mode", ["index", "own"])
def test_a_file_that_answers_nothing_is_refused_with_what_it_gives(tmp_path, mode):
    own = tmp_path / "own.yml"
    own.write_text(
        "components:\n  analyzer: {type: shiguan.query.query_analyzer.QueryAnalyzer}\n"
        "inputs: {query: [analyzer.query]}\noutputs: {analysis: analyzer.analysis}\n",
        encoding="utf-8",
    )
    refused = pytest.raises(RefusedError, match=rf"`{mode}` answers no questions.*Ask one of the modes: .*simple")
    with Runner("embedded", own if mode == "own" else mode, data_dir=tmp_path) as runner, refused:
        runner.ask("Who?", tenant_id="a")


async def test_a_runner_that_searched_in_a_thread_is_closed_inside_a_running_loop(tmp_path):
    runner = Runner("embedded", "simple", data_dir=small_library(tmp_path), outputs=["documents"])
    found, _ = await asyncio.to_thread(runner.search, "Who proposed the two-tax reform?", tenant_id=TENANT)
    assert found[0].meta["source"] == "tax.txt"
    runner.close()
    runner.close()


def test_searches_at_once_load_the_part_that_finds_passages_once(tmp_path, monkeypatch):
    loaded, begun, go = [], threading.Event(), threading.Event()
    load = runner_module.load_pipeline

    def counted(*args, **kwargs):
        loaded.append(kwargs["outputs"])
        begun.set()
        assert go.wait(30)
        return load(*args, **kwargs)

    with Runner("embedded", "simple", data_dir=small_library(tmp_path)) as runner:
        monkeypatch.setattr(runner_module, "load_pipeline", counted)
        found = []
        both = [threading.Thread(target=lambda: found.append(runner._finder())) for _ in range(2)]
        both[0].start()
        assert begun.wait(30)
        both[1].start()
        both[1].join(0.2)  # it waits for the first, or loads one of its own
        go.set()
        for one in both:
            one.join()
    assert loaded == [["documents"]]
    assert found[0] is found[1]
