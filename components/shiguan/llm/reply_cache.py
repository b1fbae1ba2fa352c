"""Keeps a model's replies, so that the same prompt is not sent again."""

import json
import os
import sqlite3
import threading
import time
import weakref
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from haystack import component, logging
from haystack.components.generators.chat.types import ChatGenerator
from haystack.core.serialization import component_to_dict
from haystack.dataclasses import ChatMessage

from shiguan.llm.calls import blocking, is_available, run_nested_async, warm_up_generator
from shiguan.llm.run import current_run
from shiguan.resources import text_hash
from shiguan.serialization import Serializable

logger = logging.getLogger(__name__)

_TABLE = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, made REAL, replies TEXT)"
_OLDEST = "DELETE FROM replies WHERE made < ? OR key IN (SELECT key FROM replies ORDER BY made DESC LIMIT -1 OFFSET ?)"


@component
class ReplyCache(Serializable):
    """
    Answers a prompt that a chat generator has answered before with that reply, without a call.

    It stands around the generator of a helping stage (rewording, a hypothetical passage); for answers it would repeat
    what was written from other passages. Only the same messages to the same generator with the same settings, asked for
    the same tenant, are the same prompt. Replies that were cut, and calls with tools or a stream, are not kept. A reply
    from the cache used no tokens and is not counted as a call.

    What is kept is text of questions: in memory, or in a file that only its owner can read, until `max_age` has passed.

    Example in YAML:
    ```yaml
    chat_generator:
      type: shiguan.llm.reply_cache.ReplyCache
      init_parameters: {chat_generator: *helper, max_age: 3600, path: .data}
    ```
    """

    def __init__(
        self, chat_generator: ChatGenerator, *, size: int = 1000, max_age: float = 86_400.0, path: str | None = None
    ) -> None:
        """
        Set what is kept, where and how long.

        :param chat_generator: Answers what is not kept.
        :param size: The most replies that are kept; the oldest go first.
        :param max_age: Seconds after which a reply is no longer used.
        :param path: A folder for `replies.sqlite`, where they survive the process and are shared with others; None to
            keep them in memory.
        :raises ValueError: If the size or the age is not positive.
        """
        if size < 1 or max_age <= 0:
            raise ValueError(f"`size` and `max_age` must be positive, got {size} and {max_age}.")
        self.chat_generator = chat_generator
        self.size = size
        self.max_age = max_age
        self.path = path
        self._lock = threading.Lock()
        self._memory: sqlite3.Connection | None = None

    def warm_up(self) -> None:
        """Prepare the nested generator; a second call does nothing."""
        warm_up_generator(self.chat_generator)

    def available(self) -> bool:
        """Return whether the nested generator can be called."""
        return is_available(self.chat_generator)

    @component.output_types(replies=list[ChatMessage], warnings=list[str])
    async def run_async(
        self,
        messages: list[ChatMessage],
        streaming_callback: Any = None,
        generation_kwargs: dict[str, Any] | None = None,
        *,
        tools: Any = None,
    ) -> dict[str, Any]:
        """
        Answer a prompt.

        :param messages: The prompt.
        :param streaming_callback: Passed on; nothing is then kept.
        :param generation_kwargs: For this call, over those of the generator.
        :param tools: Passed on; nothing is then kept.
        :returns: `replies`, with `meta.cached` if they were kept, and `warnings` of the generator.
        """
        more = {"streaming_callback": streaming_callback, "generation_kwargs": generation_kwargs, "tools": tools}
        settings = {name: value for name, value in more.items() if value}
        key = None if streaming_callback or tools else self._key(messages, generation_kwargs)
        if key is not None and (kept := self._read(key)) is not None:
            return {"replies": kept, "warnings": []}
        outputs = await run_nested_async(self.chat_generator, messages=messages, **settings)
        replies: list[ChatMessage] = outputs.get("replies") or []
        whole = all(reply.text and reply.meta.get("finish_reason") in (None, "stop") for reply in replies)
        if key is not None and replies and whole:
            self._write(key, replies)
        return {"warnings": [], **outputs}

    run = blocking(run_async)

    def _key(self, messages: list[ChatMessage], generation_kwargs: dict[str, Any] | None) -> str:
        run = current_run()
        parts = [
            run.tenant_id if run else None,
            component_to_dict(self.chat_generator, "chat_generator"),
            [{**message.to_dict(), "meta": message.meta.get("asked")} for message in messages],
            generation_kwargs,
            os.environ.get("OPENAI_MODEL"),
            os.environ.get("OPENAI_BASE_URL"),
        ]
        return text_hash(json.dumps(parts, sort_keys=True, default=str))

    def _read(self, key: str) -> list[ChatMessage] | None:
        since = time.time() - self.max_age
        found = self._ask("SELECT replies FROM replies WHERE key = ? AND made >= ?", (key, since))
        if not found:
            return None
        replies = [ChatMessage.from_dict(reply) for reply in json.loads(found[0][0])]
        unused = {"usage": {"total_tokens": 0}, "cached": True}
        return [replace(reply, _meta={**reply.meta, **unused}) for reply in replies]

    def _write(self, key: str, replies: list[ChatMessage]) -> None:
        kept = [replace(reply, _meta={"model": reply.meta.get("model")}).to_dict() for reply in replies]
        now = time.time()
        self._ask("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", (key, now, json.dumps(kept)))
        self._ask(_OLDEST, (now - self.max_age, self.size))

    def _ask(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Run a statement; without the file the question goes on as without a cache."""
        try:
            with self._lock:
                if self.path is None:
                    if self._memory is None:
                        self._memory = _opened(":memory:")
                        weakref.finalize(self, self._memory.close)
                    return self._memory.execute(statement, values).fetchall()
                with closing(_opened(_file(self.path))) as database:
                    return database.execute(statement, values).fetchall()
        except (sqlite3.Error, OSError) as error:
            logger.warning("The cache of replies was not used: {error}", error=str(error))
            return []


def _file(folder: str) -> Path:
    path = Path(folder).expanduser().resolve() / "replies.sqlite"
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    return path


def _opened(where: Path | str) -> sqlite3.Connection:
    database = sqlite3.connect(where, timeout=1.0, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA secure_delete = ON")
        database.execute(_TABLE)
    except BaseException:
        database.close()
        raise
    return database
