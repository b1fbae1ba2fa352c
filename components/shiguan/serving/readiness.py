"""Whether the server can answer, part by part."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from haystack import logging

logger = logging.getLogger(__name__)

_CHECK_SECONDS = 3.0
_FRESH_SECONDS = 1.0

Check = Callable[[], Any]
"""A plain function that raises when its part cannot work."""


class Readiness:
    """
    The parts that must work before questions can be answered, and a check for each.

    A check runs in a thread with a time limit. Its result counts for a second, so that many probes at once cost one
    look. A part fails with a word that says which it is and nothing of why: that stands in the log.
    """

    def __init__(self) -> None:
        """Begin with nothing ready."""
        self.stopping = False
        self._checks: dict[str, Check] = {}
        self._results: dict[str, str] = {}
        self._looked = float("-inf")
        self._looking: asyncio.Task[None] | None = None

    def add(self, part: str, check: Check) -> None:
        """Name a part."""
        self._checks[part] = check

    async def parts(self) -> dict[str, str]:
        """Look at every part."""
        if time.monotonic() - self._looked > _FRESH_SECONDS:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            # One probe that is given up must not take the look away from the others.
            await asyncio.shield(self._looking)
        return dict(self._results)

    async def ready(self) -> tuple[bool, dict[str, str]]:
        """Decide."""
        parts = await self.parts()
        return bool(parts) and not self.stopping and all(state == "ok" for state in parts.values()), parts

    async def _look(self) -> None:
        states = await asyncio.gather(*(self._state(part, check) for part, check in self._checks.items()))
        self._results = dict(zip(self._checks, states, strict=True))
        self._looked = time.monotonic()

    async def _state(self, part: str, check: Check) -> str:
        try:
            await asyncio.wait_for(asyncio.to_thread(check), _CHECK_SECONDS)
        except TimeoutError:
            logger.warning("The part {part} did not answer in time.", part=part)
            return "slow"
        except Exception as error:
            logger.warning("The part {part} is not ready: {kind}.", part=part, kind=type(error).__name__)
            return "failed"
        return "ok"
