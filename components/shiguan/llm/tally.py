"""
Counts the calls to language models of one run, and what they used.

A call is counted where its replies come out: of a generator of ours, of a call by a stage (`shiguan.llm.calls`), or of
a stage of the pipeline (`shiguan.llm.stage_timer`), whichever stands innermost. So any generator in a YAML file counts.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass
class LlmTally:
    """How many calls were answered, and the tokens of all of them by kind (`prompt_tokens`, `total_tokens`...)."""

    calls: int = 0
    usage: dict[str, int] = field(default_factory=dict)


class ReplyCounter:
    """A place where replies come out; what was counted inside of it is not counted again."""

    def __init__(self, outer: "ReplyCounter | None") -> None:
        self._outer = outer
        self._counted = False

    def count(self, replies: Sequence[Any]) -> None:
        """Count one call that gave these replies; none, or replies that used no tokens at all, are no call."""
        meta = getattr(replies[0], "meta", None) if replies else None
        usage = meta.get("usage") if isinstance(meta, dict) else None
        usage = usage if isinstance(usage, dict) else {}
        if self._counted or not replies or usage.get("total_tokens") == 0:
            return
        place: ReplyCounter | None = self
        while place is not None:
            place._counted = True
            place = place._outer
        tally = _tally.get()
        if tally is not None:
            tally.calls += 1
            for name, value in usage.items():
                if name.endswith("_tokens") and isinstance(value, int):
                    tally.usage[name] = tally.usage.get(name, 0) + value


_tally: ContextVar[LlmTally | None] = ContextVar("shiguan_llm_tally", default=None)
_place: ContextVar[ReplyCounter | None] = ContextVar("shiguan_replies_come_out", default=None)


@contextmanager
def tallied_llm_calls() -> Iterator[LlmTally]:
    """Count the calls that are made inside the block, in whatever thread or task it starts; runs do not mix."""
    tally = LlmTally()
    token = _tally.set(tally)
    try:
        yield tally
    finally:
        _tally.reset(token)


@contextmanager
def counting_replies() -> Iterator[ReplyCounter]:
    """Mark a place where replies come out."""
    counter = ReplyCounter(_place.get())
    token = _place.set(counter)
    try:
        yield counter
    finally:
        _place.reset(token)
