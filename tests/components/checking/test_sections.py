"""What a file may say of models and budgets, and where a wrong word of it is found."""

import pytest
from tests.doubles.model_sections import mode_with

from shiguan.checking.pipeline_check import check_pipeline

TWO = [{"name": "cheap", "base_url": "http://127.0.0.1:9/v1"}, {"name": "strong", "key_variable": "STRONG_API_KEY"}]
ROLES = {"answer": ["cheap"], "answer_strong": ["strong", "cheap"]}


def found(tmp_path, **sections):
    path = mode_with(tmp_path, "advanced", **sections)
    return path.read_text(encoding="utf-8").splitlines(), check_pipeline(path, "mine.yml").findings


def test_named_models_and_limits_are_let_through(tmp_path):
    budget = {
        "calls": 4,
        "tokens": 9000,
        "seconds": 30,
        "cost": 0.05,
        "ladder": [{"rung": "quotations", "stages": ["gate"]}],
    }
    assert found(tmp_path, models={"models": TWO, "roles": ROLES}, budget=budget)[1] == []


@pytest.mark.parametrize(
    ("models", "line", "problem", "unsafe"),
    [
        ({"models": [{"name": "a", "base_url": "file:///etc/passwd"}]}, "base_url: file", "must begin with http", True),
        ({"models": [{"name": "a", "key_variable": "HOME"}]}, "key_variable: HOME", "should match pattern", True),
        ({"models": [{"name": "a", "key_variable": "AWS_SECRET"}]}, "key_variable: AWS", "should match pattern", True),
        ({"models": [{"name": "a", "window": 0}]}, "window: 0", "greater than or equal", False),
        ({"models": [{"name": "a", "prices": 2}]}, "prices: 2", "not permitted", False),
        ({"roles": {"answer": ["nobody"]}}, "models: *models", "`nobody`, which is no model", False),
        ({"rules": [{"role": "answer_strong", "complexity": 70}]}, "complexity: 70", "less than or equal", False),
    ],
)  # fmt: skip
def test_a_wrong_section_is_found_once_on_its_line(tmp_path, models, line, problem, unsafe):
    text, findings = found(tmp_path, models=models)
    (finding,) = [one for one in findings if problem in one.problem][:1]
    assert line in text[finding.line - 1]
    assert (finding.check, finding.unsafe) == ("models", unsafe)
    assert "docs/models.md" in finding.expected
    assert len({one.line for one in findings}) == len(findings)


@pytest.mark.parametrize(
    ("budget", "line", "problem"),
    [
        ({"calls": -1}, "calls: -1", "greater than or equal"),
        ({"money": 1}, "money: 1", "not permitted"),
        ({"ladder": [{"rung": "no_hyde", "stages": ["hyde"]}]}, "stages:", "no component `hyde`"),
        ({"ladder": [{"rung": "a", "stages": ["gate"]}, {"rung": "b", "stages": ["gate"]}]}, "stages:", "two rungs"),
        ({"ladder": [{"rung": "a", "stages": ["gate"], "share": 1.0}]}, "share: 1.0", "less than 1"),
        ({"ladder": "all"}, "ladder: all", "valid list"),
    ],
)
def test_a_wrong_budget_is_found_on_its_line(tmp_path, budget, line, problem):
    text, findings = found(tmp_path, budget=budget)
    (finding,) = [one for one in findings if problem in one.problem]
    assert line in text[finding.line - 1]
    assert finding.check == "budget"


def test_an_unknown_role_is_refused_where_it_stands(tmp_path):
    path = mode_with(tmp_path, "simple")
    path.write_text(path.read_text().replace("      models: *models\n      gen", "      role: writer\n      gen"))
    (finding,) = check_pipeline(path, "mine.yml").findings
    assert "`role` must be one of answer, answer_strong, helper, judge" in finding.problem


@pytest.mark.parametrize(
    ("cache", "problem"),
    [
        ({"answers": -1}, "`answers`: Input should be greater than or equal to 0."),
        ({"calls": "a day"}, "`calls`: Input should be a valid integer."),
        ({"vectors": 1}, "`vectors`: Extra inputs are not permitted."),
    ],
)
def test_a_wrong_time_to_keep_is_found_on_its_line(tmp_path, cache, problem):
    _, findings = found(tmp_path, cache=cache)
    (finding,) = findings
    assert (finding.check, finding.problem) == ("cache", problem)
    assert found(tmp_path, cache={"calls": 0, "answers": 600})[1] == []
