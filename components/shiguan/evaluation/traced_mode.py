"""Asks a mode and takes its run apart."""

from typing import Any

from haystack import Document

from shiguan.evaluation.stage_trace import StageTrace
from shiguan.runner import Runner


class TracedMode:
    """
    Asks a mode and sees what passes between its stages, whatever the file calls them.

    A stage is known by what it is: a fetcher by its class, a fusion by the two retrievers that it holds or joins. In a
    mode that loops, the last attempt is seen.
    """

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        parts: dict[str, Any] = {name: runner.pipeline.get_component(name) for name in runner.pipeline.graph.nodes}
        self._parts = parts
        kinds = {name: type(part).__name__ for name, part in parts.items()}
        self._composite = next((name for name, part in parts.items() if hasattr(part, "bm25_retriever")), None)
        self._bm25 = next((name for name, kind in kinds.items() if "BM25" in kind), None)
        self._vectors = next((name for name, kind in kinds.items() if kind.endswith("EmbeddingRetriever")), None)
        joiner = next((name for name, kind in kinds.items() if kind == "DocumentJoiner"), None)
        self._fused = self._composite or joiner or self._bm25 or self._vectors
        self._fetcher = next((name for name, kind in kinds.items() if kind == "ParentDocumentFetcher"), None)
        self._outputs = [
            name for name in ("documents", "passages", "answers") if name in runner.pipeline.metadata["outputs"]
        ]
        self._tenant = next((name for name, kind in kinds.items() if kind == "TenantFilter"), None)

    def ask(self, question: str, *, tenant_id: str, **options: Any) -> tuple[StageTrace, dict[str, Any]]:
        """Ask a question and take its run apart."""
        told = self.run(question, tenant_id=tenant_id, **options)
        return self.trace(question, told, tenant_id=tenant_id), told

    def run(self, question: str, *, tenant_id: str, **options: Any) -> dict[str, Any]:
        """Ask a question."""
        lists = [self._bm25, self._vectors, self._fused, self._fetcher]
        targets = [f"{name}.documents" for name in lists if name]
        if self._composite:
            targets.append(f"{self._composite}.searches")
        return self.runner.trace(question, tenant_id=tenant_id, outputs=[*self._outputs, *targets], **options)

    def trace(self, question: str, told: dict[str, Any], *, tenant_id: str) -> StageTrace:
        """Take a run apart."""
        outputs = told["outputs"]

        def of(name: str | None) -> list[Document] | None:
            return outputs.get(f"{name}.documents") if name else None

        bm25, vectors, asked = of(self._bm25), of(self._vectors), [question]
        if self._composite:
            searches = outputs.get(f"{self._composite}.searches") or []
            asked = list(dict.fromkeys(search["query"] for search in searches)) or asked
            bm25, vectors = self._alone(searches, tenant_id)
        fused = of(self._fused) or []
        fetched = of(self._fetcher) or []
        answers = outputs.get("answers") or []
        return StageTrace(
            bm25=bm25,
            vectors=vectors,
            fused=fused,
            fetched=fetched,
            ranked=outputs.get("documents") or fetched,
            read=outputs.get("passages"),
            answer=answers[0] if answers else None,
            asked=asked,
        )

    def _alone(
        self, searches: list[dict[str, Any]], tenant_id: str
    ) -> tuple[list[Document] | None, list[Document] | None]:
        """Run each retriever of a fusion by itself, on the queries that it was asked."""
        part = self._parts[str(self._composite)]
        filters = self._parts[str(self._tenant)].run(tenant_id=tenant_id)["filters"]
        found: dict[str, list[Document] | None] = {"bm25": None, "embedding": None}
        for search in searches:
            if search["kind"] == "bm25":
                more = part.bm25_retriever.run(query=search["query"], filters=filters)["documents"]
            else:
                embedded = part.text_embedder.run(text=search["query"])["embedding"]
                more = part.embedding_retriever.run(query_embedding=embedded, filters=filters)["documents"]
            found[search["kind"]] = [*(found[search["kind"]] or []), *more]
        return found["bm25"], found["embedding"]
