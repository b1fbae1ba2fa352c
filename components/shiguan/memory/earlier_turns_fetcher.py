"""Writes the earlier turns of a conversation as messages, byte for byte as the prompts before this one had them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from haystack import Document, component
from haystack.dataclasses import ChatMessage

from shiguan.claims.claims import neutral_answer
from shiguan.llm.prompt_rendering import LAST_TURNS, clean_history, render_prompt
from shiguan.llm.source_blocks import SourceBlock, neutral_text, numbers_in, render_sources, source_block
from shiguan.models.token_counter import TokenCounter
from shiguan.tenants import all_of, require_filters, tenant_of, where
from shiguan.text.languages import detect_language
from shiguan.text.passages import with_gaps

_LONGEST_ANSWER = 4_000
_HIGHEST_NUMBER = 900
"""A mark has three digits."""
_MOST_NUMBERS = 1_000
_FULL = (
    "The conversation has outgrown its prompt: what was said until now is told by its summary, and passages are read "
    "anew."
)
_CHANGED = (
    "Passages of earlier turns are gone or beyond this question's filters: what was said until now is told by its "
    "summary, and passages are read anew."
)


@component
class EarlierTurnsFetcher:
    """
    Gives the earlier turns of a conversation as the messages with which every further prompt begins.

    A provider keeps what it has computed for the beginning of a prompt. So the prompt of a turn is that of the turn
    before with something behind it: each earlier turn is the message of a person, with the passages that were new then,
    and one of an assistant; a passage keeps its number. Passages are read from the store again, under the tenant's
    filters and those of this question, so that what was deleted or is not to be read is in no prompt.

    Where the turns have more than `token_budget` tokens, a passage is not there any more, or two turns at once gave a
    number twice, the messages begin anew: there are none, `opening` has the conversation's summary, and a warning says
    so. A caller's own history comes as messages without passages.

    Example:
    ```python
    turn = {"number": 1, "question": "Who was An Lushan?", "answer": "A general [1].", "language": "en", "opening": "",
            "sent": True, "read": [{"number": 1, "id": "…"}]}
    fetcher.run(filters=filters, thread={"turns": [turn]})["messages"]
    # [ChatMessage(user, "Facts from the sources:…"), ChatMessage(assistant, "A general [1].")]
    ```
    """

    def __init__(self, document_store: Any, *, token_budget: int = 6000) -> None:
        """
        Name the store.

        :param document_store: Where parents are kept.
        :param token_budget: Most tokens that the earlier turns may have.
        :raises ValueError: If the budget is not positive.
        """
        if token_budget < 1:
            raise ValueError(f"`token_budget` must be positive, got {token_budget}.")
        self.document_store = document_store
        self.token_budget = token_budget
        self._counter = TokenCounter()

    def warm_up(self) -> None:
        """Load the tokenizer; a second call does nothing."""
        self._counter.warm_up()

    @component.output_types(
        messages=list[ChatMessage],
        documents=list[Document],
        numbers=dict[str, int],
        opening=str,
        first=int | None,
        thread=dict[str, Any],
        warnings=list[str],
    )
    def run(
        self,
        filters: dict[str, Any],
        thread: dict[str, Any] | None = None,
        history: list[Any] | None = None,
    ) -> dict[str, Any]:
        """
        Fetch.

        :param filters: What may be read, from `TenantFilter`.
        :param thread: What the engine kept of the conversation: `turns`, the `numbers` of passages before these, and
            the `summary` of all; None or empty for none.
        :param history: A caller's own turns; read where there is no thread.
        :returns: `messages`, of the person and of the assistant in turn; `documents`, the passages that they show, with
            `meta.number` and `meta.earlier`; `numbers`, what passages are called, by id; `opening`, the summary where
            the messages begin anew; `first`, the number of the first turn that they tell, or None; `thread`, what the
            engine keeps with the turn that is asked now; `warnings`.
        :raises RefusedError: If the filters name no tenant.
        """
        filters = require_filters(filters, type(self).__name__)
        tenant_of(filters)
        turns = (thread or {}).get("turns") or []
        if not turns:
            return _result(_paired(clean_history(history, max_turns=LAST_TURNS)[0]), thread={"start": 0})
        self.warm_up()
        numbers, clear = _numbers(turns, (thread or {}).get("numbers") or {})
        wanted = list({one["id"]: None for turn in turns if turn["sent"] for one in turn["read"]})
        found = {one.id: one for one in self._fetch(wanted, filters)} if wanted and clear else {}
        whole = clear and len(found) == len(wanted)
        messages, documents = _written(turns, found) if whole else ([], [])
        if whole and sum(self._counter.count(message.text or "") for message in messages) <= self.token_budget:
            first = turns[0]["number"]
            return _result(messages, documents=documents, numbers=numbers, first=first, thread={"start": first})
        if max(numbers.values(), default=0) > _HIGHEST_NUMBER:
            numbers = {}
        numbers = dict(list(numbers.items())[-_MOST_NUMBERS:])
        opening = neutral_text(str((thread or {}).get("summary") or ""))
        kept = {"start": 0, "opening": opening, "numbers": numbers}
        warning = _FULL if whole else _CHANGED
        return _result([], numbers=numbers, opening=opening, thread=kept, warnings=[warning])

    def _fetch(self, ids: list[str], filters: dict[str, Any]) -> list[Document]:
        found: list[Document] = self.document_store.filter_documents(all_of(where("id", "in", ids), filters))
        return found


def _result(messages: list[ChatMessage], *, thread: dict[str, Any], **more: Any) -> dict[str, Any]:
    nothing: dict[str, Any] = {"documents": [], "numbers": {}, "opening": "", "first": None, "warnings": []}
    return {"messages": messages, **nothing, "thread": thread, **more}


def _numbers(turns: Sequence[Mapping[str, Any]], before: Mapping[str, int]) -> tuple[dict[str, int], bool]:
    """Say what passages are called, and whether no number was given twice; of two the first holder keeps it."""
    numbers = dict(before)
    holders = {number: name for name, number in numbers.items()}
    clear = True
    for one in (one for turn in turns for one in turn["read"]):
        holder = holders.setdefault(one["number"], one["id"])
        clear = clear and holder == one["id"] and numbers.get(one["id"], one["number"]) == one["number"]
        if holder == one["id"]:
            numbers.setdefault(one["id"], one["number"])
    return numbers, clear


def _written(
    turns: Sequence[Mapping[str, Any]], found: Mapping[str, Document]
) -> tuple[list[ChatMessage], list[Document]]:
    """Write the turns, each passage where it was shown first, and give the passages."""
    messages: list[ChatMessage] = []
    shown: dict[str, Document] = {}
    for turn in turns:
        read = turn["read"] if turn["sent"] else []
        blocks = [read_block(found[one["id"]], one) for one in read if one["id"] not in shown]
        again = [one["number"] for one in read if one["id"] in shown]
        shown.update((one["id"], _as_read(found[one["id"]], one)) for one in read if one["id"] not in shown)
        context = render_sources(blocks, again) if read else ""
        known = {document.meta["number"] for document in shown.values()}
        answer = neutral_answer(str(turn["answer"])[:_LONGEST_ANSWER], known)
        asked = {
            "question": neutral_text(turn["question"]),
            "language": turn["language"] or detect_language(turn["question"]),
            "opening": turn["opening"],
        }
        messages += [earlier_turn(context, asked), ChatMessage.from_assistant(answer or "…")]
    return messages, list(shown.values())


def earlier_turn(context: str, asked: Mapping[str, str]) -> ChatMessage:
    """Write what a person asked, with the passages that were read; its meta says what it is made of."""
    message = _rendered(context, **asked)
    sources, shown = numbers_in(context)
    rendered = {"variables": dict(asked), "sources": sources, "shown": shown}
    return replace(message, _meta={**message.meta, "prompt_rendered": rendered})


@lru_cache(256)
def _rendered(context: str, **asked: str) -> ChatMessage:
    """Render once what every further turn of the conversation begins with."""
    (message,) = render_prompt("earlier_turn", context=context, **asked)
    return message


def read_block(parent: Document, read: Mapping[str, Any]) -> SourceBlock:
    """Write a stored passage as it was read once: its number, the stretch of it, and the gaps or the summary."""
    text, cut = parent.content or "", read.get("cut")
    if read.get("summary") is not None:
        text = read["summary"]
    elif read.get("kept"):
        text = with_gaps(text, [(start, end) for start, end in read["kept"]])
    elif cut:
        text = text[cut[0] : cut[1]]
    return source_block(replace(parent, meta={**parent.meta, "number": read["number"]}), text)


def _as_read(parent: Document, read: Mapping[str, Any]) -> Document:
    cut = read.get("cut")
    content = (parent.content or "")[cut[0] : cut[1]] if cut else parent.content
    meta = {**parent.meta, **{name: value for name, value in read.items() if name != "id"}, "earlier": True}
    return replace(parent, content=content, meta=meta, score=None, embedding=None, sparse_embedding=None)


def _paired(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Let a person and the assistant speak in turn, the person first and the assistant last, as models expect."""
    paired: list[ChatMessage] = []
    for message in messages:
        if paired and paired[-1].role == message.role:
            paired[-1] = replace(message, _content=[*paired[-1]._content, *message._content])
        elif paired or message.role.value == "user":
            paired.append(message)
    return paired[: len(paired) // 2 * 2]
