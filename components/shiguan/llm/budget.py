"""What one question may spend, which steps are given up when that runs short, and how long replies are kept."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from shiguan.errors import RefusedError

_Count = Annotated[int | None, Field(ge=0, strict=True)]
_Amount = Annotated[float | None, Field(ge=0, strict=True, allow_inf_nan=False)]
_Seconds = Annotated[int, Field(ge=0, le=365 * 86_400, strict=True)]


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
    """
    A step of the ladder: when its stages may still call a model.

    While so many calls are left, and this share of every other limit beside the most that the call itself may take.
    """

    rung: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")]
    stages: Annotated[list[str], Field(min_length=1)]
    calls: Annotated[int, Field(ge=1)] = 1
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


class CachePlan(BaseModel, extra="forbid", frozen=True):
    """The `cache` section of a pipeline file: for how many seconds an entry counts; 0 for none."""

    calls: _Seconds = 86_400
    answers: _Seconds = 0
