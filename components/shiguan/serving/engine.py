"""What may be asked, and the modes of one deployment that answer it, loaded once for everybody who serves them."""

import asyncio
import os
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self

from haystack import Document
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from shiguan.claims.answer_check import AnswerCheck
from shiguan.engine.answer_stream import AnswerEvent
from shiguan.engine.conversations import ConversationKeeper
from shiguan.engine.library import Library
from shiguan.engine.loading import first_mode, list_modes
from shiguan.engine.mode_pipeline import MAX_QUESTION, bounded, checked_question
from shiguan.engine.options import AskOptions
from shiguan.engine.receipts import Receipt, read_receipt
from shiguan.engine.runner import Runner
from shiguan.engine.verification import OnItem
from shiguan.errors import RefusedError
from shiguan.llm.run import TimeLimits
from shiguan.resources import check_free_space, text_hash, write_json
from shiguan.serving import telemetry
from shiguan.serving.current_request import current_request
from shiguan.serving.error_replies import ApiError, counted, invalid_fields
from shiguan.serving.long_work import LongWork
from shiguan.serving.settings import ServingSettings

MOST_TURNS = 100
LONGEST_TURN = 20_000
_MOST_QUESTIONS = 50
_BATCH_AT_ONCE = 4


def _checked(query: Any) -> Any:
    """Refuse what is no question in the words of the command line; no text and half a character the type refuses."""
    try:
        query.encode()
        return checked_question(query)
    except (AttributeError, UnicodeEncodeError):
        return query
    except RefusedError as error:
        raise ValueError(str(error)) from error


Question = Annotated[str, Field(min_length=1, max_length=MAX_QUESTION), BeforeValidator(_checked)]


class HistoryMessage(BaseModel, extra="forbid"):
    """One message of a conversation, as the caller kept it."""

    role: Annotated[str, Field(max_length=20, description="`user` or `assistant`; other roles are left out.")]
    content: Annotated[str, Field(max_length=LONGEST_TURN)]


class AnswerRequest(AskOptions):
    """A question with what it may come with. What is left out is as the mode's YAML says."""

    query: Annotated[Question, Field(description="The question.")]
    mode: Annotated[str, Field(max_length=40, description="One of the deployment's modes.")] = "simple"
    history: Annotated[
        list[HistoryMessage] | None,
        Field(max_length=MOST_TURNS, description="The turns before, instead of what is kept."),
    ] = None
    include_sources: Annotated[bool, Field(description="Whether `documents` and `sources` list passages.")] = True
    include_citations: Annotated[bool, Field(description="Whether `citations` lists what each sentence rests on.")] = (
        True
    )
    tenant_id: Annotated[
        str | None, Field(max_length=200, description="May be left out: the key says it. Another one is refused.")
    ] = None

    def shown(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Leave out of an answer what is not wanted."""
        left_out: dict[str, Any] = {} if self.include_sources else {"documents": [], "sources": []}
        if not self.include_citations:
            left_out |= {"citations": [], "formatted_citations": ""}
        return {**answer, **left_out}

    def options(self) -> dict[str, Any]:
        """Return what the engine's runner takes beside the question."""
        turns = {"history": [turn.model_dump() for turn in self.history]} if self.history else {}
        return {**self.given(), **turns}


def read_request(given: Mapping[str, Any]) -> AnswerRequest:
    try:
        return AnswerRequest.model_validate(given)
    except ValidationError as error:
        raise invalid_fields(error) from error


class BatchRequest(BaseModel, extra="allow"):
    """Several questions at once, each checked by itself. Further fields, such as `mode`, hold for all `queries`."""

    requests: Annotated[
        list[dict[str, Any]] | None,
        Field(min_length=1, max_length=_MOST_QUESTIONS, description="Questions with their own fields."),
    ] = None
    queries: Annotated[
        list[str] | None, Field(min_length=1, max_length=_MOST_QUESTIONS, description="Or only their texts.")
    ] = None
    tenant_id: Annotated[str | None, Field(max_length=200)] = None

    @model_validator(mode="after")
    def _has_questions(self) -> Self:
        if (self.requests is None) == (self.queries is None):
            raise ValueError("Expected either `requests` or `queries`.")
        if self.requests is not None and self.model_extra:
            unknown = ", ".join(f"`{name}`" for name in self.model_extra)
            raise ValueError(f"{unknown} next to `requests`: put it into each of them.")
        return self

    @property
    def questions(self) -> list[dict[str, Any]]:
        """Return what each question comes with."""
        return self.requests or [{**(self.model_extra or {}), "query": query} for query in self.queries or ()]


RECEIPT_ID = re.compile(r"[0-9a-f]{64}")
_HOUR = 3600


class ReceiptFolder:
    """The receipts that a server keeps: a file each, whole or not there, in a folder that does not spell the tenant."""

    def __init__(self, settings: ServingSettings) -> None:
        self._path = settings.folder / "receipts"
        self._seconds = settings.receipt_days * 24 * _HOUR
        self._pruned = 0.0

    def keep(self, receipt: Receipt) -> None:
        """Write a receipt, and once an hour remove what is too old, unfinished files of a crash too."""
        path = self._file(receipt.tenant_id, receipt.id)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        check_free_space(path.parent)
        write_json(path, receipt.model_dump(mode="json"), mode=0o600, indent=None)
        if time.time() - self._pruned > _HOUR:
            self._pruned = time.time()
            for folder in filter(Path.is_dir, self._path.iterdir()):
                with os.scandir(folder) as entries:  # one by one: a list of a busy month would stay in memory
                    for entry in entries:
                        if not self._is_kept(entry):
                            with suppress(FileNotFoundError):
                                os.unlink(entry)  # noqa: PTH108  # on Python 3.12 a `Path` keeps its name for ever

    def find(self, tenant_id: str, receipt_id: str) -> Receipt | None:
        """Find a tenant's receipt; None also for one that is spoiled, or removed at this moment."""
        path = self._file(tenant_id, receipt_id)
        with suppress(RefusedError):
            return read_receipt(path) if RECEIPT_ID.fullmatch(receipt_id) and self._is_kept(path) else None
        return None

    def _file(self, tenant_id: str, receipt_id: str) -> Path:
        return self._path / text_hash(tenant_id)[:32] / f"{receipt_id}.json"

    def _is_kept(self, path: Path | os.DirEntry[str]) -> bool:
        with suppress(FileNotFoundError):  # another process removes them, too, and a file that is written is renamed
            return time.time() - path.stat().st_mtime < self._seconds
        return False


_WARM_UP_TENANT = "shiguan:warm-up"
_WARM_UP_TEXTS = ("Guo Ziyi retook Chang'an in 757.", "郭子儀收復長安。")
# The engine says a little before the gate does that the time is over: it knows which stage was at work.
_AHEAD = 0.15
_LEAST = 0.05


class Engine:
    """The library and all modes of a deployment; the tenant is an argument of every call, never read from a body."""

    def __init__(self, settings: ServingSettings, *, modes: Sequence[str] | None = None) -> None:
        self.settings = settings
        self.deployment = settings.deployment
        self.library = Library(self.deployment, data_dir=settings.data_dir)
        self.modes = tuple(list_modes()[self.deployment] if modes is None else modes)
        self.receipts = ReceiptFolder(settings)
        self.conversations: ConversationKeeper | None = None  # of the first mode that has one, for all
        self.long_work = LongWork(settings.request_timeout)
        self._runners: dict[str, Runner] = {}
        for mode in self.modes:
            self._runners[mode] = Runner(
                self.deployment,
                mode,
                data_dir=settings.data_dir,
                keep_receipt=self.receipts.keep if settings.receipt_days else None,
                keep_prompts=settings.receipt_prompts == "on",
                conversations=self.conversations,
            )
            self.conversations = self._runners[mode].conversations

    def runner(self, mode: str) -> Runner:
        if mode not in self._runners:
            problem = f"There is no mode `{mode[:40]}`. Known: {', '.join(self.modes)}."
            raise ApiError("invalid_request", message=problem, fields=[{"field": "mode", "problem": problem}])
        return self._runners[mode]

    def warm_up(self) -> None:
        """Load models, open stores and go through a search of each mode, so that no question pays for it."""
        for mode, runner in self._runners.items():
            runner.warm_up()
            # A second, smaller pipeline on the same stores and weights: no language model is asked.
            with Runner(self.deployment, mode, data_dir=self.settings.data_dir, outputs=["documents"]) as search:
                search.search(_WARM_UP_TEXTS[0], tenant_id=_WARM_UP_TENANT)
        for text in _WARM_UP_TEXTS:
            AnswerCheck([Document(content=text)]).close(text)

    async def ask(self, request: AnswerRequest, tenant_id: str) -> dict[str, Any]:
        runner = self.runner(request.mode)
        options = {"limits": self.limits(), **request.options()}
        answer = await runner.ask_async(request.query, tenant_id=tenant_id, **options)
        telemetry.record_answer(answer)
        return request.shown(answer)

    async def stream(self, request: AnswerRequest, tenant_id: str) -> AsyncGenerator[AnswerEvent, None]:
        runner = self.runner(request.mode)
        options = {"limits": self.limits(), **request.options()}
        async with aclosing(runner.stream(request.query, tenant_id=tenant_id, **options)) as events:
            async for event in events:
                if event.name == "generation_complete":
                    first = event.data["metadata"].get("time_to_first_token_ms")
                    telemetry.record_answer(event.data, first_token_seconds=None if first is None else first / 1000)
                    event = replace(event, data=request.shown(event.data))  # noqa: PLW2901
                yield event

    async def batch(self, requests: Sequence[Mapping[str, Any]], tenant_id: str) -> list[dict[str, Any]]:
        async def one(index: int, body: Mapping[str, Any]) -> dict[str, Any]:
            try:
                return {"index": index, "answer": await self.ask(read_request(body), tenant_id)}
            except Exception as error:
                return {"index": index, **counted(error).body()}

        return await bounded([partial(one, *entry) for entry in enumerate(requests)], _BATCH_AT_ONCE)

    async def search(self, query: str, tenant_id: str, **options: Any) -> tuple[list[Document], list[str]]:
        """Find the passages that an answer in the simplest mode would be written from; no model is asked."""
        options |= {"tenant_id": tenant_id, "limits": self.limits()}
        return await self.runner(first_mode(self.deployment)).search_async(query, **options)

    async def verify(
        self,
        given: str | list[dict[str, Any]],
        tenant_id: str,
        on_item: OnItem | None = None,
        form: Callable[[dict[str, Any]], Any] = dict,
    ) -> Any:
        """Check a text, or quotations, against the tenant's library, and form the result; no model is asked."""
        runner = self.runner(first_mode(self.deployment))
        check = partial(runner.verify, given, tenant_id=tenant_id, on_item=on_item)
        return await self.long_work.run(tenant_id, "verify", lambda: form(check()))

    def close(self) -> None:
        """Let go of the runners; stores close with the process."""
        self.long_work.stop()
        for runner in self._runners.values():
            runner.close()

    def limits(self) -> TimeLimits:
        """Return the limits of a question that is asked now."""
        whole = left = self.settings.request_timeout
        if (deadline := current_request().deadline) is not None:
            left = deadline - asyncio.get_running_loop().time()
        return TimeLimits(
            request=max(left - _AHEAD, _LEAST),
            # Of a minute the model may take half and other steps a sixth; whoever allows more time allows them more.
            llm=max(30.0, whole / 2),
            helper=max(10.0, whole / 6),
        )


_current: list[Engine] = []


@contextmanager
def in_use(engine: Engine) -> Iterator[None]:
    """Let the process serve an engine, for routes and for Hayhooks' wrappers, which are handed nothing."""
    _current.append(engine)
    try:
        yield
    finally:
        _current.remove(engine)


def is_serving() -> bool:
    """Whether `shiguan serve` has loaded the modes of this process."""
    return bool(_current)


def current_engine() -> Engine:
    """Return the engine of `shiguan serve`, which is there once the application has started."""
    return _current[-1]
