"""What keys are used for: how much in a minute, when last, and the trail of what was changed with them."""

import json
import math
import time
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from haystack import logging

from shiguan.resources import utc_time, write_json
from shiguan.serving import metrics
from shiguan.serving.error_replies import ApiError
from shiguan.serving.settings import ServingSettings

logger = logging.getLogger(__name__)

_AUDIT_BYTES = 10 * 1024 * 1024
_AUDIT_FILES = 10
_LOCK_SECONDS = 10


class KeyUse:
    """
    Counts what each key asks for and turns it away with 429 for as long as it has asked for more than its share.

    A share fills up evenly: of 60 requests a minute one comes back each second. Tokens are known when an answer is
    finished, so that a key can overdraw them once and then waits. A limit of 0 is none. All of it is of one process.
    """

    def __init__(self, settings: ServingSettings) -> None:
        self.path = used_path(settings.keys_path)
        self._limits = (settings.requests_per_minute, settings.tokens_per_minute)
        self._left: dict[str, tuple[float, float, float]] = {}
        self._last: dict[str, float] = {}

    def take(self, key_id: str) -> None:
        now = time.monotonic()
        self._last[key_id] = time.time()
        left = self._of(key_id, now)
        for limit, rest, needed, unit in zip(self._limits, left, (1, 0), ("requests", "tokens"), strict=True):
            if limit and rest < needed:
                metrics.REJECTED.labels("key_limit").inc()
                seconds = math.ceil((needed - rest) * 60 / limit)
                raise ApiError(
                    "too_many_requests",
                    message=f"This key has used its {limit:,} {unit} of a minute.",
                    next_step=f"Try again in {seconds} s.",
                    headers={"Retry-After": str(seconds)},
                )
        self.spend(key_id, requests=1)

    def spend(self, key_id: str, *, requests: int = 0, tokens: int = 0) -> None:
        if any(self._limits):
            now = time.monotonic()
            asked, written = self._of(key_id, now)
            self._left[key_id] = (asked - requests, written - tokens, now)

    def _of(self, key_id: str, now: float) -> tuple[float, float]:
        first, second = self._limits
        asked, written, then = self._left.get(key_id, (first, second, now))
        minutes = (now - then) / 60
        return min(first, asked + first * minutes), min(second, written + second * minutes)

    def save(self) -> None:
        """Write down when the keys were last used; what another process wrote later stays."""
        if not self._last:
            return
        used, self._last = self._last, {}
        told = {key_id: utc_time(then) for key_id, then in used.items()}
        before = last_used(self.path)
        try:
            newest = {key_id: max(then, before.get(key_id, "")) for key_id, then in told.items()}
            write_json(self.path, {**before, **newest}, mode=0o600)
        except OSError as error:
            logger.warning("When keys were last used cannot be written down: {problem}.", problem=error.strerror)


def used_path(keys_path: Path) -> Path:
    """Say where the server writes when keys were last used: beside their file."""
    return keys_path.with_name(f"{keys_path.stem}-used.json")


def last_used(path: Path) -> dict[str, str]:
    try:
        told = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return {k: v for k, v in told.items() if isinstance(v, str)} if isinstance(told, dict) else {}


def audit(folder: Path, action: str, **told: Any) -> None:
    """Add a line to the trail of changes; what cannot be written down is logged, and done all the same."""
    path = folder / "audit.jsonl"
    line = (json.dumps({"time": utc_time(), "action": action, **told}) + "\n").encode()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / "audit.lock", timeout=_LOCK_SECONDS):
            if path.exists() and path.stat().st_size + len(line) > _AUDIT_BYTES:
                for number in range(_AUDIT_FILES - 1, 0, -1):
                    older = path if number == 1 else folder / f"audit.{number - 1}.jsonl"
                    if older.exists():
                        older.replace(folder / f"audit.{number}.jsonl")
            path.touch(mode=0o600)
            with path.open("ab") as file:
                file.write(line)
    except (OSError, Timeout) as error:
        logger.error("The audit trail lacks a line ({action}): {kind}", action=action, kind=type(error).__name__)
