"""A cache of helpers' replies: a folder for each tenant, and entries that expire."""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from haystack import logging
from haystack.dataclasses import ChatMessage

from shiguan.llm.model_settings import CachePlan
from shiguan.llm.prompt_rendering import messages_sha256
from shiguan.llm.run import current_run
from shiguan.resources import FOR_DELETING, check_free_space, write_whole

logger = logging.getLogger(__name__)

Kind = Literal["calls", "vectors"]
"""What is cached: replies of helpers on disk, vectors of questions in memory."""

_MOST_ENTRIES = 1_000
_LARGEST = 4 * 1024 * 1024
_reported: set[Path] = set()


class TenantCache:
    """
    The cache of one tenant, for one question.

    A folder that cannot be read or written costs a warning, once in a process, and never the answer.
    """

    def __init__(self, data_dir: Path, tenant_id: str, plan: CachePlan | None = None) -> None:
        self.tenant_id = tenant_id
        self.plan = plan or CachePlan()
        self.hits: Counter[Kind] = Counter()
        self.warnings: list[str] = []
        self._folder = data_dir / "cache" / hashlib.sha256(tenant_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def key(self, *parts: Any) -> str:
        """Make the name of an entry from everything that the value depends on."""
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()

    def get(self, key: str) -> Any:
        """Read an entry; None if there is none, or it has expired."""
        path = self._folder / key
        with self._going_on():
            if path.is_file():
                with path.open("rb") as file:
                    entry = json.loads(file.read(_LARGEST))
                return entry["value"] if entry["until"] > time.time() else None
        return None

    def keep(self, key: str, value: Any) -> None:
        """Write an entry, and remove the oldest beyond the limit."""
        with self._going_on():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            entry = {"until": time.time() + self.plan.calls, "value": value}
            check_free_space(self._folder, FOR_DELETING)
            write_whole(self._folder / key, json.dumps(entry).encode(), mode=0o600)
            paths = list(self._folder.iterdir())
            if len(paths) > _MOST_ENTRIES:
                with suppress(FileNotFoundError):  # another question removes entries at the same time
                    paths.sort(key=lambda path: path.stat().st_mtime_ns)
                    for path in paths[:-_MOST_ENTRIES]:
                        path.unlink()

    def clear(self) -> None:
        """Delete all entries, so that nothing a tenant deletes lives on here."""
        with self._going_on():
            for path in self._folder.iterdir() if self._folder.is_dir() else ():
                path.unlink(missing_ok=True)

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        try:
            yield
        # Whatever is wrong, the question can be answered without the cache.
        except Exception as error:
            if self._folder in _reported:
                return
            _reported.add(self._folder)
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            self.warnings.append(
                f"The cache in {self._folder.parent} could not be used ({' '.join(why.split())[:200]}); answers "
                "are made without it. Free some space there, or delete the folder."
            )
            logger.warning("{warning}", warning=self.warnings[-1])


class KeptReply:
    """The entry of one helper's call in the cache of the current question, if it has one."""

    def __init__(self, chat_generator: Any, messages: Sequence[ChatMessage], settings: dict[str, Any] | None) -> None:
        self._run, self.key = current_run(), ""
        self._began = time.perf_counter()
        cache, identity = self._run.cache if self._run else None, getattr(chat_generator, "identity", None)
        self._cache = cache if cache is not None and cache.plan.calls else None
        # Only a generator with an identity can be recognised the next time.
        about: dict[str, Any] = identity() if callable(identity) and self._cache is not None else {}
        if self._cache is not None and about:
            marks = messages[-1].meta if messages else {}
            self.key = self._cache.key("call", about, settings, messages_sha256(messages))
            self._about = {"role": "helper", "name": about["name"]}
            self._about |= {name: marks.get(name) for name in ("prompt", "prompt_hash")}

    def texts(self) -> tuple[str, ...] | None:
        """Return the cached reply, recorded as a call that costs nothing; None if there is none."""
        entry = self._cache.get(self.key) if self._cache is not None else None
        texts = entry.get("texts") if isinstance(entry, dict) else None
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
            return None
        if self._cache is not None and self._run is not None:
            self._cache.hits["calls"] += 1
            about = {**self._about, "model": str(entry and entry.get("model")), "attempts": 0, "cached": True}
            self._run.note_call(self._began, about, {}, 0.0)
        return tuple(texts)

    def keep(self, replies: Sequence[ChatMessage]) -> None:
        """Cache replies that are complete and come from the model that was asked first."""
        whole = all(
            reply.text
            and not reply.tool_calls
            and reply.meta.get("finish_reason") == "stop"
            and not reply.meta.get("stood_in")
            for reply in replies
        )
        if self._cache is not None and self.key and replies and whole:
            entry = {"texts": [reply.text for reply in replies], "model": replies[0].meta.get("model")}
            self._cache.keep(self.key, entry)
