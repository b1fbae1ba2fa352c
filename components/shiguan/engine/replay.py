"""Holds a receipt against the library of today: what became of its passages, and the prompt that they made."""

from functools import partial
from typing import Any

from haystack import Document
from haystack.dataclasses import ChatMessage, ChatRole, TextContent

from shiguan.answer.prompt_file_builder import PromptFileBuilder
from shiguan.engine.loading import load_pipeline, pipeline_path
from shiguan.engine.receipts import CitedSpan, ReadPassage, Receipt, text_sha256
from shiguan.errors import ConfigurationError
from shiguan.llm.prompt_rendering import messages_sha256
from shiguan.llm.source_blocks import SourceBlock, render_sources
from shiguan.memory.earlier_turns_fetcher import earlier_turn, read_block
from shiguan.tenants import of_tenant, where

_LOST = "not in the library as it was read"


class Replay:
    """A receipt beside the passages of one tenant; whoever else's it names are not there."""

    def __init__(self, receipt: Receipt, parents: Any, *, tenant_id: str) -> None:
        self.receipt = receipt
        self._parents = parents
        self._owned = partial(of_tenant, tenant_id)
        self._read = {passage.id: passage for passage in receipt.passages}
        ids = sorted({*self._read, *(citation.parent_id for citation in receipt.answer.citations)})
        self._found = {parent.id: parent for parent in self._where("id", "in", ids)} if ids else {}

    @property
    def is_stale(self) -> bool:
        """Whether a passage that the answer cites is not there any more as it was."""
        cited = (one for one in self.receipt.answer.citations if not _is_outside(one))
        return not all(_stands(self._found.get(one.parent_id), one) for one in cited)

    @property
    def lost(self) -> list[int]:
        return [one.number for one in self.receipt.passages if _as_read(self._found.get(one.id), one) is None]

    def citations(self) -> list[dict[str, Any]]:
        """
        Tell for each citation its `state`, and `now`, where its words stand if that is another place.

        The words `stands` where they stood; have `moved` to another passage or span; the source `changed`, and is there
        without them; or it is `gone`. What a tool found `outside` the library cannot be looked at again.
        """
        told = [{**one.model_dump(), "state": "stands", "now": None} for one in self.receipt.answer.citations]
        pairs = zip(told, self.receipt.answer.citations, strict=True)
        lost = [(entry, one) for entry, one in pairs if not _stands(self._found.get(one.parent_id), one)]
        for entry, one in lost:
            entry["state"] = "outside" if _is_outside(one) else "gone"
        lost = [(entry, one) for entry, one in lost if not _is_outside(one)]
        names = {meta.get("source") for meta in self._parents.list_meta(self._owned(), ["source"])} if lost else set()
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
        """Build the prompt again: messages, none if that fails, and why they are not, byte by byte, what was sent."""
        if not self.receipt.prompt:
            return [], ["no model was asked with one"]
        try:
            return self._rebuilt(self.receipt.prompt, self.receipt.deployment, self.receipt.answer.mode)
        except (ConfigurationError, AttributeError, KeyError, TypeError, ValueError) as error:
            return [], [f"it cannot be built: {error}"]

    def _rebuilt(self, sent: dict[str, Any], deployment: str, mode: str) -> tuple[list[dict[str, str]], list[str]]:
        builders = [one for _, one in load_pipeline(deployment, mode).walk() if isinstance(one, PromptFileBuilder)]
        builder = next((one for one in builders if (one.prompt or "template") == sent["prompt"]), None)
        if builder is None:
            raise ConfigurationError(f"the mode `{mode}` has no prompt of that name any more")
        rendered = sent["prompt_rendered"]
        earlier = [self._message(one, builder) for one in rendered["earlier"]]
        variables = {**rendered["variables"], "context": self._context(rendered), "earlier": earlier}
        messages = builder.run(**variables)["prompt"]
        shown = [{"role": str(message.role.value), "text": message.text or ""} for message in messages]
        if messages_sha256(messages) == rendered["sha256"]:
            return shown, []
        path, meta, layers = pipeline_path(deployment, mode), messages[-1].meta, sent.get("prompt_layers", {})
        changed = [name for name, sha256 in meta.get("prompt_layers", {}).items() if layers.get(name) != sha256]
        changed += ["the prompt's file"] * (meta["prompt_hash"] != sent["prompt_hash"])
        changed += [path.name] * (text_sha256(path.read_text(encoding="utf-8")) != self.receipt.mode_sha256)
        reasons = [f"passage [{number}] is {_LOST}" for number in self.lost] + [f"{name} changed" for name in changed]
        return shown, reasons or ["something changed of which the receipt holds no hash"]

    def _where(self, field: str, operator: str, value: Any) -> list[Document]:
        found = self._parents.filter_documents(self._owned(where(field, operator, value)))
        return sorted(found, key=lambda parent: parent.meta.get("position", 0))

    def _place_of(self, citation: CitedSpan, parents: list[Document], *, whole: bool) -> dict[str, Any] | None:
        """Find the words of a citation in the same passage, or, unless only whole passages count, in another one."""
        passage = self._read.get(citation.parent_id)
        for parent in parents:
            if passage and _stands(parent, citation) and _as_read(parent, passage) is not None:
                return _place(parent, citation, citation.start)
        for parent in () if whole or not citation.quote else parents:
            if citation.quote in (parent.content or ""):
                return _place(parent, citation, (parent.content or "").index(citation.quote))
        return None

    def _message(self, made: dict[str, Any], builder: PromptFileBuilder) -> ChatMessage:
        if "prompt" not in made:
            return ChatMessage(_role=ChatRole(made["role"]), _content=[TextContent(made["text"])])
        if made["prompt"] == "earlier_turn":
            return earlier_turn(self._context(made), made["variables"])
        (*_, message) = builder.run(**made["variables"], context=self._context(made))["prompt"]
        return message

    def _context(self, made: dict[str, Any]) -> str:
        if not made["sources"] and not made["shown"] and made.get("prompt") == "earlier_turn":
            return ""
        blocks = []
        for passage in self.receipt.passages:
            if passage.number not in made["sources"]:
                continue
            parent = self._found.get(passage.id)
            if parent is None or _as_read(parent, passage) is None:
                blocks.append(SourceBlock(passage.number, f"({_LOST})", file=passage.source))
            else:
                blocks.append(read_block(parent, passage.model_dump()))
        return render_sources(blocks, made["shown"])


def _is_outside(citation: CitedSpan) -> bool:
    return getattr(citation, "origin", None) == "tool"


def _stands(parent: Document | None, citation: CitedSpan) -> bool:
    return parent is not None and (parent.content or "")[citation.start : citation.end] == citation.quote


def _as_read(parent: Document | None, passage: ReadPassage) -> str | None:
    text = (parent.content or "") if parent else ""
    stretch = text if passage.cut is None else text[passage.cut[0] : passage.cut[1]]
    return stretch if parent and text_sha256(stretch) == passage.sha256 else None


def _place(parent: Document, citation: CitedSpan, start: int) -> dict[str, Any]:
    place = {name: parent.meta.get(name) for name in ("source", "section")}
    return {"parent_id": parent.id, **place, "start": start, "end": start + len(citation.quote)}
