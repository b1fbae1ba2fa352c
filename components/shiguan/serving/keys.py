"""The API keys: the file of their hashes, and the audit trail."""

import contextlib
import hmac
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from filelock import FileLock, Timeout
from haystack import logging
from pydantic import BaseModel, Field, model_validator

from shiguan.errors import ConfigurationError, RefusedError
from shiguan.resources import text_hash, utc_time, write_json

logger = logging.getLogger(__name__)

Role = Literal["read", "write", "metrics"]
"""`read` asks and lists, `write` also uploads and deletes, `metrics` reads /metrics and nothing else."""

NO_TENANT = "*"
"""The tenant of a key that opens no library."""

_PREFIX = "sg_"
_SHOWN = 7
_ID_LENGTH = 12
_LONGEST_NAME = 100
_LOCK_SECONDS = 10


class KeyRecord(BaseModel, frozen=True, extra="forbid"):
    """What is kept of a key; its 256 random bits need but one SHA-256: slow hashes are for what people choose."""

    id: str
    hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    tenant: str
    role: Role
    name: str = ""
    prefix: str = ""
    created: str = ""
    revoked: str | None = None
    expires: str | None = None

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        if self.id != self.hash[:_ID_LENGTH] or (self.role != "metrics" and not is_tenant(self.tenant)):
            raise ValueError("the id is not the beginning of the hash, or the tenant is not a name")
        return self

    def fits(self, key: str) -> bool:
        return hmac.compare_digest(text_hash(key), self.hash) and self.revoked is None and not self.expired

    @property
    def expired(self) -> bool:
        return self.expires is not None and self.expires <= utc_time()

    def shown(self) -> dict[str, Any]:
        return self.model_dump(exclude={"hash"})


class _Content(BaseModel):
    version: int = 1
    keys: list[KeyRecord]


class KeyFile:
    """A change replaces the whole file under a lock, so that neither a crash nor two changes at once can damage it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[KeyRecord]:
        try:
            return _Content.model_validate_json(self.path.read_bytes(), strict=True).keys
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"The file of API keys {self.path} cannot be read ({type(error).__name__}). Restore it from a backup, "
                "or move it away and make new keys with `shiguan keys add`."
            ) from error

    def add(self, tenant: str, role: Role, name: str = "", *, days: int | None = None) -> tuple[str, KeyRecord]:
        """Make a key, and keep all of it but the key itself, which is returned."""
        if role == "metrics":
            tenant = NO_TENANT
        elif not is_tenant(tenant := tenant.strip()):
            raise RefusedError(
                f"The tenant must have 1 to {_LONGEST_NAME} printable characters without `,`, `:` and `*`. "
                "Name it with `--tenant NAME`."
            )
        if len(name) > _LONGEST_NAME or not name.isprintable():
            raise RefusedError(f"The name of a key has at most {_LONGEST_NAME} printable characters. Shorten it.")
        key = _PREFIX + secrets.token_urlsafe(32)
        record = KeyRecord(
            id=text_hash(key)[:_ID_LENGTH],
            hash=text_hash(key),
            tenant=tenant,
            role=role,
            name=name,
            prefix=key[:_SHOWN],
            created=utc_time(),
            expires=None if days is None else utc_time(days=days),
        )
        with self._locked():
            self._write([*self.read(), record])
        return key, record

    def revoke(self, key_id: str) -> KeyRecord:
        """Revoke a key; a running server refuses it from its next request on."""
        with self._locked():
            records = self.read()
            for position, record in enumerate(records):
                if record.id == key_id and record.revoked is None:
                    records[position] = record.model_copy(update={"revoked": utc_time()})
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
        write_json(self.path, _Content(keys=records).model_dump(), mode=0o600)


def is_tenant(name: str) -> bool:
    return 0 < len(name.strip()) <= _LONGEST_NAME and name.isprintable() and not set(name) & set(",:*")


_AUDIT_BYTES = 10 * 1024 * 1024
_AUDIT_FILES = 10


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
