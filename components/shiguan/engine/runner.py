"""Asks one mode of one deployment, with flat arguments and a plain object as the answer."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing
from contextvars import copy_context
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self, TypeVar

from haystack import Document

from shiguan.checking.definition import CONVERSATION
from shiguan.conversations import ConversationStore
from shiguan.engine.answer_object import answer_object, first_answer, with_sources
from shiguan.engine.answer_stream import AnswerEvent, AnswerStream
from shiguan.engine.conversations import ConversationKeeper, keep_turn, turn_of
from shiguan.engine.library import Library
from shiguan.engine.loading import load_pipeline, pipeline_path
from shiguan.engine.mode import Mode, answer_without_search
from shiguan.engine.mode_pipeline import Results, bounded, checked_question, value_at, warnings_of
from shiguan.engine.options import AskOptions, read_options
from shiguan.engine.receipts import Receipt, write_receipt
from shiguan.errors import ConfigurationError, StoreError
from shiguan.llm.run import Run, TimeLimits
from shiguan.reading.question import read_question, years_between
from shiguan.resources import text_hash
from shiguan.tenants import all_of, during

Result = TypeVar("Result")

# Outputs that the answer has anyway, or that only the engine reads.
_NOT_EXPLAINED = ("answers", "documents", "passages", "context", "thread")
# How many passages of a chapter are read to sum it up.
_OF_CHAPTER = 20


class Runner:
    """
    Asks a mode and returns the answer object that the command line and the server print.

    Everything that is not the pipeline's own business is done here, once: a question is checked before anything runs,
    flat arguments reach their components through the file's `inputs`, the warnings of all stages are collected, and a
    run that ends without an answer is an error that names a stage.

        with Runner("embedded", "simple", data_dir="library") as runner:
            print(runner.ask("Who was Guo Ziyi?", tenant_id="default")["answer"])

    In every call `query` is the question, 1 to 2,000 characters, `tenant_id` whose documents may be seen, and `options`
    are those of `AskOptions`.

    One runner has one event loop and answers one question at a time; a program with a loop awaits `ask_async`, or
    listens to `stream`, as often at once as it likes. A question that is cancelled, or whose stream is closed, ends at
    once, and so do its calls of language models.
    """

    def __init__(
        self,
        deployment: str = "embedded",
        mode: str | Path = "simple",
        *,
        data_dir: str | Path | None = None,
        outputs: list[str] | None = None,
        keep_receipt: Callable[[Receipt], None] | None = None,
        keep_prompts: bool = False,
        conversations: ConversationKeeper | None = None,
    ) -> None:
        """
        Load the mode.

        :param deployment: A folder of `pipelines/`.
        :param mode: A file of that folder; a `Path` is a pipeline file of your own.
        :param data_dir: The folder of the embedded stores; None for $SHIGUAN_DATA_DIR or the user's data folder.
        :param outputs: Build only what these names of the file's `outputs` need, such as `["documents"]`, which is
            enough for `search`; None for everything.
        :param keep_receipt: Called in a thread with the receipt of every answer; if it fails the answer has a warning.
        :param keep_prompts: Whether receipts hold the messages of the prompt, and so the text of every passage.
        :param conversations: The keeper of conversations, shared by several runners; None for this runner's own.
        :raises ConfigurationError: If there is no such deployment, mode or output, or it cannot be built.
        """
        self.deployment = deployment
        self.mode = mode.stem if isinstance(mode, Path) else mode
        self.pipeline = load_pipeline(deployment, mode, data_dir=data_dir, outputs=outputs)
        self._file, self._outputs = mode, outputs
        file = pipeline_path(deployment, mode).read_text(encoding="utf-8")
        self._stamp = {"deployment": deployment, "mode_sha256": text_hash(file)}
        self._keep_receipt = keep_receipt
        self._keep_prompts = keep_prompts
        self._data_dir = data_dir
        self._found: Runner | None = None
        self._mode = Mode(self.pipeline)
        reader: Any = self.pipeline.get_component(CONVERSATION) if CONVERSATION in self.pipeline.graph else None
        self._store: ConversationStore | None = reader and reader.conversation_store
        self._own_conversations, self.conversations = conversations is None, conversations
        if conversations is None and reader is not None:
            self.conversations = ConversationKeeper(reader)
        self._loop = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._turn, self._finding = threading.Lock(), threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the event loop, and wait for summaries being written; the library's stores stay open."""
        with self._turn:
            # In a thread, since a server closes its runners inside a running loop, where no other loop can run.
            closing = threading.Thread(target=self._loop.close)
            closing.start()
            closing.join()
        if self._own_conversations and self.conversations is not None:
            self.conversations.close()
        if self._store is not None:
            self._store.close()
        if self._found is not None:
            self._found.close()

    def warm_up(self) -> None:
        """Load models and open stores now rather than at the first question."""
        self.pipeline.warm_up()

    def ask(
        self, query: str, *, tenant_id: str, explain: bool = False, limits: TimeLimits | None = None, **options: Any
    ) -> dict[str, Any]:
        """
        Answer a question from the tenant's documents.

        :param explain: Whether `metadata.explain` shows what each stage did.
        :param limits: How long the parts of the run may take.
        :returns: The answer object: `answer`, `query`, `mode`, `status`, `citations`, `documents`, `metadata`.
        :raises RefusedError: If the question is empty or too long, or an option is unknown or wrong.
        :raises AnswerError: If a stage fails; the message names it.
        """
        return self._run(self.ask_async(query, tenant_id=tenant_id, explain=explain, limits=limits, **options))

    async def ask_async(
        self, query: str, *, tenant_id: str, explain: bool = False, limits: TimeLimits | None = None, **options: Any
    ) -> dict[str, Any]:
        """Answer a question like `ask` within an event loop; also a `TimeLimitError` where it takes too long."""
        return await self._answer(query, tenant_id, read_options(options), explain=explain, limits=limits)

    def ask_many(
        self, questions: Iterable[str | Mapping[str, Any]], *, tenant_id: str, at_once: int = 4, **options: Any
    ) -> list[dict[str, Any]]:
        """
        Answer several questions concurrently.

        :param questions: Questions, or mappings of `query` and options of its own.
        :param at_once: How many are answered at a time.
        :param options: The options of all of them; a question's own take precedence.
        :returns: For each question, in order, its `index` and its `answer`, or the `error` that it ended with.
        :raises ValueError: If `at_once` is not positive.
        """
        if at_once < 1:
            raise ValueError(f"`at_once` must be positive, got {at_once}.")

        async def ask(index: int, question: str | Mapping[str, Any]) -> dict[str, Any]:
            asked = {"query": question} if isinstance(question, str) else question
            try:
                return {"index": index, "answer": await self.ask_async(**{**options, **asked, "tenant_id": tenant_id})}
            except Exception as error:
                return {"index": index, "error": error}

        return self._run(bounded([partial(ask, *pair) for pair in enumerate(questions)], at_once))

    async def stream(
        self, query: str, *, tenant_id: str, explain: bool = False, limits: TimeLimits | None = None, **options: Any
    ) -> AsyncGenerator[AnswerEvent, None]:
        """
        Answer a question, with the arguments of `ask`, and report how the answer comes about.

        :yields: Events (see `shiguan.engine.answer_stream`). The last one, and only that, is terminal:
            `generation_complete` or `error`; nothing is raised.
        """
        listener = AnswerStream(query, self._mode)

        async def answer() -> dict[str, Any]:
            asked = read_options(options)
            return await self._answer(query, tenant_id, asked, explain=explain, limits=limits, listener=listener)

        async with aclosing(listener.events(answer)) as events:
            async for event in events:
                yield event

    def search(self, query: str, *, tenant_id: str, **options: Any) -> tuple[list[Document], list[str]]:
        """
        Find the passages that an answer would be built from; no model writes from them, and no turn is kept.

        :returns: Parents in the mode's final order, and the warnings of the stages that found them.
        :raises RefusedError: If the question is empty or too long, or an option is unknown or wrong.
        :raises AnswerError: If a stage fails; the message names it.
        """
        return self._run(self.search_async(query, tenant_id=tenant_id, **options))

    async def search_async(
        self, query: str, *, tenant_id: str, limits: TimeLimits | None = None, **options: Any
    ) -> tuple[list[Document], list[str]]:
        """Find passages like `search` within an event loop; also a `TimeLimitError` where it takes too long."""
        finder = await asyncio.to_thread(self._finder)
        wanted = finder._mode.outputs["documents"]
        run, results, warnings = await finder._run_alone(query, tenant_id, options, limits, wanted=[wanted])
        return value_at(results, wanted) or [], [*warnings_of(results), *run.warnings(), *warnings]

    def verify(
        self,
        text: str | Iterable[Mapping[str, Any]],
        *,
        tenant_id: str,
        on_item: Callable[[dict[str, Any], int, int], object] | None = None,
    ) -> dict[str, Any]:
        """
        Check a text against the library: its quotations word for word, its other sentences like those of an answer.

        :param text: The text, or quotations as mappings of `id`, `text` and optionally `source`.
        :param on_item: Called with each part as soon as it is checked, its number and how many there are.
        :returns: `items` in the text's order, `counts` of verdicts by kind, and `warnings`; see docs/verify.md.
        :raises RefusedError: If the library is empty, the text too long, or a quotation is not one.
        """
        from shiguan.engine.verification import PASSAGES, verify_text  # noqa: PLC0415

        found = partial(self.search, tenant_id=tenant_id, top_k=PASSAGES)
        return verify_text(text, self._library, tenant_id, lambda claim: found(claim)[0], on_item=on_item)

    def trace(self, query: str, *, tenant_id: str, outputs: list[str], **options: Any) -> dict[str, Any]:
        """
        Run a question and return what passes between the stages, for measuring a mode.

        :param outputs: Names of the file's `outputs` that this runner was built with, or `component.socket`.
        :returns: `outputs`, name to value, None for stages that did not run, and `first`, the same for each stage's
            first turn in a mode that loops; `timings_ms`, stage to milliseconds with `total`; `llm_calls`; `usage`,
            tokens by kind; `cost`, None where no price is known; and `warnings`.
        :raises ConfigurationError: If the file has no such output; else as `search`.
        """
        return self._run(self.trace_async(query, tenant_id=tenant_id, outputs=outputs, **options))

    async def trace_async(
        self, query: str, *, tenant_id: str, outputs: list[str], limits: TimeLimits | None = None, **options: Any
    ) -> dict[str, Any]:
        """Run a question like `trace` within an event loop; also a `TimeLimitError` where it takes too long."""
        known = {*self._mode.outputs, *self.pipeline.graph}
        if unknown := [at for at in outputs if known.isdisjoint({at, at.split(".")[0]})]:
            raise ConfigurationError(
                f"The mode `{self.mode}` has no output `{unknown[0]}`. Its outputs: {', '.join(self._mode.outputs)}. "
                "Name one of these, or add it to the file."
            )
        targets = {name: self._mode.outputs.get(name, name) for name in outputs}
        first: Results = {}
        how: dict[str, Any] = {"wanted": targets.values(), "on_outputs": first.setdefault}
        run, results, _ = await self._run_alone(query, tenant_id, options, limits, **how)
        return {
            "outputs": {name: value_at(results, target) for name, target in targets.items()},
            "first": {name: value_at(first, target) for name, target in targets.items()},
            "timings_ms": {stage: round(value, 2) for stage, value in run.times.items()},
            "llm_calls": run.answered,
            "usage": run.usage,
            "cost": run.cost,
            "warnings": [*warnings_of(results), *run.warnings()],
        }

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in this runner's event loop; a stage around it ends it at its next stage."""
        with self._turn:
            return self._loop.run(work, context=copy_context())

    async def _run_alone(
        self, query: str, tenant_id: str, options: dict[str, Any], limits: TimeLimits | None, **how: Any
    ) -> tuple[Run, Results, list[str]]:
        """Run a question without making an answer or keeping a turn; the last result is further warnings."""
        asked, query, run = read_options(options), checked_question(query), Run(limits or TimeLimits())
        narrowed = await asyncio.to_thread(self._narrowed, query, asked, tenant_id)
        return run, await self._mode.results(query, tenant_id, narrowed, run, **how), self._mode.warnings(asked)

    async def _answer(
        self,
        query: str,
        tenant_id: str,
        options: AskOptions,
        *,
        explain: bool = False,
        limits: TimeLimits | None = None,
        listener: AnswerStream | None = None,
    ) -> dict[str, Any]:
        mode = self._mode
        mode.require_answers()
        query = checked_question(query)
        narrowed = await asyncio.to_thread(self._narrowed, query, options, tenant_id)
        shown = {name: at for name, at in mode.outputs.items() if explain and name not in _NOT_EXPLAINED}
        wanted = {mode.outputs["answers"], mode.outputs.get("queries", mode.outputs["answers"]), *shown.values()}
        run = Run(limits or TimeLimits(), tenant_id=tenant_id)
        how = listener.listen_to(run) if listener is not None else {}
        wanted |= listener.stages if listener is not None else set()
        warnings = mode.warnings(options)
        try:
            results = await mode.results(query, tenant_id, narrowed, run, wanted=wanted, **how)
            made = first_answer(results, mode, query)
        except StoreError as error:
            if not options.without_search or run.visits[mode.generator]:
                raise
            results, written = {}, await answer_without_search(mode, query, options, run)
            if written is None:
                raise
            made = written
            warnings.append(f"The library could not be searched, and the model answered without it. {error}")
        answer = answer_object(made, run, results, mode, warnings)
        if not self._keep_prompts:
            made.meta.get("prompt_rendered", {}).pop("messages", None)
        parameters = {**(getattr(mode.writer, "generation_kwargs", None) or {}), **options.in_receipt()}
        about = {**self._stamp, "tenant_id": tenant_id, "parameters": parameters}
        await write_receipt(made, answer, self._keep_receipt, **about)
        if explain:
            answer["metadata"]["explain"] = {name: value_at(results, at) for name, at in shown.items()}
        if options.conversation_id is not None:
            source, begun = (value_at(results, mode.outputs.get(name, "")) for name in ("source", "thread"))
            recalled = made.meta.get("status") == "recalled"
            turn = turn_of(made, answer, "history" if recalled else source, begun or {})
            await keep_turn(self.conversations, turn, answer, tenant_id, options)
        return with_sources(answer, made.documents, options)

    def _finder(self) -> "Runner":
        """Load the part of the mode that finds passages, on the same stores and weights: nothing is written from it."""
        if self._outputs is not None or "documents" not in self._mode.outputs:
            return self
        with self._finding:  # searches come at once
            if self._found is None:
                own: dict[str, Any] = {"data_dir": self._data_dir, "conversations": self.conversations}
                self._found = Runner(self.deployment, self._file, outputs=["documents"], **own)
            return self._found

    @cached_property
    def _library(self) -> Library:
        # Creating it reads and checks the file of the index, so it is done once and only where needed.
        return Library(self.deployment, data_dir=self._data_dir)

    def _narrowed(self, query: str, options: AskOptions, tenant_id: str) -> AskOptions:
        """Add to a question's filters what it is limited to: sources, sections, years, the chapter to be summed up."""
        if not options.sections and (chapter := read_question(query).chapter) is not None:
            found = self._library.find_chapter(chapter, options.sources, tenant_id=tenant_id)
            options = options.model_copy(update={**found, "top_k": options.top_k or _OF_CHAPTER} if found else {})
        named = options.sources or options.sections
        conditions = (
            self._library.narrowed(options.sources, options.sections, tenant_id=tenant_id) if named else None,
            during(*years_between(options.when)) if options.when else None,
        )
        if not any(conditions):
            return options
        return options.model_copy(update={"filters": all_of(options.filters, *conditions)})
