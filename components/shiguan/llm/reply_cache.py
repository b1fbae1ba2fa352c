"""Keeps what was answered for whoever asks the same again: a folder for each tenant, entries of JSON that age."""

import hashlib
import json
import logging as standard_logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal

from cachelib.file import FileSystemCache
from cachelib.serializers import FileSystemSerializer
from haystack import logging
from haystack.dataclasses import ChatMessage

from shiguan.llm.model_settings import CachePlan
from shiguan.llm.run_watch import counting_replies
from shiguan.resources import FOR_OPENING, check_free_space

logger = logging.getLogger(__name__)

Kind = Literal["calls", "vectors", "answers"]
"""What is kept: replies of helpers, vectors of questions, whole answers."""

_MOST_ENTRIES = 1_000
_LARGEST = 4 * 1024 * 1024
_told: set[Path] = set()


class _Json(FileSystemSerializer):
    """How entries are written: a file that somebody else has put there is data, and never code."""

    def dump(self, value: Any, f: IO[bytes], protocol: int = 0) -> None:  # noqa: ARG002
        f.write(json.dumps(value).encode())

    def load(self, f: BinaryIO) -> Any:
        return json.loads(f.read(_LARGEST))


class _Folder(FileSystemCache):
    serializer = _Json()

    def _run_safely(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        # The library's own tries for ten seconds to open a file that may not be read.
        return fn(*args, **kwargs)


class TenantCache:
    """
    What is kept for one tenant, while one question is asked.

    A folder that cannot be read or written costs a warning, once in a process, and never the answer.
    """

    def __init__(self, data_dir: Path, tenant_id: str, plan: CachePlan | None = None) -> None:
        self.tenant_id = tenant_id
        self.plan = plan or CachePlan()
        self.hits: Counter[Kind] = Counter()
        self.warnings: list[str] = []
        self._folder = data_dir / "cache" / hashlib.sha256(tenant_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self._asked: Counter[str] = Counter()

    def key(self, *parts: Any) -> str:
        """Name an entry by all that decides it; the same a second time in one question is another entry."""
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
        self._asked[digest] += 1
        return f"{digest}-{self._asked[digest]}"

    def get(self, key: str) -> Any:
        """Read an entry; None where there is none."""
        return self._trying(lambda folder: folder.get(key))

    def keep(self, kind: Literal["calls", "answers"], key: str, value: Any) -> None:
        """Write an entry."""

        def write(folder: _Folder) -> None:
            check_free_space(self._folder, FOR_OPENING)
            folder.set(key, value, getattr(self.plan, kind))

        self._trying(write, make=True)

    def clear(self) -> None:
        """Forget everything; what a tenant deletes shall not live on here."""
        self._trying(lambda folder: folder.clear())

    def _trying(self, work: Callable[[_Folder], Any], *, make: bool = False) -> Any:
        problems: list[BaseException] = []
        token = _problems.set(problems)
        try:
            if make:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return work(_opened(self._folder)) if self._folder.is_dir() else None
        # Whatever a damaged folder makes the library raise, the question can be answered without it.
        except Exception as error:
            problems.append(error)
        finally:
            _problems.reset(token)
            if problems and self._folder not in _told:
                _told.add(self._folder)
                why = getattr(problems[0], "strerror", None) or str(problems[0]) or type(problems[0]).__name__
                self.warnings.append(
                    f"The cache in {self._folder.parent} could not be used ({' '.join(why.split())[:200]}); answers "
                    "come without it. Make room there, or delete the folder."
                )
                logger.warning("{warning}", warning=self.warnings[-1])


@lru_cache(256)
def _opened(folder: Path) -> _Folder:
    return _Folder(str(folder), threshold=_MOST_ENTRIES, mode=0o600)


class _FromLibrary(standard_logging.Filter):
    """Takes what the library tells the root logger, with a traceback for each file, while it works for us."""

    def filter(self, record: standard_logging.LogRecord) -> bool:
        problems = _problems.get()
        if problems is not None:
            problems.append((record.exc_info and record.exc_info[1]) or OSError(record.getMessage()))
        return problems is None


_problems: ContextVar[list[BaseException] | None] = ContextVar("shiguan_cache_problems", default=None)
standard_logging.getLogger().addFilter(_FromLibrary())
_cache: ContextVar[TenantCache | None] = ContextVar("shiguan_cache", default=None)


def current_cache() -> TenantCache | None:
    """Give the cache of the question that this code works for; None outside a question of a known tenant."""
    return _cache.get()


@contextmanager
def caching(cache: TenantCache) -> Iterator[TenantCache]:
    """Let everything inside the block use a tenant's cache."""
    token = _cache.set(cache)
    try:
        yield cache
    finally:
        _cache.reset(token)


class KeptCall:
    """The place of one call of a model in the cache of the question at work, if it has one."""

    def __init__(self, *parts: Any, about: dict[str, Any]) -> None:
        self._cache = cache if (cache := current_cache()) is not None and cache.plan.calls else None
        self._key = self._cache.key("call", *parts) if self._cache else ""
        self._about = about

    def replies(self) -> list[ChatMessage] | None:
        """Give what was replied before, as a call that costs nothing; None if nothing was."""
        if self._cache is None:
            return None
        with counting_replies() as counter:
            entry = self._cache.get(self._key)
            texts = entry.get("texts") if isinstance(entry, dict) else None
            if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
                return None
            self._cache.hits["calls"] += 1
            model = str(entry.get("model"))
            counter.note({**self._about, "model": model, "attempts": 0, "cached": True}, {}, 0.0)
            meta = {"model": model, "finish_reason": "stop", "usage": {"total_tokens": 0}, "cached": True}
            return [ChatMessage.from_assistant(text, meta=meta) for text in texts]

    def keep(self, replies: Sequence[ChatMessage]) -> None:
        """Keep replies that came to their end."""
        whole = all(one.text and not one.tool_calls and one.meta.get("finish_reason") == "stop" for one in replies)
        if self._cache is not None and replies and whole:
            entry = {"texts": [reply.text for reply in replies], "model": replies[0].meta.get("model")}
            self._cache.keep("calls", self._key, entry)
