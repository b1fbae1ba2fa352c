"""One mode of one deployment, asked by flat arguments and answering with one plain object."""

import asyncio
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from haystack import Document, GeneratedAnswer, logging
from haystack.core.errors import PipelineRuntimeError

from shiguan.errors import AnswerError, ConfigurationError, RefusedError, ShiguanError
from shiguan.loading import load_pipeline
from shiguan.support.llm_tally import LlmTally, tallied_llm_calls
from shiguan.support.stage_timer import stage_times

logger = logging.getLogger(__name__)

MAX_QUESTION = 2000
"""The longest question that is answered, in characters."""


class Runner:
    """
    Asks a mode and gives back the answer object that the command line and the server print.

    Everything that is not the pipeline's own business stands here once: a question is checked before anything runs,
    flat arguments find their components through the file's `inputs`, warnings of all stages come together, and a run
    that ends without an answer is an error with a stage in it.

        with Runner("embedded", "simple", data_dir="library") as runner:
            print(runner.ask("Who was Guo Ziyi?", tenant_id="default")["answer"])

    One runner has one event loop of its own and answers one question at a time; a program with a loop awaits
    `ask_async` instead, as often at once as it likes.
    """

    def __init__(
        self,
        deployment: str = "embedded",
        mode: str | Path = "simple",
        *,
        data_dir: str | Path | None = None,
        retrieval_only: bool = False,
        outputs: list[str] | None = None,
    ) -> None:
        """
        Load the mode.

        :param deployment: A folder of `pipelines/`.
        :param mode: A file of that folder; a `Path` is a pipeline file of your own.
        :param data_dir: Where the embedded stores keep their data; None for $SHIGUAN_DATA_DIR or the user's data
            folder.
        :param retrieval_only: Build only what finds passages; `ask` is not available then.
        :param outputs: Build only what these names of the file's `outputs` need, for `trace`; None for everything.
        :raises ConfigurationError: If there is no such deployment, mode or output, or it cannot be built.
        """
        self.deployment = deployment
        self.mode = mode.stem if isinstance(mode, Path) else mode
        wanted = ["documents"] if retrieval_only else outputs
        self.retrieval_only = wanted is not None and "answers" not in wanted
        self.pipeline = load_pipeline(deployment, mode, data_dir=data_dir, outputs=wanted)
        self._inputs: dict[str, list[str]] = self.pipeline.metadata["inputs"]
        self._outputs: dict[str, str] = self.pipeline.metadata["outputs"]
        self._explained: dict[str, str] = self.pipeline.metadata["explain"]
        self._telling_stages = {
            name
            for name, sockets in self.pipeline.outputs(include_components_with_connected_outputs=True).items()
            if "warnings" in sockets
        }
        self._loop = asyncio.Runner()
        self._turn = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the runner's event loop; stores stay open for the other pipelines of the process."""
        self._loop.close()

    def warm_up(self) -> None:
        """Load models and open stores now rather than at the first question."""
        self.pipeline.warm_up()

    def ask(
        self,
        query: str,
        *,
        tenant_id: str,
        top_k: int | None = None,
        filters: dict[str, Any] | None = None,
        history: list[Any] | None = None,
        explain: bool = False,
    ) -> dict[str, Any]:
        """
        Answer a question from the tenant's documents.

        :param query: The question, 1 to 2,000 characters.
        :param tenant_id: Whose documents may be seen.
        :param top_k: How many passages to read at most; None for the mode's own number.
        :param filters: Further conditions in Haystack's filter format.
        :param history: The turns before the question, `ChatMessage`s or `{"role", "content"}`; modes that do not read
            them answer the question as it stands.
        :param explain: Whether `metadata.explain` tells what each stage did.
        :returns: The answer object: `answer`, `query`, `mode`, `status`, `citations`, `documents`, `metadata`.
        :raises RefusedError: If the question is empty or too long, or the filters are malformed.
        :raises AnswerError: If a stage fails; the message names it.
        """
        with self._turn:
            return self._loop.run(
                self.ask_async(
                    query, tenant_id=tenant_id, top_k=top_k, filters=filters, history=history, explain=explain
                )
            )

    async def ask_async(
        self,
        query: str,
        *,
        tenant_id: str,
        top_k: int | None = None,
        filters: dict[str, Any] | None = None,
        history: list[Any] | None = None,
        explain: bool = False,
    ) -> dict[str, Any]:
        """
        Answer a question from the tenant's documents, from within an event loop.

        :param query: The question, 1 to 2,000 characters.
        :param tenant_id: Whose documents may be seen.
        :param top_k: How many passages to read at most; None for the mode's own number.
        :param filters: Further conditions in Haystack's filter format.
        :param history: The turns before the question.
        :param explain: Whether `metadata.explain` tells what each stage did.
        :returns: The answer object, as `ask` gives it.
        :raises RefusedError: If the question is empty or too long, or the filters are malformed.
        :raises AnswerError: If a stage fails; the message names it.
        """
        if self.retrieval_only:
            raise RefusedError("This runner was made with `retrieval_only`; make one without it to ask questions.")
        started = time.perf_counter()
        with stage_times() as times, tallied_llm_calls() as tally:
            results = await self._run(
                query=query,
                tenant_id=tenant_id,
                top_k=top_k,
                filters=filters,
                history=history,
                wanted=[self._outputs["answers"], *(self._explained.values() if explain else ())],
            )
        answers: list[GeneratedAnswer] = _value(results, self._outputs["answers"]) or []
        if not answers:
            raise AnswerError(
                f"The mode `{self.mode}` ended without an answer. A stage before `{self._outputs['answers']}` was left "
                "out; run `shiguan check` on its file."
            )
        times["total"] = (time.perf_counter() - started) * 1000
        answer = _answer_object(answers[0], mode=self.mode, times=times, tally=tally, results=results)
        if explain:
            answer["metadata"]["explain"] = {name: _value(results, target) for name, target in self._explained.items()}
        return answer

    def search(
        self, query: str, *, tenant_id: str, top_k: int | None = None, filters: dict[str, Any] | None = None
    ) -> tuple[list[Document], list[str]]:
        """
        Find the passages that an answer would be built from, without building one.

        :param query: The question, 1 to 2,000 characters.
        :param tenant_id: Whose documents may be seen.
        :param top_k: How many passages at most.
        :param filters: Further conditions in Haystack's filter format.
        :returns: Parents in the mode's final order, and the warnings of the stages that found them.
        :raises RefusedError: If the question is empty or too long, or the filters are malformed.
        :raises AnswerError: If a stage fails; the message names it.
        """
        with self._turn:
            wanted = self._outputs["documents"]
            results = self._loop.run(
                self._run(query=query, tenant_id=tenant_id, top_k=top_k, filters=filters, wanted=[wanted])
            )
        return _value(results, wanted) or [], _warnings(results)

    def trace(
        self,
        query: str,
        *,
        tenant_id: str,
        outputs: list[str],
        top_k: int | None = None,
        filters: dict[str, Any] | None = None,
        history: list[Any] | None = None,
    ) -> dict[str, Any]:
        """
        Run a question and see what passes between the stages, for those who measure a mode.

        :param query: The question, 1 to 2,000 characters.
        :param tenant_id: Whose documents may be seen.
        :param outputs: Names of the file's `outputs` that this runner was built with.
        :param top_k: How many passages at most; None for the mode's own number.
        :param filters: Further conditions in Haystack's filter format.
        :param history: The turns before the question.
        :returns: `outputs`, name to value, None where the run did not come by; `timings_ms`, stage to milliseconds
            with `total`; `llm_calls`; `usage`, tokens by kind; and `warnings`.
        :raises ConfigurationError: If the file has no such output.
        :raises RefusedError: If the question is empty or too long, or the filters are malformed.
        :raises AnswerError: If a stage fails; the message names it.
        """
        for name in outputs:
            if name not in self._outputs:
                raise ConfigurationError(
                    f"The mode `{self.mode}` has no output `{name}`. Its outputs: {', '.join(self._outputs)}. Name one "
                    "of these, or add it to the file."
                )
        targets = {name: self._outputs[name] for name in outputs}
        started = time.perf_counter()
        with self._turn, stage_times() as times, tallied_llm_calls() as tally:
            results = self._loop.run(
                self._run(
                    query=query,
                    tenant_id=tenant_id,
                    top_k=top_k,
                    filters=filters,
                    history=history,
                    wanted=list(targets.values()),
                )
            )
            times["total"] = (time.perf_counter() - started) * 1000
        return {
            "outputs": {name: _value(results, target) for name, target in targets.items()},
            "timings_ms": {stage: round(value, 2) for stage, value in times.items()},
            "llm_calls": tally.calls,
            "usage": tally.usage,
            "warnings": _warnings(results),
        }

    async def _run(self, *, query: str, wanted: list[str], **arguments: Any) -> dict[str, dict[str, Any]]:
        values = {"query": checked_question(query), **arguments}
        data: dict[str, dict[str, Any]] = {}
        for name, targets in self._inputs.items():
            # A value of None means "as the YAML says": it must not reach a component as an explicit None.
            if values.get(name) is not None:
                for target in targets:
                    component, socket = target.split(".")
                    data.setdefault(component, {})[socket] = values[name]
        stages = self._telling_stages | {target.split(".")[0] for target in wanted}
        try:
            results = await self.pipeline.run_async(data, include_outputs_from=stages)
        except PipelineRuntimeError as error:
            raise _as_ours(error) from error
        # In the order of the file, so that what is told about a run is told in the order in which it happened.
        return {stage: results[stage] for stage in self.pipeline.graph.nodes if stage in results}


def checked_question(query: str) -> str:
    """
    Check a question before anything runs.

    :param query: What the person typed.
    :returns: The question without surrounding white space and without characters that no text has.
    :raises RefusedError: If nothing is left, or it is longer than 2,000 characters.
    """
    # Lone surrogates come from bytes that are no UTF-8, control characters from a paste; neither can be searched for.
    clean = "".join(
        " " if (ord(c) < 32 and c not in "\n\t") or 0xD800 <= ord(c) <= 0xDFFF or c == "\x7f" else c for c in query
    ).strip()
    if not clean:
        raise RefusedError("The question is empty. Type a question of 1 to 2,000 characters.")
    if len(clean) > MAX_QUESTION:
        raise RefusedError(
            f"The question has {len(clean):,} characters, the limit is {MAX_QUESTION:,}. Shorten it, or ingest the "
            "long text as a document and ask about it."
        )
    return clean


def _value(results: dict[str, dict[str, Any]], target: str) -> Any:
    component, socket = target.split(".")
    return results.get(component, {}).get(socket)


def _warnings(results: dict[str, dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(warning for outputs in results.values() for warning in outputs.get("warnings", [])))


def _as_ours(error: PipelineRuntimeError) -> ShiguanError:
    """Find our own error behind Haystack's, or say which stage failed and why."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ShiguanError):
            return cause
        cause = cause.__cause__
    stage = error.component_name or "unknown"
    reason = error.__cause__ or error
    return AnswerError(
        f"The stage `{stage}` failed: {type(reason).__name__}: {reason}. Nothing was answered; try again, and run with "
        "SHIGUAN_LOG_LEVEL=DEBUG to see more."
    )


def _answer_object(
    answer: GeneratedAnswer,
    *,
    mode: str,
    times: dict[str, float],
    tally: LlmTally,
    results: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    meta = answer.meta
    return {
        "answer": answer.data,
        "query": answer.query,
        "mode": mode,
        "status": meta.get("status", "answered"),
        "citations": meta.get("citations", []),
        "documents": [
            {
                "number": document.meta.get("number"),
                "id": document.id,
                "source": document.meta.get("source"),
                "section": document.meta.get("section", []),
                "score": document.score,
                "record_id": document.meta.get("record_id"),
            }
            for document in answer.documents
        ],
        "metadata": {
            "model": meta.get("model"),
            "llm_calls": tally.calls,
            "timings_ms": {stage: round(value, 2) for stage, value in times.items()},
            "usage": tally.usage or meta.get("usage", {}),
            "warnings": _warnings(results),
            "language": meta.get("language"),
            "claims": meta.get("claims", []),
        },
    }
