from types import SimpleNamespace

import pytest
from haystack.dataclasses import ChatMessage

from shiguan.errors import BudgetError, RefusedError
from shiguan.llm import run as run_module
from shiguan.llm.calls import budget_allows, estimate_tokens
from shiguan.llm.model_settings import Budget, read_budget
from shiguan.llm.run import Run


@pytest.fixture(autouse=True)
def now(monkeypatch):
    now = SimpleNamespace(seconds=50.0)
    monkeypatch.setattr(run_module, "clock", lambda: now.seconds)
    return now


class Question:
    """A question with a budget: asks for a stage, and sends requests."""

    def __init__(self, **limits):
        self.run = Run(budget=Budget(**limits))

    def allows(self, stage, *size, helper=True):
        with self.run.stage(stage):
            return self.run.allows(*size, helper=helper)

    def begin(self, stage="generator"):
        with self.run.stage(stage):
            self.run.begin_request()


def test_helpers_never_take_the_last_call():
    asked = Question(calls=3)
    assert asked.allows("rewriter")
    assert asked.allows("retriever", 2)
    assert (asked.run.warnings(), asked.run.budget_record()["refused"]) == ([], [])
    assert not asked.allows("retriever", 3)
    asked.begin("rewriter")
    assert asked.allows("goal")
    asked.begin("goal")
    assert not asked.allows("retriever")  # one is left, for the answer
    assert asked.allows("grader", helper=False)
    asked.begin()
    assert not asked.allows("grader", helper=False)
    with pytest.raises(BudgetError, match="leaves no call for this"):
        asked.begin()
    spent, refused = {"calls": 3, "seconds": 0.0}, ["retriever", "grader", "generator"]
    assert asked.run.budget_record() == {"limits": {"calls": 3}, "spent": spent, "refused": refused}
    short = "The question's budget (calls 3) was short: `retriever`, `grader`, `generator` did without a model."
    assert asked.run.warnings() == [short]


def test_helpers_begin_in_the_first_six_tenths_of_the_time(now):
    asked = Question(seconds=10.0)
    now.seconds += 5.9
    assert asked.allows("retriever")
    now.seconds += 0.2
    assert (asked.allows("retriever"), asked.allows("grader", helper=False)) == (False, True)
    asked.begin()
    now.seconds += 4
    assert not asked.allows("grader", helper=False)
    with pytest.raises(BudgetError):
        asked.begin()


def test_how_much_of_the_time_is_left(now):
    asked = Question(seconds=10)
    now.seconds += 2
    assert (asked.run.seconds_left(), asked.run.seconds_left(helper=True)) == (8, 4)
    now.seconds += 6
    assert (asked.run.seconds_left(), asked.run.seconds_left(helper=True)) == (2, 0)
    assert Question(calls=1).run.seconds_left() is None


@pytest.mark.parametrize("limits", [{"calls": 0}, {"seconds": 0}])
def test_a_budget_of_zero_allows_nothing(limits):
    asked = Question(**limits)
    assert not asked.allows("rewriter")
    assert not asked.allows("grader", helper=False)
    with pytest.raises(BudgetError):
        asked.begin()
    assert asked.run.requests == 0


def test_outside_a_question_with_a_budget_everything_is_allowed():
    assert budget_allows(10**9)
    with Run().entered() as run:
        assert (run.budget_record(), budget_allows(10**9)) == (None, True)
    with Run(budget=Budget(calls=1)).entered():
        assert (budget_allows(1), budget_allows(2)) == (True, False)


def test_the_stricter_of_two_budgets_holds():
    assert Budget(calls=3, seconds=4).within(Budget(calls=5, seconds=2.5)) == Budget(calls=3, seconds=2.5)
    assert Budget(calls=3).within(Budget(seconds=2.5)) == Budget(calls=3, seconds=2.5)
    assert Budget().within(Budget()).limits == {}


@pytest.mark.parametrize(
    "given",
    [{"calls": -1}, {"calls": 1.5}, {"calls": True}, {"calls": "2"}, {"seconds": float("nan")},
     {"seconds": float("inf")}, {"seconds": "10"}, {"money": 1}, {"tokens": 5}, {"cost": 1}, [1], "all", 7,
     {"seconds": None, "call": 2}, {"calls": [1]},
     {"calls": 10**5000}, {"calls": 10**9 + 1}, {"seconds": 1e308}, {"seconds": 1e9 + 1}],
)  # fmt: skip
def test_what_is_no_budget_is_refused_with_the_value(given):
    with pytest.raises(RefusedError, match=r"The budget cannot be used: .*`calls`, a whole number, and `seconds`"):
        read_budget(given)


def test_what_is_one_is_read():
    assert read_budget(None) == read_budget({}) == Budget()
    assert read_budget({"calls": 2, "seconds": 3}) == Budget(calls=2, seconds=3.0)
    assert read_budget({"calls": 10**9, "seconds": 1e9}).limits == {"calls": 10**9, "seconds": 1e9}


def test_tokens_are_estimated_by_characters():
    assert estimate_tokens("abcdefgh") == 2
    assert estimate_tokens("安史之亂也") == 8
    assert estimate_tokens([ChatMessage.from_user("安史之亂也 abc")]) == 8 + 7  # 4 plain ones, 24 for the message
