"""The API keys: made, listed and revoked in a file that holds no key, only what recognises one."""

import contextlib
import hashlib
import hmac
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict

from shiguan.errors import ConfigurationError, RefusedError
from shiguan.resources import utc_time, write_json

ROLES = ("read", "write", "metrics")
"""`read` asks and lists, `write` also uploads and deletes, `metrics` reads /metrics and nothing else."""

NO_TENANT = "*"
"""Stands for the tenant of a key that opens no library."""

_PREFIX = "sg_"
_SHOWN = 7
_ID_LENGTH = 12
_HASH_LENGTH = 64
_LONGEST_NAME = 100
_LOCK_SECONDS = 10


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """
    A key is 256 random bits, which nobody can guess or try out, so one round of SHA-256 is enough to keep it: the slow
    hashes for passwords protect what people choose.
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
    Every change replaces the file whole under a lock, so that neither a crash nor two people at once can spoil it; only
    its owner can read it.
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
        """Revoke a key; a running server knows at its next request."""
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
        role=_checked_role(role),
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
        tenant, role, digest = parts
        records.append(
            _checked(KeyRecord(id=digest.lower()[:_ID_LENGTH], hash=digest.lower(), tenant=tenant, role=role))
        )
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


def _checked_role(role: str) -> str:
    if role not in ROLES:
        raise RefusedError(f"`{role}` is no role. Roles are {', '.join(ROLES)}.")
    return role


def _checked_name(name: str) -> str:
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise RefusedError(f"The name of a key has at most {_LONGEST_NAME} printable characters. Shorten it.")
    return name


def _checked(record: KeyRecord) -> KeyRecord:
    try:
        _checked_role(record.role)
        if record.role != "metrics":
            checked_tenant(record.tenant)
        if len(record.hash) != _HASH_LENGTH or set(record.hash) - set("0123456789abcdef"):
            raise RefusedError("its hash is no SHA-256 in hexadecimal.")
        if record.id != record.hash[:_ID_LENGTH]:
            raise RefusedError("its id is not the beginning of its hash.")
    except RefusedError as error:
        raise ConfigurationError(f"An API key is malformed: {error} Make it again with `shiguan keys add`.") from error
    return record


def shown(record: KeyRecord) -> dict[str, Any]:
    return {name: value for name, value in asdict(record).items() if name != "hash"}
