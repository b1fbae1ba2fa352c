"""Asks a mode and takes its run apart."""

from dataclasses import dataclass
from typing import Any

from haystack import Document, GeneratedAnswer

from shiguan.engine.runner import Runner
from shiguan.evaluation.attribution import StageTrace

_OUTPUTS = ("documents", "passages", "context", "answers")


class TracedMode:
    """Asks a mode and sees what passes between its stages, which are known by what they are and not by their names."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        pipeline = runner.pipeline
        self.parts: dict[str, Any] = {name: pipeline.get_component(name) for name in pipeline.graph.nodes}
        kinds = {name: type(part).__name__ for name, part in self.parts.items()}
        self.composite = next((name for name, part in self.parts.items() if hasattr(part, "bm25_retriever")), None)
        self.bm25 = next((name for name, kind in kinds.items() if "BM25" in kind), None)
        self.vectors = next((name for name, kind in kinds.items() if kind.endswith("EmbeddingRetriever")), None)
        joiner = next((name for name, kind in kinds.items() if kind == "DocumentJoiner"), None)
        self.fused = self.composite or joiner or self.bm25 or self.vectors
        self.fetcher = next((name for name, kind in kinds.items() if kind == "ParentDocumentFetcher"), None)
        self.tenant = next((name for name, kind in kinds.items() if kind == "TenantFilter"), None)
        declared = pipeline.metadata["outputs"]
        self.outputs = [
            name for name in _OUTPUTS if name in declared and declared[name].partition(".")[0] in self.parts
        ]
        self.last, self.senders = self._last_stage()

    def ask(self, question: str, *, tenant_id: str, **options: Any) -> "TracedRun":
        """Ask a question, with what else it comes with, such as `history` and `top_k`."""
        lists = (self.bm25, self.vectors, self.fused, self.fetcher)
        targets = [f"{name}.documents" for name in lists if name]
        if self.composite:
            targets.append(f"{self.composite}.searches")
        wanted = list(dict.fromkeys([*self.outputs, *targets, *self.senders.values()]))
        told = self.runner.trace(question, tenant_id=tenant_id, outputs=wanted, **options)
        return TracedRun(self, question, tenant_id, options, told)

    def _last_stage(self) -> tuple[str, dict[str, str]]:
        """Find the stage that gives `documents`, if `top_k` is its own, and where each of its inputs comes from."""
        metadata = self.runner.pipeline.metadata
        last = metadata["outputs"].get("documents", "").partition(".")[0]
        graph = self.runner.pipeline.graph
        edges = list(graph.in_edges(last, data=True)) if last in graph else []
        plain = not any(data["to_socket"].is_variadic for _, _, data in edges)
        if metadata["inputs"].get("top_k") != [f"{last}.top_k"] or not plain:
            return "", {}
        return last, {data["to_socket"].name: f"{sender}.{data['from_socket'].name}" for sender, _, data in edges}


@dataclass(frozen=True)
class TracedRun:
    """One question as a mode went through it; `told` is what `Runner.trace` gives."""

    mode: TracedMode
    question: str
    tenant_id: str
    options: dict[str, Any]
    told: dict[str, Any]

    @property
    def answer(self) -> GeneratedAnswer | None:
        answers = self.told["outputs"].get("answers") or []
        return answers[0] if answers else None

    def first(self, name: str) -> Any:
        """Give one of the file's outputs as the first turn of a mode that loops had it."""
        return self.told["first"].get(name)

    def found(self, depth: int) -> list[Document]:
        """Give `depth` passages of the first turn: its last stage runs again, or else the whole question."""
        mode = self.mode
        if not mode.last:
            deeper = {**self.options, "top_k": depth}
            told = mode.runner.trace(self.question, tenant_id=self.tenant_id, outputs=["documents"], **deeper)
            return (told["first"]["documents"] or [])[:depth]
        if self.first("documents") is None:
            return []
        given = {socket: self.told["first"][target] for socket, target in mode.senders.items()}
        for name, value in (("query", self.question), ("tenant_id", self.tenant_id)):
            for target in mode.runner.pipeline.metadata["inputs"].get(name, ()):
                stage, _, socket = target.partition(".")
                if stage == mode.last:
                    given[socket] = value
        known = {socket: value for socket, value in given.items() if value is not None}
        documents: list[Document] = mode.parts[mode.last].run(**known, top_k=depth)["documents"]
        return documents[:depth]

    def trace(self) -> StageTrace:
        """Say what every stage had, in the last attempt; retrievers inside a fusion are run again by themselves."""
        mode, outputs = self.mode, self.told["outputs"]

        def of(name: str | None) -> list[Document] | None:
            return outputs.get(f"{name}.documents") if name else None

        bm25, vectors, asked = of(mode.bm25), of(mode.vectors), [self.question]
        if mode.composite:
            searches = outputs.get(f"{mode.composite}.searches") or []
            asked = list(dict.fromkeys(search["query"] for search in searches)) or asked
            bm25, vectors = self._alone(searches)
        fetched = of(mode.fetcher) or []
        return StageTrace(
            bm25=bm25,
            vectors=vectors,
            fused=of(mode.fused) or [],
            fetched=fetched,
            ranked=outputs.get("documents") or fetched,
            read=outputs.get("passages"),
            answer=self.answer,
            asked=asked,
        )

    def _alone(self, searches: list[dict[str, Any]]) -> tuple[list[Document] | None, list[Document] | None]:
        """Run each retriever of a fusion by itself, on the queries that it was asked."""
        part = self.mode.parts[str(self.mode.composite)]
        filters = self.mode.parts[str(self.mode.tenant)].run(tenant_id=self.tenant_id)["filters"]
        found: dict[str, list[Document] | None] = {"bm25": None, "embedding": None}
        for search in searches:
            if search["kind"] == "bm25":
                more = part.bm25_retriever.run(query=search["query"], filters=filters)["documents"]
            else:
                embedded = part.text_embedder.run(text=search["query"])["embedding"]
                more = part.embedding_retriever.run(query_embedding=embedded, filters=filters)["documents"]
            found[search["kind"]] = [*(found[search["kind"]] or []), *more]
        return found["bm25"], found["embedding"]
