"""What one question may spend, what it has spent, and which steps are given up when that runs short."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Annotated, Any

from haystack.dataclasses import ChatMessage
from pydantic import BaseModel, Field, ValidationError

from shiguan.errors import BudgetError, RefusedError
from shiguan.llm.run_watch import LlmTally, current_stage

FULL = "full"
"""The rung of an answer for which nothing was given up."""

clock = time.monotonic

_Count = Annotated[int | None, Field(ge=0, strict=True)]
_Amount = Annotated[float | None, Field(ge=0, strict=True, allow_inf_nan=False)]


class Budget(BaseModel, extra="forbid", frozen=True):
    """
    What one question may spend; None for as much as it takes.

    `calls` are requests to language models, repeated ones too; `tokens` those read and written; `seconds` are counted
    from the question on; `cost` is in the currency of the models' prices.
    """

    calls: _Count = None
    tokens: _Count = None
    seconds: _Amount = None
    cost: _Amount = None

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are set, by unit."""
        return {unit: limit for unit in Budget.model_fields if (limit := getattr(self, unit)) is not None}

    def within(self, other: "Budget") -> "Budget":
        """Give the stricter of two budgets in every unit."""
        both = (self.limits, other.limits)
        strict = {unit: min(one[unit] for one in both if unit in one) for unit in {**both[0], **both[1]}}
        return Budget.model_validate(strict)


class Rung(BaseModel, extra="forbid", frozen=True):
    """A step of the ladder: its stages call a model while so much is left, and this share of every limit."""

    rung: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")]
    stages: Annotated[list[str], Field(min_length=1)]
    calls: Annotated[int, Field(ge=1)] = 1
    tokens: Annotated[int, Field(ge=0)] = 0
    share: Annotated[float, Field(ge=0, lt=1)] = 0.0


class BudgetPlan(Budget, frozen=True):
    """The `budget` section of a pipeline file: limits for every question, and what is given up, first to last."""

    ladder: list[Rung] = []


def read_budget(given: Any) -> Budget:
    """Read what a question came with."""
    if isinstance(given, Budget):
        return given
    try:
        return Budget.model_validate(given or {})
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in fault["loc"])
        raise RefusedError(
            f"The budget cannot be used: `{place or 'budget'}` is {str(fault['input'])[:80]!r}. Expected `calls` and "
            "`tokens`, whole numbers, `seconds` and `cost`, numbers, none below 0. Correct it."
        ) from None


class BudgetMeter:
    """
    Counts what a question spends and says who may still call a model.

    A request begins only if what was spent, the most that the requests under way can still take, and its own prompt
    are within the limits: what goes beyond them is at most the reply to it.
    """

    def __init__(self, limits: Budget, ladder: Sequence[Rung], tally: LlmTally) -> None:
        self.limits = limits
        self.ladder = list(ladder)
        self.tally = tally
        self.rung = -1
        self._started = clock()
        self._under_way: dict[object, dict[str, float]] = {}
        self._lock = Lock()

    def spent(self) -> dict[str, float]:
        """Tell what was spent so far, by unit."""
        tally = self.tally
        used = {"calls": tally.requests, "tokens": tally.tokens, "cost": tally.cost}
        return {**used, "seconds": clock() - self._started}

    def allows(self, *, tokens: int = 0, price: float = 0.0) -> bool:
        """Tell whether the stage at work may call a model, with a prompt of so many tokens; a no is remembered."""
        with self._lock:
            return self._allows(tokens, price)

    def reserve(self, tokens: int) -> bool:
        """Do as `allows`, and keep from now on a call and such a prompt for whatever writes the answer."""
        with self._lock:
            if allowed := self._allows(tokens, 0.0):
                self._under_way[self] = {"calls": 1, "tokens": tokens}
            return allowed

    def begin(self, call: object, *, tokens: int, reply: int, prices: tuple[float, float]) -> None:
        """Let a request of a call begin, which may read and write so many tokens at so much a token."""
        with self._lock:
            # What was reserved is for whoever stands on no rung: what writes the answer.
            own = self._rung_of(current_stage()) is None and self._under_way.pop(self, None) is not None
            if not own and not self._allows(tokens, prices[0]):
                raise BudgetError("The question's budget leaves no call for this. Allow it more, or ask for less.")
            self._under_way[call] = {"tokens": tokens + reply, "cost": tokens * prices[0] + reply * prices[1]}

    def end(self, call: object) -> None:
        """Note that a call is over; what it took is in the tally by now."""
        with self._lock:
            self._under_way.pop(call, None)

    def record(self) -> dict[str, Any]:
        """Tell limits, what was spent, and on which rung the answer stands."""
        spent = {unit: round(value, 6) for unit, value in self.spent().items()}
        return {"limits": self.limits.limits, "spent": spent, "rung": self._name}

    def warnings(self) -> list[str]:
        """Say what a short budget cost the answer."""
        found = []
        if self.rung >= 0:
            limits = ", ".join(f"{unit} {limit:g}" for unit, limit in self.limits.limits.items())
            ladder = ", ".join([FULL, *(step.rung for step in self.ladder)])
            found.append(
                f"The question's budget ({limits}) was short: the answer stands on the rung `{self._name}` of {ladder}."
            )
        unpriced = sorted({str(call["model"]) for call in self.tally.made if call["cost"] is None})
        if self.limits.cost is not None and unpriced:
            found.append(f"No price is known for {', '.join(unpriced)}: its calls count as free in the budget.")
        return found

    @property
    def _name(self) -> str:
        return self.ladder[self.rung].rung if self.rung >= 0 else FULL

    def _rung_of(self, stage: str) -> int | None:
        return next((place for place, step in enumerate(self.ladder) if stage in step.stages), None)

    def _allows(self, tokens: int, price: float) -> bool:
        place = self._rung_of(current_stage())
        step = self.ladder[place] if place is not None else Rung(rung=FULL, stages=[""])
        spent, limits = self.spent(), self.limits.limits
        for unit, limit in limits.items():
            under_way = sum(worst.get(unit, 0) for worst in self._under_way.values())
            left = limit - spent[unit] - under_way
            own = {"calls": step.calls, "tokens": max(step.tokens, tokens), "cost": tokens * price}.get(unit, 0)
            if left <= 0 or left < max(own, step.share * limit):
                if place is not None:
                    self.rung = max(self.rung, place)
                return False
        return True


_meter: ContextVar[BudgetMeter | None] = ContextVar("shiguan_budget", default=None)


def current_meter() -> BudgetMeter | None:
    """Give the meter of the question that this code works for; None where it has no budget."""
    return _meter.get()


@contextmanager
def metered(plan: BudgetPlan, asked: Budget, tally: LlmTally) -> Iterator[BudgetMeter | None]:
    """Hold everything inside the block to the stricter of two budgets; to none where neither sets a limit."""
    limits = plan.within(asked)
    meter = BudgetMeter(limits, plan.ladder, tally) if limits.limits else None
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


def budget_allows() -> bool:
    """Tell whether the stage at work may go on to call a model, as far as the question's budget goes."""
    meter = current_meter()
    return meter is None or meter.allows()


def reserve_answer(prompt_tokens: int) -> bool:
    """Tell whether an answer to such a prompt may be written, and keep from now on what it needs."""
    meter = current_meter()
    return meter is None or meter.reserve(prompt_tokens)


def estimate_tokens(text: list[ChatMessage] | str) -> int:
    """Estimate from above how many tokens a prompt has: one for a character, or for three of plain ASCII."""
    texts = [text] if isinstance(text, str) else [part for message in text for part in [*message.texts, "." * 24]]
    plain = sum(letter < "\x80" for part in texts for letter in part)
    return sum(map(len, texts)) - plain + -(-plain // 3)
