"""Finds in the library what a person expected an answer to rest on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from haystack import Document

from shiguan.evaluation.questions import GoldPassage, Question
from shiguan.text.han import fold_han


@dataclass(frozen=True)
class ExpectedPassage:
    """A passage that should have been found, as the library has it."""

    text: str
    parents: tuple[Document, ...]
    children: frozenset[str]
    split: bool = False

    @property
    def parent_ids(self) -> frozenset[str]:
        """The ids of the parents."""
        return frozenset(parent.id for parent in self.parents)

    def is_read_in(self, document: Document) -> bool:
        """Tell whether a passage as it was read still has the expected words."""
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
        """Find the passage that a person named."""
        by_id = self._named(expected.strip())
        if by_id:
            return self._with_children(by_id, "")
        wanted = folded(expected)
        parents = [
            parent for parent, text in zip(self.parents(), self._folded, strict=True) if wanted and wanted in text
        ]
        return self._with_children(parents, expected) if parents else self._across(expected, wanted)

    def of_gold(self, gold: GoldPassage) -> ExpectedPassage:
        """Find a gold passage."""
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
        """Give every passage of the tenant, in the order of the sources."""
        if self._parents is None:
            owned = {"field": "meta.tenant_id", "operator": "==", "value": self.tenant_id}
            found = self.stores["parents"].filter_documents(owned)
            self._parents = sorted(found, key=lambda one: (one.meta.get("source_id", ""), one.meta.get("position", 0)))
            self._folded = [folded(parent.content or "") for parent in self._parents]
        return self._parents

    def _where(self, store: str, field: str, operator: str, value: Any) -> list[Document]:
        tenant = {"field": "meta.tenant_id", "operator": "==", "value": self.tenant_id}
        both = [tenant, {"field": field, "operator": operator, "value": value}]
        found: list[Document] = self.stores[store].filter_documents({"operator": "AND", "conditions": both})
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
