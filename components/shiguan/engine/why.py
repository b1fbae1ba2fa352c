"""Asks a mode, follows the expected passage through its stages, and names the one that lost it."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from haystack import Document, GeneratedAnswer

from shiguan.claims.checker import ClaimChecker
from shiguan.claims.claims import split_claims
from shiguan.engine.runner import Runner
from shiguan.llm.run import raise_if_cancelled
from shiguan.tenants import of_tenant, where
from shiguan.text.languages import fold_han


@dataclass(frozen=True)
class ExpectedPassage:
    """A passage that should have been found; `split` if no single unit of retrieval has all its words."""

    text: str
    parents: tuple[Document, ...]
    split: bool = False

    @property
    def parent_ids(self) -> frozenset[str]:
        return frozenset(parent.id for parent in self.parents)

    def places(self) -> list[dict[str, Any]]:
        return [
            {"id": parent.id, "source": parent.meta.get("source"), "section": parent.meta.get("section", [])}
            for parent in self.parents
        ]

    def is_read_in(self, document: Document) -> bool:
        if document.id not in self.parent_ids:
            return False
        if not self.text or (self.split and len(self.parents) > 1):
            return True
        return folded(self.text) in folded(document.content or "")


class ExpectedPassages:
    """Looks expected passages up in one tenant's library."""

    def __init__(self, stores: dict[str, Any], tenant_id: str) -> None:
        self.stores = stores
        self.tenant_id = tenant_id
        self._parents: list[Document] | None = None
        self._folded: list[str] = []

    def find(self, expected: str) -> ExpectedPassage:
        if by_id := self._named(expected.strip()):
            return ExpectedPassage("", tuple(by_id))
        wanted, parents = folded(expected), self.parents()
        found = [parent for parent, text in zip(parents, self._folded, strict=True) if wanted and wanted in text]
        if found:
            return self.in_units(found, expected)
        # The words may begin in one passage and end in the next.
        for first, second, head, tail in zip(parents, parents[1:], self._folded, self._folded[1:], strict=False):
            if first.meta.get("source_id") == second.meta.get("source_id") and wanted and wanted in head + tail:
                return ExpectedPassage(expected, (first, second), split=True)
        return ExpectedPassage(expected, ())

    def parents(self) -> list[Document]:
        if self._parents is None:
            self._parents = sorted(
                self._where("parents"),
                key=lambda parent: (parent.meta.get("source_id", ""), parent.meta.get("position", 0)),
            )
            for parent in self._parents:
                raise_if_cancelled()
                self._folded.append(folded(parent.content or ""))
        return self._parents

    def _where(self, store: str, *condition: Any) -> list[Document]:
        wanted = of_tenant(self.tenant_id, *([where(*condition)] if condition else []))
        found: list[Document] = self.stores[store].filter_documents(wanted)
        return found

    def _named(self, name: str) -> list[Document]:
        if not name or any(character.isspace() for character in name):
            return []
        parents = self._where("parents", "id", "==", name)
        if parents:
            return parents
        ids = [child.meta["parent_id"] for child in self._where("children", "id", "==", name)]
        return self._where("parents", "id", "in", ids) if ids else []

    def in_units(self, parents: Sequence[Document], text: str) -> ExpectedPassage:
        """Return passages as expected ones, `split` where no single unit of retrieval has all of the text."""
        split = False
        if parents and text:
            children = self._where("children", "meta.parent_id", "in", [parent.id for parent in parents])
            split = not any(folded(text) in folded(child.content or "") for child in children)
        return ExpectedPassage(text, tuple(parents), split)


def folded(text: str) -> str:
    """Normalise a text, so that two spellings of the same words are equal."""
    return "".join(fold_han(text).lower().split())


LABELS: dict[str, str] = {
    "never_ingested": "never ingested",
    "split_across_children": "split across retrieval units",
    "not_found_by_bm25": "not found by BM25",
    "not_found_by_vectors": "not found by vectors",
    "not_found_by_either": "found neither by BM25 nor by vectors",
    "fused_out": "dropped by the fusion",
    "parent_not_fetched": "its passage was not fetched",
    "ranked_out": "ranked out",
    "cut_by_budget": "cut by the context's budget",
    "refused": "read, and the question refused",
    "not_used": "read and not used",
    "not_cited": "used and not cited",
    "nothing_lost": "not lost",
}


@dataclass(frozen=True)
class StageTrace:
    """A question on its way: each stage's documents, the answer, what was searched; `found` are more passages."""

    lists: dict[str, list[Document]]
    answer: GeneratedAnswer | None = None
    asked: list[str] = field(default_factory=list)
    found: list[Document] = field(default_factory=list)
    traced: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Attribution:
    """The stage that lost a passage, its rank at each stage, and how many documents each stage had."""

    stage: str
    reason: str
    ranks: dict[str, int | None]
    sizes: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        return {"stage": self.stage, "label": LABELS[self.stage], **asdict(self)}


def attribute(trace: StageTrace, expected: ExpectedPassage) -> Attribution:
    """Follow a passage through the stages; any child of an expected parent counts, as the whole parent is read."""
    ids = expected.parent_ids
    ranks: dict[str, int | None] = {}
    for name, found in trace.lists.items():
        held = (document.id in ids or document.meta.get("parent_id") in ids for document in found)
        ranks[name] = next((rank for rank, right in enumerate(held, start=1) if right), None)
    sizes = {name: len(found) for name, found in trace.lists.items()}
    return Attribution(*_lost(trace, expected, ranks, sizes), ranks, sizes)


def loss_of(trace: StageTrace, expected: Sequence[ExpectedPassage]) -> Attribution | None:
    """Attribute the loss of the passage that was lost first."""
    order = list(LABELS)
    losses = [attribute(trace, passage) for passage in expected]
    return min(losses, key=lambda loss: order.index(loss.stage), default=None)


def _lost(
    trace: StageTrace, expected: ExpectedPassage, ranks: dict[str, int | None], sizes: dict[str, int]
) -> tuple[str, str]:
    if not expected.parents:
        return "never_ingested", "No passage of the library has these words."
    if ranks["fused"] is None:
        return _not_retrieved(expected, ranks, sizes)
    if ranks["fetched"] is None:
        families = dict.fromkeys(child.meta.get("parent_id") or child.id for child in trace.lists["fused"])
        ranks_of = (rank for rank, family in enumerate(families, start=1) if family in expected.parent_ids)
        place = next(ranks_of, len(families) + 1)
        if place > sizes["fetched"]:
            return "ranked_out", f"It was number {place} of the passages, and {sizes['fetched']} were read."
        return "parent_not_fetched", "Its retrieval unit was found and the stored passage could not be read."
    if ranks["ranked"] is None:
        return "ranked_out", f"It was number {ranks['fetched']} before the ranking, which kept {sizes['ranked']}."
    if "context" in ranks:
        if ranks["context"] is None:
            return "cut_by_budget", f"It was number {ranks['ranked']}, and {sizes['context']} passages were read."
        if not any(expected.is_read_in(document) for document in trace.lists["context"]):
            return "cut_by_budget", "The passage is in the context without the expected words."
    if trace.answer is None:
        return "nothing_lost", "It is among the passages that are read."
    return _answered(trace.answer, expected)


_FOUND_BY = {"bm25": "words", "vectors": "vectors"}


def _not_retrieved(expected: ExpectedPassage, ranks: dict[str, int | None], sizes: dict[str, int]) -> tuple[str, str]:
    searched = [name for name in ("bm25", "vectors") if name in ranks]
    if all(ranks[name] is None for name in searched):
        if expected.split:
            return "split_across_children", "No single unit has all the expected words, and no part was found."
        looked = " nor ".join(f"the {sizes[name]} found by {_FOUND_BY[name]}" for name in searched)
        stage = f"not_found_by_{searched[0]}" if len(searched) == 1 else "not_found_by_either"
        return stage, f"It is not among {looked}." if searched else "No retriever of this mode was asked."
    at = ", ".join(f"number {ranks[name]} by {name}" for name in searched if ranks[name] is not None)
    return "fused_out", f"It was found ({at}) and is not among the {sizes['fused']} that the fusion kept."


def _answered(answer: GeneratedAnswer, expected: ExpectedPassage) -> tuple[str, str]:
    if answer.meta.get("status") in ("not_found", "refused"):
        return "refused", "It is in the context, and the answer is that the sources do not say this."
    cited = [citation for citation in answer.meta.get("citations", []) if citation["parent_id"] in expected.parent_ids]
    claims, words = split_claims(answer.data), folded(expected.text)
    repeated = words in folded(claims.text)
    quotes = filter(None, (folded(citation.get("quote", "")) for citation in cited))
    if cited and (expected.split or repeated or any(words in quote or quote in words for quote in quotes)):
        return "nothing_lost", "The answer cites it."
    if cited:
        return "not_used", "The answer cites another place of the passage and does not show these words."
    checker = ClaimChecker({place: parent.content or "" for place, parent in enumerate(expected.parents, start=1)})
    if (words and repeated) or any(
        claim.support.verdict == "supported" or claim.support.same_words for claim in checker.check(claims)
    ):
        return "not_cited", "The answer says what the passage says and cites another passage."
    return "not_used", "It is in the context, and nothing in the answer comes from it."


STAGES = ("bm25", "vectors", "fused", "fetched", "ranked", "context")
_CLASSES = {
    "bm25": ".*BM25.*|MultiQueryTextRetriever",
    "vectors": ".*EmbeddingRetriever",
    "joined": "DocumentJoiner",
    "fused": "LanguageBalancer",
    "fetched": "ParentDocumentFetcher",
}
_OUTPUTS = ("queries", "documents", "passages", "context", "answers")


class TracedMode:
    """Asks a mode and records what passes between its stages, which are found by their classes, not by their names."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        pipeline = runner.pipeline
        self.parts: dict[str, Any] = {name: pipeline.get_component(name) for name in pipeline.graph.nodes}
        kinds = {name: type(part).__name__ for name, part in self.parts.items()}
        found = {
            stage: next((name for name, kind in kinds.items() if re.fullmatch(pattern, kind)), None)
            for stage, pattern in _CLASSES.items()
        }
        joined = found.pop("joined")
        found["fused"] = found["fused"] or joined or found["bm25"] or found["vectors"]
        self.stages = {stage: name for stage, name in found.items() if name}
        declared = pipeline.metadata["outputs"]
        self.outputs = [
            name for name in _OUTPUTS if name in declared and declared[name].partition(".")[0] in self.parts
        ]
        self.last, self.senders = self._last_stage()

    def ask(self, question: str, *, tenant_id: str, depth: int = 0, **options: Any) -> StageTrace:
        """Ask a question with options such as `history` and `top_k`, and find `depth` passages."""
        traced = self.runner.trace(question, tenant_id=tenant_id, outputs=self._wanted(), **options)
        found = self._found(question, tenant_id, options, traced["first"], depth) if depth else []
        return self._trace(question, traced, found)

    async def ask_async(self, question: str, *, tenant_id: str, **options: Any) -> StageTrace:
        """Ask a question like `ask` within an event loop, without finding more passages."""
        traced = await self.runner.trace_async(question, tenant_id=tenant_id, outputs=self._wanted(), **options)
        return self._trace(question, traced, [])

    def _wanted(self) -> list[str]:
        targets = [f"{name}.documents" for name in self.stages.values()]
        return list(dict.fromkeys([*self.outputs, *targets, *self.senders.values()]))

    def _trace(self, question: str, traced: dict[str, Any], found: list[Document]) -> StageTrace:
        outputs = traced["outputs"]
        queries = outputs.get("queries") or question
        lists = {name: outputs.get(f"{stage}.documents") for name, stage in self.stages.items()}
        lists |= {name: lists.get(name) or [] for name in ("fused", "fetched")}
        lists |= {"ranked": outputs.get("documents") or lists["fetched"], "context": outputs.get("passages")}
        return StageTrace(
            {name: lists[name] for name in STAGES if lists.get(name) is not None},
            next(iter(outputs.get("answers") or []), None),
            [queries] if isinstance(queries, str) else list(queries),
            found,
            traced,
        )

    def _found(
        self, question: str, tenant_id: str, options: dict[str, Any], first: dict[str, Any], depth: int
    ) -> list[Document]:
        """Run the last stage of the first attempt again for more passages or, if need be, the whole mode."""
        if not self.last:
            deeper = {**options, "top_k": depth}
            deep = self.runner.trace(question, tenant_id=tenant_id, outputs=["documents"], **deeper)
            return (deep["first"]["documents"] or [])[:depth]
        if first.get("documents") is None:
            return []
        given = {socket: first[target] for socket, target in self.senders.items()}
        for name, value in (("query", question), ("tenant_id", tenant_id)):
            for target in self.runner.pipeline.metadata["inputs"].get(name, ()):
                stage, _, socket = target.partition(".")
                if stage == self.last:
                    given[socket] = value
        known = {socket: value for socket, value in given.items() if value is not None}
        documents: list[Document] = self.parts[self.last].run(**known, top_k=depth)["documents"]
        return documents[:depth]

    def _last_stage(self) -> tuple[str, dict[str, str]]:
        """Find the stage behind `documents`, if the input `top_k` goes to it alone, and where its inputs come from."""
        metadata = self.runner.pipeline.metadata
        last = metadata["outputs"].get("documents", "").partition(".")[0]
        graph = self.runner.pipeline.graph
        edges = list(graph.in_edges(last, data=True)) if last in graph else []
        plain = not any(data["to_socket"].is_variadic for _, _, data in edges)
        if metadata["inputs"].get("top_k") != [f"{last}.top_k"] or not plain:
            return "", {}
        return last, {data["to_socket"].name: f"{sender}.{data['from_socket'].name}" for sender, _, data in edges}
