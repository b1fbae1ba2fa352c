import pytest
from pydantic import ValidationError

from shiguan.llm.model_settings import Budget
from shiguan.serving.engine import AnswerRequest, read_request
from shiguan.serving.error_replies import ApiError, invalid_fields
from shiguan.serving.openai_routes import ChatRequest, read_chat


def nested(depth):
    condition = {"field": "meta.source", "operator": "==", "value": "a"}
    for _ in range(depth):
        condition = {"operator": "AND", "conditions": [condition]}
    return condition


@pytest.mark.parametrize(("field", "value"), [
    ("query", ""), ("query", " \n"), ("query", "x" * 2001), ("query", None), ("top_k", 51), ("temperature", -0.1),
    ("temperature", float("nan")), ("filters", {"field": "meta.source"}),
    ("filters", {"operator": "AND", "conditions": [{"title": "x"}]}),
    ("filters", nested(12)),
    ("filters", {"operator": "OR", "conditions": [nested(0)] * 501}),
    ("filters", []), ("conversation_id", "a b"), ("conversation_id", "x" * 129), ("history", [{"role": "user"}]),
    ("history", [{"role": "user", "content": "x", "name": "y"}]),
    ("history", [{"role": "user", "content": "x"}] * 101),
    ("task", "../qa"), ("profile", "../history"), ("budget", 3), ("budget", {"calls": -1}),
    ("budget", {"calls": 1.5}), ("budget", {"seconds": "soon"}), ("budget", {"cost": float("nan")}),
    ("budget", {"dollars": 1}), ("include_sources", "perhaps"),
])  # fmt: skip
def test_a_wrong_field_is_named_and_its_value_is_not_repeated(field, value):
    with pytest.raises(ValidationError) as raised:
        AnswerRequest.model_validate({"query": "Who?", field: value})
    told = invalid_fields(raised.value)
    assert told.status_code == 422
    assert told.fields[0]["field"].split(".")[0] == field


@pytest.mark.parametrize(("body", "told"), [
    ({"query": "？？？"}, "The question `？？？` has no words. Ask in a sentence"),
    ({"query": "Who?", "topk": 1}, "Fields are missing or wrong: `topk` (there is no such field; /openapi.json"),
])  # fmt: skip
def test_a_rule_is_told_in_its_own_sentence_and_an_unknown_field_as_such(body, told):
    with pytest.raises(ValidationError) as raised:
        AnswerRequest.model_validate(body)
    assert invalid_fields(raised.value).message.startswith(told)


@pytest.mark.parametrize("body", [[], 3, None, "Who?"])
def test_a_body_that_is_no_object_is_told_so_by_both_interfaces(body):
    with pytest.raises(ApiError, match=r"`body` \(expected a JSON object"):
        read_chat(body)
    with pytest.raises(ApiError, match=r"`body` \(expected a JSON object; a body is one with"):
        read_request(body)
    with pytest.raises(ApiError, match=r"`history.0` \(expected a JSON object\)"):
        read_request({"query": "Who?", "history": [body and 3]})


def test_the_ends_of_a_range_are_in_it():
    for given in ({"top_k": 1}, {"top_k": 50}, {"temperature": 0.0}, {"temperature": 2.0}):
        assert AnswerRequest.model_validate({"query": "问" * 2000, **given}).given() == given


def test_everything_that_may_come_with_a_question_is_handed_on():
    options = {
        "top_k": 50, "temperature": 0, "filters": nested(9), "conversation_id": "c-1",
        "history": [{"role": "user", "content": "Before."}], "task": "compare", "profile": "history", "language": "zh",
    }  # fmt: skip
    asked = {"query": " Who? ", "mode": "precise", **options, "budget": {"calls": 0, "seconds": 2}}
    request = AnswerRequest.model_validate(asked)
    assert request.query == "Who?"
    assert request.options() == {**options, "budget": Budget(calls=0, seconds=2.0)}
    assert AnswerRequest(query="Who?").options() == {}, "what is left out is as the YAML says"


def test_a_chat_request_may_have_a_budget_too():
    body = {"model": "shiguan-simple", "messages": [{"role": "user", "content": "Who?"}], "budget": {"seconds": 9}}
    assert ChatRequest.model_validate(body).as_request().budget == Budget(seconds=9)
