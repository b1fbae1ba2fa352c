"""What is known of the request that is being served, for code without a request object."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a request."""

    tenant_id: str
    role: str
    key_id: str


@dataclass(frozen=True)
class CurrentRequest:
    """What is known of the request that is being served: its id, its caller, and when it is given up (loop time)."""

    id: str | None = None
    principal: Principal | None = None
    deadline: float | None = None


_NO_REQUEST = CurrentRequest()
_request: ContextVar[CurrentRequest] = ContextVar("shiguan_request", default=_NO_REQUEST)


def current_request() -> CurrentRequest:
    """Return what is known here of the current request, for code without a request object."""
    return _request.get()


@contextmanager
def in_request(**known: Any) -> Iterator[None]:
    """Add to what is known of the current request, for the code inside the block."""
    token = _request.set(replace(_request.get(), **known))
    try:
        yield
    finally:
        _request.reset(token)
