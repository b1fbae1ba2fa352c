import re

import pytest

from shiguan.errors import ConfigurationError
from shiguan.llm.model_settings import is_endpoint_configured, read_model_roles

TWO = {
    "models": [{"name": "cheap", "base_url": "http://127.0.0.1:1/v1"}, {"name": "strong", "key_variable": "STRONG_API_KEY"}],
    "roles": {"answer": ["cheap"], "answer_strong": ["strong", "cheap"]},
    "rules": [
        {"role": "answer_strong", "complexity": 7},
        {"role": "answer_strong", "types": ["compare"], "attempt": 2},
    ],
}  # fmt: skip


def names(section, role):
    roles = read_model_roles(section)
    return roles.names(role, [model.name for model in roles.models if model.is_usable])


def test_without_a_section_the_environments_endpoint_has_every_role(monkeypatch):
    assert names(None, "answer") == names(None, "helper") == []
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert names(None, "answer") == names(None, "answer_strong") == names(None, "judge") == ["default"]


def test_a_model_whose_key_is_not_there_is_left_out_and_a_role_without_models_is_that_of_answer(monkeypatch):
    assert names(TWO, "answer_strong") == ["cheap"]
    monkeypatch.setenv("STRONG_API_KEY", "k")
    assert names(TWO, "answer_strong") == ["strong", "cheap"]
    assert names(TWO, "helper") == ["cheap"]


@pytest.mark.parametrize(("asked", "role"), [
    ({"complexity": 6, "type": "fact", "attempt": 1}, "answer"),
    ({"complexity": 7, "type": "fact", "attempt": 1}, "answer_strong"),
    ({"complexity": 2, "type": "compare", "attempt": 1}, "answer"),
    ({"complexity": 2, "type": "compare", "attempt": 2}, "answer_strong"),
    ({"complexity": 2, "type": "fact", "attempt": 3}, "answer"),
    ({"complexity": None, "type": None, "attempt": 1}, "answer"),
    ({}, "answer"),
])  # fmt: skip
def test_the_first_rule_that_fits_says_who_answers(asked, role):
    roles = read_model_roles(TWO)
    assert roles.role_for("answer", asked) == role
    assert roles.role_for("helper", {"complexity": 9, "attempt": 3}) == "helper"


@pytest.mark.parametrize(("given", "key"), [("sk-1", "sk-1"), ("sk-1\r\n", "sk-1"), (" ", None), ("\n", None)])
def test_a_key_is_read_without_the_white_space_around_it(monkeypatch, given, key):
    monkeypatch.setenv("OPENAI_API_KEY", given)
    assert is_endpoint_configured() is (key is not None)
    assert read_model_roles(None).models[0].key == (key or "not-needed")


@pytest.mark.parametrize("given", ["sk\n1", "ключ", "“sk-1”"])
def test_a_key_that_no_request_can_carry_is_refused_and_not_shown(monkeypatch, given):
    monkeypatch.setenv("OPENAI_API_KEY", given)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY is not a key") as refused:
        is_endpoint_configured()
    assert given not in str(refused.value)


def test_the_environments_key_goes_to_no_other_address(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-environment")
    monkeypatch.setenv("STRONG_API_KEY", "of-strong")
    cheap, strong = read_model_roles(TWO).models
    assert (cheap.key, strong.key) == ("not-needed", "of-strong")
    (default,) = read_model_roles(None).models
    assert default.key == "of-the-environment"


def test_a_price_is_for_a_million_tokens():
    (model,) = read_model_roles({"models": [{"name": "default", "price_in": 2, "price_out": 10}]}).models
    assert model.cost({"prompt_tokens": 1_000, "completion_tokens": 300, "total_tokens": 1_300}) == 0.005
    (model,) = read_model_roles(None).models
    assert model.cost({"prompt_tokens": 1_000}) is None


@pytest.mark.parametrize(
    ("change", "place", "problem"),
    [
        ({"models": []}, ("models",), "at least 1"),
        ({"models": [{"name": "a", "url": "x"}], "roles": {"answer": ["a"]}}, ("models", 0, "url"), "not permitted"),
        ({"models": [{"name": "a", "base_url": "file:///etc"}], "roles": {"answer": ["a"]}}, ("models", 0, "base_url"), "http://"),
        ({"models": [{"name": "a", "key_variable": "HOME"}], "roles": {"answer": ["a"]}}, ("models", 0, "key_variable"), "match"),
        ({"models": [{"name": "a", "key_variable": "SHIGUAN_METRICS_KEY"}], "roles": {"answer": ["a"]}},
         ("models", 0, "key_variable"), "of callers"),
        ({"models": [{"name": "a", "price_in": -1}], "roles": {"answer": ["a"]}}, ("models", 0, "price_in"), "greater"),
        ({"models": [{"name": "a", "timeout": 0}], "roles": {"answer": ["a"]}}, ("models", 0, "timeout"), "greater"),
        ({"models": [{"name": "cheap"}, {"name": "cheap"}]}, ("models",), "`cheap` is used twice"),
        ({"roles": {"helper": ["cheap"]}}, (), "no model has the role `answer`"),
        ({"roles": {"answer": ["cheep"]}}, (), "the role `answer` names `cheep`, which is not among the models"),
        ({"roles": {"answer": ["cheap", "cheap"]}}, (), "a model twice"),
        ({"roles": {"answer": [["cheap", "strong"]]}}, ("roles", "answer", 0), "valid string"),
        ({"roles": {"answer": ["cheap"], "writer": ["cheap"]}}, ("roles", "writer"), "answer_strong"),
        ({"rules": [{"role": "best"}]}, ("rules", 0, "role"), "answer_strong"),
        ({"rules": [{"role": "answer", "complexity": "high"}]}, ("rules", 0, "complexity"), "integer"),
        ("all", (), "dictionary"), (["a"], (), "dictionary"), ({"models": "a"}, ("models",), "list"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(change, place, problem):
    section = {**TWO, **change} if isinstance(change, dict) else change
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    with pytest.raises(ValueError, match=rf"^`models{re.escape(where)}`: .*{problem}.*docs/models.md"):
        read_model_roles(section)
