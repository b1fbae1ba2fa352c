from types import SimpleNamespace

import pytest
from haystack.dataclasses import ChatMessage

from shiguan.errors import BudgetError, RefusedError
from shiguan.llm import calls
from shiguan.llm.calls import estimate_tokens, metered, reserve_answer
from shiguan.llm.model_settings import Budget, BudgetPlan, read_budget
from shiguan.llm.run_watch import RunWatch, tallied_llm_calls

PLAN = BudgetPlan.model_validate(
    {
        "ladder": [
            {"rung": "no_hyde", "stages": ["retriever"], "calls": 3, "share": 0.5},
            {"rung": "one_query", "stages": ["rewriter"], "calls": 2, "share": 0.25},
            {"rung": "quotations", "stages": ["gate"]},
        ]
    }
)
FREE = (0.0, 0.0)


@pytest.fixture
def now(monkeypatch):
    now = SimpleNamespace(seconds=50.0)
    monkeypatch.setattr(calls, "clock", lambda: now.seconds)
    return now


@pytest.fixture
def question(now):
    """A question with a budget: asks for a stage, and spends as if a call had been answered."""

    class Question:
        def __init__(self, **limits):
            self.watch = RunWatch()
            with tallied_llm_calls() as self.tally, metered(PLAN, Budget(**limits), self.tally) as self.meter:
                pass

        def allows(self, stage, *size):
            with self.watch.stage(stage):
                return self.meter.allows(*size)

        def spend(self, tokens=0, cost=0.0, stage="retriever"):
            self.tally.requests += 1
            self.tally.usage["total_tokens"] = self.tally.usage.get("total_tokens", 0) + tokens
            self.tally.made.append({"stage": stage, "cost": cost, "model": "m"})

    return Question


def test_calls_step_down_the_ladder(question):
    asked = question(calls=3)
    assert [asked.allows(stage) for stage in ("retriever", "rewriter", "gate")] == [True, True, True]
    assert asked.meter.record()["rung"] == "full"
    asked.spend()
    assert [asked.allows(stage) for stage in ("rewriter", "gate", "retriever")] == [True, True, False]
    assert asked.meter.record()["rung"] == "no_hyde"
    asked.spend()
    assert [asked.allows(stage) for stage in ("gate", "rewriter")] == [True, False]
    asked.spend()
    assert not asked.allows("gate")
    assert asked.meter.record() == {
        "limits": {"calls": 3},
        "spent": {"calls": 3, "tokens": 0, "cost": 0, "seconds": 0},
        "rung": "quotations",
    }
    assert asked.meter.warnings() == [
        "The question's budget (calls 3) was short: the answer stands on the rung `quotations` of full, no_hyde, "
        "one_query, quotations."
    ]


def test_a_share_of_the_tokens_stays_for_what_comes_after(question):
    asked = question(tokens=1000)
    assert asked.allows("retriever", 300, 200, FREE)  # 1,000 are left: 500 for the call, 500 stay
    assert not asked.allows("retriever", 300, 201, FREE)
    assert asked.allows("rewriter", 300, 450, FREE)
    asked.spend(tokens=600)
    assert not asked.allows("rewriter", 100, 51, FREE)  # 400 are left, 250 of them stay
    assert asked.allows("rewriter", 100, 50, FREE)
    assert not asked.allows("gate", 401)
    assert asked.allows("gate", 400)


def test_seconds_and_cost_count_as_well(question, now):
    asked = question(seconds=10.0)
    now.seconds += 5
    assert asked.allows("retriever")
    now.seconds += 0.1
    assert (asked.allows("retriever"), asked.allows("rewriter")) == (False, True)
    now.seconds += 5
    assert not asked.allows("gate")
    asked = question(cost=0.01)
    assert asked.allows("retriever", 1000, 500, (2e-6, 6e-6))  # .005, and .005 stay
    assert not asked.allows("retriever", 1000, 501, (2e-6, 6e-6))


def test_a_helper_may_wait_until_it_touches_the_share_of_what_comes_after(question, now):
    asked = question(seconds=10)
    now.seconds += 2
    with asked.watch.stage("rewriter"):
        assert asked.meter.seconds_left() == 5.5  # 10 without a quarter, and 2 are over
    with asked.watch.stage("retriever"):
        assert asked.meter.seconds_left() == 3
    now.seconds += 6
    with asked.watch.stage("retriever"):
        assert asked.meter.seconds_left() == 0
    with asked.watch.stage("generator"):
        assert asked.meter.seconds_left() == 2
    assert question(calls=1).meter.seconds_left() is None


@pytest.mark.parametrize("limits", [{"calls": 0}, {"tokens": 0}, {"seconds": 0}, {"cost": 0}])
def test_a_budget_of_zero_allows_nothing(question, limits):
    asked = question(**limits)
    assert not any(asked.allows(stage) for stage in ("retriever", "rewriter", "gate", "generator"))


def test_what_is_under_way_counts_with_the_most_that_it_may_take(question):
    asked = question(tokens=1000)
    with asked.watch.stage("rewriter"):
        asked.meter.begin("one", 100, 400, FREE)
        with pytest.raises(BudgetError, match="leaves no call for this"):
            asked.meter.begin("two", 100, 200, FREE)
        asked.tally.usage["total_tokens"] = 150
        asked.meter.end("one")
        asked.meter.begin("two", 100, 400, FREE)
    assert asked.tally.requests == 2


def test_what_the_gate_reserved_is_kept_for_the_answer(question):
    asked = question(calls=2, tokens=2000)
    with asked.watch.stage("gate"):
        assert asked.meter.reserve(900)
    assert not asked.allows("rewriter", 100, 100, FREE)  # one call is reserved, and the rung wants two
    asked.spend(tokens=1500)  # what was under way took more than was left
    with asked.watch.stage("generator"):
        asked.meter.begin("answer", 950, 2048, FREE)
        with pytest.raises(BudgetError):
            asked.meter.begin("again", 950, 2048, FREE)


def test_outside_a_question_with_a_budget_everything_is_allowed():
    assert reserve_answer(10**9)
    with tallied_llm_calls() as tally, metered(PLAN, Budget(), tally) as meter:
        assert (meter, reserve_answer(10**9)) == (None, True)


def test_the_stricter_of_two_budgets_holds():
    both = Budget(calls=3, seconds=4).within(Budget(calls=5, seconds=2.5, cost=1))
    assert both == Budget(calls=3, seconds=2.5, cost=1)
    assert Budget().within(Budget()).limits == {}


@pytest.mark.parametrize(
    "given",
    [{"calls": -1}, {"calls": 1.5}, {"calls": True}, {"calls": "2"}, {"seconds": float("nan")}, {"cost": float("inf")},
     {"seconds": "10"}, {"money": 1}, [1], "all", 7, {"tokens": None, "call": 2}, {"calls": [1]}],
)  # fmt: skip
def test_what_is_no_budget_is_refused_with_the_value(given):
    with pytest.raises(RefusedError, match=r"The budget cannot be used: .*`calls` and `tokens`"):
        read_budget(given)


def test_what_is_one_is_read():
    assert read_budget(None) == read_budget({}) == Budget()
    assert read_budget({"calls": 2, "seconds": 3}) == Budget(calls=2, seconds=3.0)


def test_tokens_are_estimated_by_characters():
    assert estimate_tokens("abcdefgh") == 2
    assert estimate_tokens("安史之亂也") == 8
    assert estimate_tokens([ChatMessage.from_user("安史之亂也 abc")]) == 8 + 7  # 4 plain ones, 24 for the message
