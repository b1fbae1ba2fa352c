"""The API keys: the file of their hashes, their use and limits, and the audit trail."""

import contextlib
import hashlib
import hmac
import json
import math
import secrets
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from filelock import FileLock, Timeout
from haystack import logging
from pydantic import BaseModel, ConfigDict

from shiguan.errors import ConfigurationError, RefusedError
from shiguan.resources import utc_time, write_json
from shiguan.serving import telemetry
from shiguan.serving.error_replies import ApiError
from shiguan.serving.settings import ServingSettings

logger = logging.getLogger(__name__)

ROLES = ("read", "write", "metrics")
"""`read` asks and lists, `write` also uploads and deletes, `metrics` reads /metrics and nothing else."""

NO_TENANT = "*"
"""The tenant of a key that opens no library."""

_PREFIX = "sg_"
_SHOWN = 7
_ID_LENGTH = 12
_HASH_LENGTH = 64
_LONGEST_NAME = 100
_LOCK_SECONDS = 10


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """
    A key is 256 random bits, which cannot be guessed, so one round of SHA-256 is enough: slow hashes are for passwords
    that people choose.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    id: str
    hash: str
    tenant: str
    role: str
    name: str = ""
    prefix: str = ""
    created: str = ""
    revoked: str | None = None
    expires: str | None = None

    def fits(self, key: str) -> bool:
        return hmac.compare_digest(hash_of(key), self.hash) and self.revoked is None and not self.expired

    @property
    def expired(self) -> bool:
        return self.expires is not None and self.expires <= utc_time()


class _Content(BaseModel):
    version: int = 1
    keys: list[KeyRecord]


class KeyFile:
    """
    Every change replaces the whole file under a lock, so that neither a crash nor two changes at once can damage it;
    only its owner can read it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[KeyRecord]:
        try:
            records = _Content.model_validate_json(self.path.read_bytes(), strict=True).keys
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"The file of API keys {self.path} cannot be read ({type(error).__name__}). Restore it from a backup, "
                "or move it away and make new keys with `shiguan keys add`."
            ) from error
        return [_checked(record) for record in records]

    def add(self, tenant: str, role: str, name: str = "", *, days: int | None = None) -> tuple[str, KeyRecord]:
        key, record = new_key(tenant, role, name, days=days)
        with self._locked():
            self._write([*self.read(), record])
        return key, record

    def revoke(self, key_id: str) -> KeyRecord:
        """Revoke a key; a running server refuses it from its next request on."""
        with self._locked():
            records = self.read()
            for position, record in enumerate(records):
                if record.id == key_id and record.revoked is None:
                    records[position] = replace(record, revoked=utc_time())
                    self._write(records)
                    return records[position]
        raise RefusedError(f"There is no valid key `{key_id}` in {self.path}. `shiguan keys list` shows the ids.")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.path.with_name(f"{self.path.name}.lock"), timeout=_LOCK_SECONDS):
                yield
        except Timeout:
            raise ConfigurationError(
                f"Another program has held {self.path}.lock for {_LOCK_SECONDS} seconds. End it and try again."
            ) from None
        except OSError as error:
            raise ConfigurationError(
                f"The file of API keys {self.path} cannot be written: {error.strerror}. Make its folder writable, or "
                "name another file in SHIGUAN_KEYS_FILE."
            ) from error

    def _write(self, records: list[KeyRecord]) -> None:
        write_json(self.path, {"version": 1, "keys": [asdict(record) for record in records]}, mode=0o600)


def new_key(tenant: str, role: str, name: str = "", *, days: int | None = None) -> tuple[str, KeyRecord]:
    key = _PREFIX + secrets.token_urlsafe(32)
    digest = hash_of(key)
    record = KeyRecord(
        id=digest[:_ID_LENGTH],
        hash=digest,
        tenant=NO_TENANT if role == "metrics" else checked_tenant(tenant),
        role=role,
        name=_checked_name(name),
        prefix=key[:_SHOWN],
        created=utc_time(),
        expires=None if days is None else utc_time(days=days),
    )
    return key, record


def keys_of_environment(text: str) -> list[KeyRecord]:
    records = []
    for number, entry in enumerate((part for part in text.split(",") if part.strip()), start=1):
        parts = entry.strip().split(":")
        if len(parts) != 3:
            raise ConfigurationError(
                f"SHIGUAN_API_KEYS, entry {number}: expected TENANT:ROLE:SHA256, got {len(parts)} parts. "
                "`shiguan keys add --print-hash` prints such an entry."
            )
        tenant, role, digest = parts[0], parts[1], parts[2].lower()
        records.append(_checked(KeyRecord(id=digest[:_ID_LENGTH], hash=digest, tenant=tenant, role=role)))
    return records


def hash_of(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def checked_tenant(tenant: str) -> str:
    tenant = tenant.strip()
    if not 0 < len(tenant) <= _LONGEST_NAME or not tenant.isprintable() or set(tenant) & set(",:*"):
        raise RefusedError(
            f"The tenant must have 1 to {_LONGEST_NAME} printable characters without `,`, `:` and `*`. "
            "Name it with `--tenant NAME`."
        )
    return tenant


def _checked_name(name: str) -> str:
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise RefusedError(f"The name of a key has at most {_LONGEST_NAME} printable characters. Shorten it.")
    return name


def _checked(record: KeyRecord) -> KeyRecord:
    try:
        if record.role not in ROLES:
            raise RefusedError(f"`{record.role}` is not a role. Roles are {', '.join(ROLES)}.")
        if record.role != "metrics":
            checked_tenant(record.tenant)
        if len(record.hash) != _HASH_LENGTH or set(record.hash) - set("0123456789abcdef"):
            raise RefusedError("its hash is not a SHA-256 in hexadecimal.")
        if record.id != record.hash[:_ID_LENGTH]:
            raise RefusedError("its id is not the beginning of its hash.")
    except RefusedError as error:
        raise ConfigurationError(f"An API key is malformed: {error} Make it again with `shiguan keys add`.") from error
    return record


def shown(record: KeyRecord) -> dict[str, Any]:
    return {name: value for name, value in asdict(record).items() if name != "hash"}


_AUDIT_BYTES = 10 * 1024 * 1024
_AUDIT_FILES = 10


class KeyUse:
    """
    Counts the requests and tokens of each key, and refuses with 429 above the limits.

    A limit refills evenly: of 60 requests a minute one comes back each second. Tokens are known when an answer is
    finished, so a key can overdraw them once and then waits. A limit of 0 is none. Each process counts for itself.
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
                telemetry.REJECTED.labels("key_limit").inc()
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
        """Save when the keys were last used; a later time from another process stays."""
        if not self._last:
            return
        used, self._last = self._last, {}
        times = {key_id: utc_time(then) for key_id, then in used.items()}
        before = last_used(self.path)
        try:
            newest = {key_id: max(then, before.get(key_id, "")) for key_id, then in times.items()}
            write_json(self.path, {**before, **newest}, mode=0o600)
        except OSError as error:
            logger.warning("When keys were last used cannot be written down: {problem}.", problem=error.strerror)


def used_path(keys_path: Path) -> Path:
    """Name the file of when keys were last used, beside that of the keys."""
    return keys_path.with_name(f"{keys_path.stem}-used.json")


def last_used(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}


def audit(folder: Path, action: str, **details: Any) -> None:
    """Add a line to the audit trail; if it cannot be written this is logged, and the change is made all the same."""
    path = folder / "audit.jsonl"
    line = (json.dumps({"time": utc_time(), "action": action, **details}) + "\n").encode()
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
