"""Finds the expected passage, names the stage that lost it, with its rank at each, and sums the losses of a run up."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from haystack import Document, GeneratedAnswer

from shiguan.claims.checker import ClaimChecker
from shiguan.claims.claims import split_claims
from shiguan.evaluation.questions import GoldPassage, Question
from shiguan.retrieval.parent_document_fetcher import families_of
from shiguan.tenants import of_tenant, where
from shiguan.text.languages import fold_han


@dataclass(frozen=True)
class ExpectedPassage:
    """A passage that should have been found, as the library has it."""

    text: str
    parents: tuple[Document, ...]
    children: frozenset[str]
    split: bool = False

    @property
    def parent_ids(self) -> frozenset[str]:
        return frozenset(parent.id for parent in self.parents)

    def places(self) -> list[dict[str, Any]]:
        """Name the parents and where they stand."""
        return [
            {"id": p.id, "source": p.meta.get("source"), "section": p.meta.get("section", [])} for p in self.parents
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
        by_id = self._named(expected.strip())
        if by_id:
            return self._with_children(by_id, "")
        wanted = folded(expected)
        parents = [
            parent for parent, text in zip(self.parents(), self._folded, strict=True) if wanted and wanted in text
        ]
        return self._with_children(parents, expected) if parents else self._across(expected, wanted)

    def of_gold(self, gold: GoldPassage) -> ExpectedPassage:
        parents = [parent for parent in self.parents() if gold.stands_in(parent)]
        if not parents and gold.quote:
            return self.find(gold.quote)
        return self._with_children(parents, gold.quote)

    def of_question(self, question: Question) -> list[ExpectedPassage]:
        """Find what a question needs: its gold passages, or its gold documents at the answer's places, if marked."""
        found = [self.of_gold(gold) for gold in question.gold]
        for document in () if question.gold else sorted(question.gold_documents):
            places: list[tuple[int | None, int | None]] = [*question.spans.get(document, [])] or [(None, None)]
            # Several places in one document are alternatives, so that a passage with any of them will do.
            passages = [self.of_gold(GoldPassage(source=document, start=start, end=end)) for start, end in places]
            parents = {parent.id: parent for passage in passages for parent in passage.parents}
            children = frozenset[str]().union(*(passage.children for passage in passages))
            found.append(ExpectedPassage("", tuple(parents.values()), children))
        return found

    def parents(self) -> list[Document]:
        if self._parents is None:
            self._parents = sorted(
                self._where("parents"), key=lambda one: (one.meta.get("source_id", ""), one.meta.get("position", 0))
            )
            self._folded = [folded(parent.content or "") for parent in self._parents]
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

    def _across(self, expected: str, wanted: str) -> ExpectedPassage:
        """Look whether the words begin in one passage and end in the next one of the same source."""
        pairs = zip(self.parents(), self.parents()[1:], self._folded, self._folded[1:], strict=False)
        for first, second, head, tail in pairs:
            if first.meta.get("source_id") == second.meta.get("source_id") and wanted and wanted in head + tail:
                both = self._with_children([first, second], "")
                return ExpectedPassage(expected, both.parents, both.children, split=True)
        return ExpectedPassage(expected, (), frozenset())

    def _with_children(self, parents: Sequence[Document], text: str) -> ExpectedPassage:
        if not parents:
            return ExpectedPassage(text, (), frozenset())
        children = self._where("children", "meta.parent_id", "in", [parent.id for parent in parents])
        holding = [child for child in children if folded(text) in folded(child.content or "")] if text else children
        split = bool(text) and not holding
        return ExpectedPassage(text, tuple(parents), frozenset(child.id for child in holding or children), split=split)


def folded(text: str) -> str:
    """Write a text so that two spellings of the same words are equal."""
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
LOST = "Where it was lost"  # the heading under which reports sum it up


@dataclass(frozen=True)
class StageTrace:
    """The lists of one run, each best first; None for a stage that the mode does not have."""

    bm25: list[Document] | None
    vectors: list[Document] | None
    fused: list[Document]
    fetched: list[Document]
    ranked: list[Document]
    read: list[Document] | None = None
    answer: GeneratedAnswer | None = None
    asked: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Attribution:
    """Where a passage was lost."""

    stage: str
    reason: str
    ranks: dict[str, int | None]
    sizes: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        return {"stage": self.stage, "label": LABELS[self.stage], **asdict(self)}


def attribute(trace: StageTrace, expected: ExpectedPassage) -> Attribution:
    """Follow a passage through the stages; any child of an expected parent counts, since the whole parent is read."""
    ids = expected.parent_ids
    children = {"bm25": trace.bm25, "vectors": trace.vectors, "fused": trace.fused}
    parents = {"fetched": trace.fetched, "ranked": trace.ranked, "context": trace.read}
    ranks: dict[str, int | None] = {}
    sizes: dict[str, int] = {}
    for name, found in {**children, **parents}.items():
        if found is not None:
            held = (document.id in ids or document.meta.get("parent_id") in ids for document in found)
            ranks[name] = next((rank for rank, right in enumerate(held, start=1) if right), None)
            sizes[name] = len(found)
    stage, reason = _lost(trace, expected, ranks, sizes)
    return Attribution(stage, reason, ranks, sizes)


def loss_of(trace: StageTrace, expected: Sequence[ExpectedPassage]) -> Attribution | None:
    """Say where a question lost the first of its passages."""
    order = list(LABELS)
    found = [attribute(trace, passage) for passage in expected]
    return min(found, key=lambda one: order.index(one.stage), default=None)


def lost_section(stages: Iterable[str]) -> dict[str, Any]:
    counts = Counter(stages)
    total = counts.total()
    if not total:
        return {}
    seen = [(label, counts[stage]) for stage, label in LABELS.items() if counts[stage]]
    told = ", ".join(f"{count} {label}" for label, count in seen)
    text = f"Of {total} question{'' if total == 1 else 's'} that went wrong: {told}."
    rows = [[label, f"{count}", f"{count / total:.2f}"] for label, count in seen]
    return {LOST: {"text": text, "columns": ["where", ">questions", ">share"], "rows": rows}}


def _lost(
    trace: StageTrace, expected: ExpectedPassage, ranks: dict[str, int | None], sizes: dict[str, int]
) -> tuple[str, str]:
    if not expected.parents:
        return "never_ingested", "No passage of the library has these words."
    retrieved = _retrieval(expected, ranks, sizes)
    if retrieved is not None:
        return retrieved
    if ranks["fetched"] is None:
        families = families_of(trace.fused)
        ranks_of = (rank for rank, family in enumerate(families, start=1) if family in expected.parent_ids)
        place = next(ranks_of, len(families) + 1)
        if place > sizes["fetched"]:
            return "ranked_out", f"It came {place}. among the passages, and {sizes['fetched']} were read."
        return "parent_not_fetched", "Its retrieval unit was found and the stored passage could not be read."
    if ranks["ranked"] is None:
        return "ranked_out", f"It was {ranks['fetched']}. before the ranking, which kept {sizes['ranked']}."
    if trace.read is not None:
        if ranks["context"] is None:
            return "cut_by_budget", f"It was {ranks['ranked']}., and {sizes['context']} passages stand in the context."
        if not any(expected.is_read_in(document) for document in trace.read):
            return "cut_by_budget", "The passage stands in the context without the expected words."
    if trace.answer is None:
        return "nothing_lost", "It is among the passages that are read."
    return _answered(trace.answer, expected)


def _retrieval(
    expected: ExpectedPassage, ranks: dict[str, int | None], sizes: dict[str, int]
) -> tuple[str, str] | None:
    searched = [name for name in ("bm25", "vectors") if name in ranks]
    if ranks["fused"] is not None:
        return None
    if all(ranks[name] is None for name in searched):
        if expected.split:
            return "split_across_children", "The expected words stand in no single unit, and no part was found."
        if not searched:
            return "not_found_by_either", "No retriever of this mode was asked."
        if searched == ["bm25"]:
            return "not_found_by_bm25", f"It is not among the {sizes['bm25']} found by words; vectors were not asked."
        if searched == ["vectors"]:
            return "not_found_by_vectors", f"It is not among the {sizes['vectors']} found by vectors."
        neither = f"It is neither among the {sizes['bm25']} found by words nor the {sizes['vectors']} found by vectors."
        return "not_found_by_either", neither
    at = ", ".join(f"{ranks[name]}. by {name}" for name in searched if ranks[name] is not None)
    return "fused_out", f"It was found ({at}) and is not among the {sizes['fused']} that the fusion kept."


def _answered(answer: GeneratedAnswer, expected: ExpectedPassage) -> tuple[str, str]:
    if answer.meta.get("status") == "not_found":
        return "refused", "It stands in the context, and the answer is that the sources do not say this."
    if any(citation["parent_id"] in expected.parent_ids for citation in answer.meta.get("citations", [])):
        return "nothing_lost", "The answer cites it."
    said = split_claims(answer.data)
    checker = ClaimChecker({place: one.content or "" for place, one in enumerate(expected.parents, start=1)})
    quoted = expected.text and folded(expected.text) in folded(said.text)
    if quoted or any(one.support.verdict == "supported" for one in checker.check(said)):
        return "not_cited", "The answer says what the passage says and cites another one."
    return "not_used", "It stands in the context, and nothing in the answer comes from it."
