"""How many calls to language models one run made, and what they used."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass
class LlmTally:
    """
    The calls of one run.

    :param calls: How many calls were answered.
    :param usage: Tokens by kind (`prompt_tokens`, `completion_tokens`, `total_tokens`), added up over the calls.
    """

    calls: int = 0
    usage: dict[str, int] = field(default_factory=dict)


_current: ContextVar[LlmTally | None] = ContextVar("shiguan_llm_tally", default=None)


@contextmanager
def tallied_llm_calls() -> Iterator[LlmTally]:
    """
    Count the calls that are made inside the block, in whatever thread or task it starts.

    :yields: The tally, filled while the block runs; runs that overlap in one process do not mix.
    """
    tally = LlmTally()
    token = _current.set(tally)
    try:
        yield tally
    finally:
        _current.reset(token)


def note_llm_call(usage: Any) -> None:
    """
    Count a call that was answered; outside `tallied_llm_calls` nothing happens.

    :param usage: What the endpoint says it used, a mapping of counts; anything else counts as nothing.
    """
    tally = _current.get()
    if tally is None:
        return
    tally.calls += 1
    for name, value in usage.items() if isinstance(usage, dict) else ():
        if name.endswith("_tokens") and isinstance(value, int):
            tally.usage[name] = tally.usage.get(name, 0) + value
