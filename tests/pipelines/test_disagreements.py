"""Where sources of an answer disagree, the judge of `precise` has the last word, in the call that it gets anyway."""

import json

import pytest
from tests.doubles.cluster import elasticsearch, qdrant, small_models, waits  # noqa: F401  fixtures

from shiguan.cli import main
from shiguan.engine.library import Library
from shiguan.engine.runner import Runner

TEXTS = {
    "harrow.txt": "The old mill at Thornby was built in 1712. It ground the corn of three parishes.",
    "askew.txt": "In 1718 Hugh Tarrant built the old mill at Thornby. He had come from Wenlow with his sons.",
    "river.txt": "The river froze at Thornby. The mill stood still that winter.",
}
QUESTION = "When was the old mill at Thornby built?"
ANSWER = "The old mill at Thornby was built in 1712 [{}]. In 1718 Hugh Tarrant built the old mill at Thornby [{}]."
MARKS = {"support": 9, "relevance": 9, "completeness": 9, "clarity": 9}
BY_RULE = {"1712", "1718"}
REPLIES = [
    ([{"id": 1, "disagree": False}], set()),
    ([{"id": 1, "disagree": True}], BY_RULE),
    ([{"id": "1", "disagree": False}, {"id": 7, "disagree": True}], set()),
    ([{"id": 2, "disagree": False}, {"id": 0, "disagree": False}, {"id": -1, "disagree": False}], BY_RULE),
    ([{"id": 1, "disagree": "no"}], BY_RULE),
    ([{"id": 1}], BY_RULE),
    ([{"id": True, "disagree": False}, "1", None, [1, False]], BY_RULE),
    ({"1": False}, BY_RULE),
    (None, BY_RULE),
]


@pytest.fixture(params=["embedded", "elasticsearch_qdrant"])
def runner(request, tmp_path):
    """The mode of a deployment, with a library of the texts."""
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    where = {"data_dir": tmp_path / "data"}
    if request.param == "elasticsearch_qdrant":
        where = {}
        for fixture in ("elasticsearch", "qdrant", "small_models"):
            request.getfixturevalue(fixture)
        assert main(["stores", "init"]) == 0
    library = Library(request.param, **where)
    assert all(result.parents == 1 for result in library.ingest(sorted(folder.iterdir()), tenant_id="a"))
    for store in library.stores.values():
        getattr(store, "close", lambda: None)()
    with Runner(request.param, "precise", **where) as runner:
        yield runner


def scripted(endpoint, pairs, answer=ANSWER):
    """Let the generator cite both accounts, whatever their numbers are, and the judge say this of the pair."""

    def reply(call):
        numbers = [call.prompt.partition(TEXTS[name][:30])[0].count("<source ") for name in ("harrow.txt", "askew.txt")]
        return answer.format(*numbers)

    endpoint.rules = []
    endpoint.rule("<sources>", reply)
    endpoint.rule("strict checker of sources", json.dumps({**MARKS, "claims": [], "pairs": pairs}))


def judged(endpoint):
    return [prompt for prompt in endpoint.prompts if "strict checker of sources" in prompt]


def test_the_judge_decides_and_a_hostile_reply_leaves_it_to_the_rule(runner, endpoint):
    for pairs, values in REPLIES:
        endpoint.reset()
        scripted(endpoint, pairs)
        answer = runner.ask(QUESTION, tenant_id="a")
        assert len(answer["citations"]) == 2, answer["answer"]
        found = answer["metadata"]["disagreements"]
        assert {value for one in found for value in one["values"]} == values, pairs
        (prompt,) = judged(endpoint)
        assert "<pairs>\n1. “17" in prompt
        assert all(TEXTS[name].partition(". ")[0] in prompt for name in ("harrow.txt", "askew.txt"))


def test_a_judge_that_fails_leaves_it_to_the_rule(runner, endpoint):
    scripted(endpoint, [])
    endpoint.rule("strict checker of sources", "I cannot judge this.")
    answer = runner.ask(QUESTION, tenant_id="a")
    assert [set(one["values"]) for one in answer["metadata"]["disagreements"]] == [BY_RULE]


def test_where_nothing_may_disagree_the_judge_is_not_asked_about_it(runner, endpoint):
    scripted(
        endpoint,
        [{"id": 1, "disagree": True}],
        "The old mill at Thornby was built in 1712 [{}]. Tarrant was a rich miller [{}].",
    )
    answer = runner.ask(QUESTION, tenant_id="a")
    assert answer["metadata"]["disagreements"] == []
    prompts = judged(endpoint)
    assert prompts
    assert not any("pairs" in prompt for prompt in prompts)
