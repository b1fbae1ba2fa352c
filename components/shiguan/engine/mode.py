"""A loaded mode: what its file declares, what its graph shows, and how a question runs through it, or without it."""

import time
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from haystack import GeneratedAnswer

from shiguan.checking.definition import GRADER, WRITERS
from shiguan.claims.marks import neutral_answer
from shiguan.engine.loading import list_modes
from shiguan.engine.mode_pipeline import ModePipeline, Results, run_pipeline
from shiguan.engine.options import ENGINE_OPTIONS, WRITING, AskOptions
from shiguan.errors import RefusedError
from shiguan.llm.calls import ask_llm_async, is_available
from shiguan.llm.model_settings import Budget
from shiguan.llm.prompts import render_prompt
from shiguan.llm.run import Run
from shiguan.llm.source_blocks import neutral_text
from shiguan.reading.text import read_text
from shiguan.resources import read_texts


class Mode:
    """A mode with its parts: the `generator`, the `sources` that it reads, the `graders`; empty if nothing writes."""

    def __init__(self, pipeline: ModePipeline) -> None:
        of_file = pipeline.metadata
        self.pipeline = pipeline
        self.deployment: str = of_file["deployment"]
        self.name: str = of_file["mode"]
        self.inputs: dict[str, list[str]] = of_file["inputs"]
        self.outputs: dict[str, str] = of_file["outputs"]
        self._budget = Budget.model_validate(of_file["budget"])
        self._sockets = pipeline.inputs(include_components_with_connected_inputs=True)
        self._warning = pipeline.stages_with("warnings")
        self._reading = set(filter(self._reads, pipeline.stages_with("documents")))
        parts = pipeline.graph.nodes
        self.generator = next((name for name in WRITERS if name in parts and "answers" in self.outputs), "")
        self.graders = [GRADER] if self.generator and GRADER in parts else []
        reader = GRADER if self.graders else self.outputs.get("answers", "").partition(".")[0]
        self.sources = self._sender(reader, "documents") if self.generator else ""
        self.writer: Any = pipeline.get_component(self.generator) if self.generator else None

    def _reads(self, name: str) -> bool:
        """Return whether a component searches the library, judged by its inputs; graders do so too but are excluded."""
        return (
            bool({"filters", "retriever_kwargs"} & self._sockets[name].keys()) and "replies" not in self._sockets[name]
        )

    def _sender(self, receiver: str, socket: str) -> str:
        edges: list[tuple[str, str, dict[str, Any]]] = list(self.pipeline.graph.in_edges(receiver, data=True))
        return next(
            (f"{sender}.{edge['from_socket'].name}" for sender, _, edge in edges if edge["to_socket"].name == socket),
            "",
        )

    def require_answers(self) -> None:
        """Raise an error that names the modes that answer, if the file has no output `answers`."""
        if "answers" not in self.outputs:
            raise RefusedError(
                f"The file `{self.name}` answers no questions: its `outputs` have no `answers`, only "
                f"{', '.join(self.outputs) or 'nothing'}. Ask one of the modes: "
                f"{', '.join(list_modes()[self.deployment])}."
            )

    def warnings(self, options: AskOptions) -> list[str]:
        """Return a warning for each option that the mode ignores or does not know the value of."""
        ignored = (f"The mode `{self.name}` does not take `{name}`: it was ignored." for name in self._ignored(options))
        return [*ignored, *options.warnings()]

    def _ignored(self, options: AskOptions) -> list[str]:
        """Name the options, with a value in one case, that the mode does not take."""
        given = {name: value for name, value in options.given().items() if value not in ([], {})}
        names = [name for name in given if name not in self.inputs and name not in ENGINE_OPTIONS]
        if options.method == "decompose" and "rewrite_method" in self.inputs and "sub_questions" not in self.outputs:
            names.append("rewrite_method: decompose")  # nothing would answer the parts
        return names + [name for name in WRITING if name in given and not self.generator]

    def results(
        self,
        query: str,
        tenant_id: str,
        options: AskOptions,
        run: Run,
        *,
        wanted: Collection[str],
        on_outputs: Callable[[str, dict[str, Any]], Any] | None = None,
        on_chunk: Callable[..., Any] | None = None,
    ) -> Awaitable[Results]:
        """Run a question; `wanted` are the outputs, or stages, that are read afterwards."""
        values = {**options.for_components(), "query": query, "tenant_id": tenant_id}
        for name in self._ignored(options):
            values.pop(name.partition(":")[0], None)
        data = self.pipeline.by_component({name: value for name, value in values.items() if name in self.inputs})
        writing: dict[str, Any] = {"generation_kwargs": options.writing()} if options.writing() else {}
        writing |= {"streaming_callback": on_chunk} if on_chunk else {}
        if writing and self.generator:
            data.setdefault(self.generator, {}).update(writing)
        run.budget, run.reading = self._budget.within(options.budget or Budget()), self._reading
        stages = self._warning | {target.partition(".")[0] for target in wanted}
        return run_pipeline(self.pipeline, data, run, wanted=stages, on_outputs=on_outputs)


async def answer_without_search(mode: Mode, query: str, options: AskOptions, run: Run) -> GeneratedAnswer | None:
    """Have the model answer without the library, in one call with the question alone; None if it gives no answer."""
    if not is_available(mode.writer):
        return None
    language = options.language or read_text(query).language
    messages = render_prompt("unsearched", query=neutral_text(query), language=language)
    began = time.perf_counter()
    run.resume()
    with run.entered(), run.stage(mode.generator):
        reply = await ask_llm_async(mode.writer, messages, generation_kwargs=options.writing(), helper=False)
    run.times["total"] = (time.perf_counter() - began) * 1000
    said = neutral_answer(reply.text, ())
    if not said:
        return None
    sentences = read_texts("unsearched")
    first = sentences["zh" if language == "zh" else "en"]["search_failed"]
    meta = {"status": "unsearched", "reason": "search_failed", "language": language}
    return GeneratedAnswer(
        data=f"{first}\n\n{said}", query=query, documents=[], meta={**meta, "model": run.calls[-1].get("model")}
    )
