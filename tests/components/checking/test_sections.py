"""What a file may say of models and budgets, and where a wrong word of it is found."""

import pytest
import yaml
from tests.doubles.own_modes import mode_with

from shiguan.checking.pipeline_check import check_pipeline

TWO = [{"name": "cheap", "base_url": "http://127.0.0.1:9/v1"}, {"name": "strong", "key_variable": "STRONG_API_KEY"}]
ROLES = {"answer": ["cheap"], "answer_strong": ["strong", "cheap"]}


def found(tmp_path, *, models=None, **sections):
    path = mode_with(tmp_path, "advanced", **sections)
    if models is not None:  # of the file's own, which count instead of those of the deployment
        definition = yaml.safe_load(path.read_text(encoding="utf-8"))
        definition["components"]["generator"]["init_parameters"]["models"] = models
        path.write_text(yaml.safe_dump(definition), encoding="utf-8")
    return path.read_text(encoding="utf-8").splitlines(), check_pipeline(path, "mine.yml").findings


def test_named_models_and_limits_are_let_through(tmp_path):
    models = {"models": TWO, "roles": ROLES}
    assert found(tmp_path, models=models, budget={"calls": 4, "seconds": 30})[1] == []


@pytest.mark.parametrize(("models", "check", "problem"), [
    ({"models": [{"name": "a", "base_url": "file:///etc/passwd"}]}, "building", "must begin with http"),
    ({"models": [{"name": "a", "key_variable": "HOME"}]}, "code_in_parameters", "`HOME` is not the name of a key"),
    ({"models": [{"name": "a", "key_variable": "AWS_SECRET"}]}, "code_in_parameters", "not the name of a key"),
    ({"models": [{"name": "a", "window": 0}]}, "building", "greater than or equal"),
    ({"rules": [{"role": "answer_strong", "complexity": 70}]}, "building", "less than or equal"),
])  # fmt: skip
def test_a_wrong_section_of_models_is_found(tmp_path, models, check, problem):
    _, findings = found(tmp_path, models=models)
    assert [finding.check for finding in findings if problem in finding.problem][:1] == [check]


@pytest.mark.parametrize(("budget", "line", "problem"), [
    ({"calls": -1}, "calls: -1", "-1 is less than the minimum of 0."),
    ({"calls": 2.0}, "calls: 2.0", "2.0 is not of type 'integer', 'null'."),
    ({"money": 1}, "money: 1", "Additional properties are not allowed ('money' was unexpected)."),
])  # fmt: skip
def test_a_wrong_limit_is_found_on_its_line(tmp_path, budget, line, problem):
    text, (finding,) = found(tmp_path, budget=budget)
    assert line in text[finding.line - 1]
    assert (finding.check, finding.problem) == ("structure", problem)


@pytest.mark.parametrize(("value", "odd"), [
    (".nan", "the number nan"), ("-.inf", "the number -inf"),
    (f"0x{'f' * 5000}", "a whole number of 20,000 bits, the limit is 63"),
    (f"0x{'0' * 4000}7fffffffffffffff", ""), ("12.5", ""), ('".nan"', ""),
])  # fmt: skip
@pytest.mark.parametrize("place", ["metadata: {{mine: {}}}", "max_runs_per_component: {}", "budget: {{seconds: {}}}"])
def test_a_number_that_libraries_break_on_is_found_wherever_it_stands(tmp_path, place, value, odd):
    path = mode_with(tmp_path, "simple")
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{text}{place.format(value)}\n", encoding="utf-8")
    findings = check_pipeline(path, "mine.yml").findings
    if not odd:
        assert all(finding.check == "structure" for finding in findings)
        return
    (finding,) = findings
    assert (finding.check, finding.problem, finding.unsafe) == ("reading", f"The file has {odd}.", False)
    assert finding.line == len(text.splitlines()) + 1
