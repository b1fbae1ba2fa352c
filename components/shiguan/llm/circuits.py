"""Remembers which models fail, so that nobody waits for them: a circuit for each, shared by the whole process."""

import time
from threading import Lock

from shiguan.llm.model_roles import NamedModel

FAILURES = 3
"""So many failed requests in a row open a circuit."""
REST = 30.0
"""Seconds that a model with an open circuit is left alone, before one call tries it again."""

clock = time.monotonic


class Circuit:
    """
    Closed while a model works; open once it has failed three times in a row.

    30 seconds later one call tries it again, alone: it closes the circuit, or opens it for as long again.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.begun = 0
        self._failures = 0
        self._opened: float | None = None
        self._trying = False
        self._lock = Lock()

    @property
    def is_open(self) -> bool:
        """Whether a call should go elsewhere, as things stand."""
        return self._opened is not None and (self._trying or clock() - self._opened < REST)

    @property
    def opened(self) -> float:
        """When it was opened; 0 for a closed one."""
        return self._opened or 0.0

    def enter(self, *, whatever: bool = False) -> bool:
        """Let a call in unless the circuit is open; `whatever` lets it in all the same. Whoever is in must `leave`."""
        with self._lock:
            if self.is_open and not whatever:
                return False
            self._trying = self._opened is not None
            self.calls += 1
            self.begun += 1
            return True

    def leave(self) -> None:
        with self._lock:
            self.calls -= 1
            self._trying = False

    def worked(self) -> None:
        """Note a request that was answered; a refusal on its merits is an answer."""
        with self._lock:
            self._failures, self._opened = 0, None

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            if self._trying or self._failures >= FAILURES:
                self._opened = clock()


_circuits: dict[tuple[str | None, str, str | None], Circuit] = {}
_lock = Lock()


def circuit_of(model: NamedModel) -> Circuit:
    """Give the circuit of a model: one, however many generators and files name it."""
    with _lock:
        return _circuits.setdefault((model.address, model.model_name, model.key_variable), Circuit())
