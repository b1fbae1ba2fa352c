"""Holds a receipt against the library of today: what became of its passages, and the prompt that they made."""

from collections.abc import Sequence
from typing import Any

from haystack import Document

from shiguan.answer.prompt_file_builder import PromptFileBuilder
from shiguan.context.passage_spans import with_gaps
from shiguan.engine.loading import pipeline_path, read_definition
from shiguan.engine.receipts import CitedSpan, ReadPassage, Receipt, text_sha256
from shiguan.errors import ConfigurationError
from shiguan.llm.prompt_rendering import messages_sha256
from shiguan.llm.source_blocks import SourceBlock, render_sources, source_block
from shiguan.tenants import TENANT_FIELD


class Replay:
    """A receipt beside the passages of one tenant; whoever else's it names are not there."""

    def __init__(self, receipt: Receipt, parents: Any, *, tenant_id: str) -> None:
        self.receipt = receipt
        self._parents = parents
        self._tenant = {"field": TENANT_FIELD, "operator": "==", "value": tenant_id}
        self._read = {passage.id: passage for passage in receipt.passages}
        ids = sorted({*self._read, *(citation.parent_id for citation in receipt.answer.citations)})
        self._found = {parent.id: parent for parent in self._where("id", "in", ids)} if ids else {}

    @property
    def is_stale(self) -> bool:
        """Whether a passage that the answer cites is not there any more as it was."""
        return not all(_stands(self._found.get(one.parent_id), one) for one in self.receipt.answer.citations)

    @property
    def lost(self) -> list[int]:
        """The numbers of the passages that could not be read today as they were."""
        return [one.number for one in self.receipt.passages if _as_read(self._found.get(one.id), one) is None]

    def citations(self) -> list[dict[str, Any]]:
        """
        Tell for each citation its `state`, and `now`, where its words stand if that is another place.

        The words `stands` where they stood; have `moved` to another passage or span; the source `changed`, and is there
        without them; or it is `gone`.
        """
        told = [{**one.model_dump(), "state": "stands", "now": None} for one in self.receipt.answer.citations]
        pairs = zip(told, self.receipt.answer.citations, strict=True)
        lost = [(entry, one) for entry, one in pairs if not _stands(self._found.get(one.parent_id), one)]
        for entry, _ in lost:
            entry["state"] = "gone"
        names = {meta.get("source") for meta in self._parents.list_meta(self._tenant, ["source"])} if lost else set()
        own = {one.source for _, one in lost}
        # Source by source, so that a large library is never in memory. In others than the cited ones only a whole
        # passage counts: a few words may stand there by chance.
        for name in sorted(names - {None}, key=lambda name: (name not in own, name)):
            parents = self._where("meta.source", "==", name)
            for entry, one in lost:
                if entry["now"] is None:
                    entry["now"] = self._place_of(one, parents, whole=name != one.source)
                    if entry["now"] is not None or name == one.source:
                        entry["state"] = "changed" if entry["now"] is None else "moved"
        return told

    def prompt(self) -> tuple[list[dict[str, str]], list[str]]:
        """
        Build the prompt again.

        Messages with `role` and `text`, and why they are not what was sent; with no such reason they are, byte by byte.
        No messages where they cannot be built at all.
        """
        sent, receipt = self.receipt.prompt, self.receipt
        if sent is None:
            return [], ["the receipt holds no prompt, since no model was asked to write the answer"]
        try:
            path = pipeline_path(receipt.deployment, receipt.answer.mode)
            builder = _builder(read_definition(receipt.deployment, receipt.answer.mode), sent.name)
            # Whether gaps are marked is the context's choice, for all passages alike.
            for gaps in (True, False):
                messages = builder.run(**{**sent.variables, "context": self._context(gaps=gaps)})["prompt"]
                shown = [{"role": str(message.role.value), "text": message.text or ""} for message in messages]
                if messages_sha256(messages) == sent.sha256:
                    return shown, []
        except (ConfigurationError, ValueError, TypeError) as error:
            return [], [f"the prompt cannot be built: {error}"]
        before, today = {sent.name: sent.hash, **sent.layers}, messages[-1].meta
        today = {sent.name: today["prompt_hash"], **today.get("prompt_layers", {})}
        changed = [f"`{name}` of prompts/" for name in sorted(before | today) if before.get(name) != today.get(name)]
        if text_sha256(path.read_text(encoding="utf-8")) != receipt.mode_sha256:
            changed.append(f"the mode's file {path.name}")
        reasons = [f"passage [{number}] is not in the library as it was read" for number in self.lost]
        reasons += [f"{name} changed" for name in changed]
        return shown, reasons or ["something changed of which the receipt holds no hash"]

    def _where(self, field: str, operator: str, value: Any) -> list[Document]:
        condition = {"field": field, "operator": operator, "value": value}
        filters = {"operator": "AND", "conditions": [self._tenant, condition]}
        return sorted(self._parents.filter_documents(filters), key=lambda parent: parent.meta.get("position", 0))

    def _place_of(self, citation: CitedSpan, parents: Sequence[Document], *, whole: bool) -> dict[str, Any] | None:
        """Find the words of a citation in the same passage, or, unless only whole passages count, in another one."""
        passage = self._read.get(citation.parent_id)
        for parent in parents:
            if passage and _stands(parent, citation) and _as_read(parent, passage) is not None:
                return _place(parent, citation.start, citation.end)
        for parent in () if whole or not citation.quote else parents:
            start = (parent.content or "").find(citation.quote)
            if start >= 0:
                return _place(parent, start, start + len(citation.quote))
        return None

    def _context(self, *, gaps: bool) -> str:
        blocks = []
        for passage in self.receipt.passages:
            parent = self._found.get(passage.id)
            text = _as_read(parent, passage)
            if parent is None or text is None:
                blocks.append(SourceBlock(passage.number, "(not in the library as it was read)", file=passage.source))
                continue
            if passage.cut and (passage.kept or gaps):
                text = with_gaps(parent.content or "", passage.kept or [passage.cut])
            text = text if passage.summary is None else passage.summary
            blocks.append(source_block(Document(content=text, meta={**parent.meta, "number": passage.number})))
        return render_sources(blocks)


def _stands(parent: Document | None, citation: CitedSpan) -> bool:
    return parent is not None and (parent.content or "")[citation.start : citation.end] == citation.quote


def _as_read(parent: Document | None, passage: ReadPassage) -> str | None:
    text = (parent.content or "") if parent else ""
    stretch = text if passage.cut is None else text[passage.cut[0] : passage.cut[1]]
    return stretch if parent and text_sha256(stretch) == passage.sha256 else None


def _place(parent: Document, start: int, end: int) -> dict[str, Any]:
    source, section = parent.meta.get("source", ""), parent.meta.get("section") or []
    return {"parent_id": parent.id, "source": source, "section": section, "start": start, "end": end}


def _builder(definition: dict[str, Any], name: str) -> PromptFileBuilder:
    """Make the builder of a prompt as a mode's file sets it up."""
    kind = f"{PromptFileBuilder.__module__}.{PromptFileBuilder.__name__}"
    for spec in definition["components"].values():
        settings = spec.get("init_parameters") or {}
        if spec["type"] == kind and (settings.get("prompt") or "template") == name:
            return PromptFileBuilder(**settings)
    raise ConfigurationError(f"the mode's file has no prompt `{name}` any more")
