"""How many requests are in the server at once, of all and of each tenant."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator

from shiguan.serving import metrics
from shiguan.serving.error_replies import ApiError
from shiguan.serving.settings import ServingSettings

_RETRY_AFTER = {"Retry-After": "1"}


class Admission:
    """
    Counts requests, turns away at once what would only wait, and ends all of them when the server shuts down.

    Of at most `max_in_flight` in the server `max_running` run, and the others wait in their order; a tenant may have
    `max_per_tenant`. All of it happens on the event loop, so plain numbers are enough.
    """

    def __init__(self, settings: ServingSettings) -> None:
        self.max_in_flight = settings.max_in_flight
        self.max_per_tenant = settings.max_per_tenant
        self.in_flight = 0
        self.stopping = False
        self._ends: set[Callable[[str], None]] = set()
        self._of_tenant: Counter[str] = Counter()
        self._turns = asyncio.Semaphore(settings.max_running)

    def stop(self) -> None:
        self.stopping = True
        for end in list(self._ends):
            end("shutdown")

    @contextlib.contextmanager
    def stoppable(self, end: Callable[[str], None]) -> Iterator[None]:
        """Be ended by `stop`."""
        self._ends.add(end)
        try:
            yield
        finally:
            self._ends.discard(end)

    @contextlib.contextmanager
    def admitted(self, tenant_id: str, *, limited: bool = True) -> Iterator[None]:
        if self.stopping:
            metrics.REJECTED.labels("shutting_down").inc()
            raise ApiError("shutting_down", headers={"Retry-After": "5", "Connection": "close"})
        if self.in_flight >= self.max_in_flight:
            metrics.REJECTED.labels("overloaded").inc()
            raise ApiError(
                "overloaded", message=f"The server has {self.in_flight} requests at once.", headers=_RETRY_AFTER
            )
        if limited and self._of_tenant[tenant_id] >= self.max_per_tenant:
            metrics.REJECTED.labels("tenant_limit").inc()
            raise ApiError(
                "too_many_requests",
                message=f"This tenant has {self._of_tenant[tenant_id]} requests at once, its limit.",
                headers=_RETRY_AFTER,
            )
        self.in_flight += 1
        self._of_tenant[tenant_id] += 1
        try:
            with metrics.IN_FLIGHT.track_inprogress():
                yield
        finally:
            self.in_flight -= 1
            self._of_tenant[tenant_id] -= 1
            if not self._of_tenant[tenant_id]:
                del self._of_tenant[tenant_id]

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        with metrics.WAITING.track_inprogress():
            await self._turns.acquire()
        try:
            yield
        finally:
            self._turns.release()
