"""Reads a question together with the turns before it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from haystack import Document, component
from haystack.components.embedders.types.protocol import TextEmbedder
from haystack.dataclasses import ChatMessage

from shiguan.conversations import ConversationStore, SummaryNode, Turn, as_messages
from shiguan.errors import StoreError
from shiguan.llm.calls import Outcome, warm_up_generator
from shiguan.llm.prompts import clean_history
from shiguan.llm.source_blocks import neutral_text
from shiguan.memory.earlier_turns import (
    EarlierTurns,
    anew,
    in_turns,
    numbers_of,
    passages_of,
    start_of,
    turns_in_prompts,
    whole_summary,
    written_turns,
)
from shiguan.memory.recollection import LAST_TURNS, fragments
from shiguan.memory.summary_tree import SummaryTree
from shiguan.memory.unsearched import authors, book_list, unsearched_answer
from shiguan.models.token_counter import TokenCounter
from shiguan.reading.question import asked_work, asks_for_books, is_titled, read_question
from shiguan.reading.text import read_text
from shiguan.resources import read_patterns
from shiguan.serialization import Serializable
from shiguan.tenants import FileStore, all_of, require_filters, tenant_of, where
from shiguan.text.follow_ups import asked_of_another, needs_context, salient_terms, says_enough

_TURNS = 10
_HIGHEST_NUMBER = 900
"""A mark has three digits."""
_MOST_NUMBERS = 1_000
_FULL = "The conversation no longer fits into its prompt: earlier turns are summarised, and passages are read again."
_CHANGED = (
    "Passages of earlier turns are gone or beyond this question's filters: what was said until now is given as a "
    "summary, and passages are read anew."
)
_phrases = partial(read_patterns, Path(__file__).with_name("conversation_phrases.yaml"))


@dataclass(frozen=True)
class _Conversation:
    """The last turns, those in the prompts, the summaries and warnings; `own` are a caller's turns for the prompt."""

    turns: list[Turn] = field(default_factory=list)
    in_prompts: list[Turn] = field(default_factory=list)
    nodes: list[SummaryNode] = field(default_factory=list)
    messages: list[ChatMessage] = field(default_factory=list)
    own: list[ChatMessage] | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        return whole_summary(self.nodes)


@component
class ConversationReader(Serializable):
    """
    Makes a question complete by itself, and gives the prompt what was said before it.

    What was said is kept in `conversation_store` under the conversation's id, or comes with the question as `history`,
    which then counts instead and is not kept.

    - A question that is complete by itself is searched unchanged. One that depends on the turns before it, by rule (a
      pronoun without a name, something left out), is searched with the most informative words of these turns.
    - A question about the conversation itself is answered with what was said, status `recalled`; a greeting, thanks,
      a sum and the question which books there are are answered at once, status `unsearched`.
    - Each earlier turn becomes a user message, with the passages that were new then, and an assistant message, byte for
      byte as in the prompts before, so that a provider's prefix cache hits. Passages are read from the store again,
      under the tenant's filters and those of this question, and keep their numbers. Where the turns exceed
      `token_budget`, or a passage is gone, the messages start over with the conversation's summary.
    - Fragments of older turns that the question is about come as `memory`: they are not passages, and are never cited.

    Example:
    ```python
    reader.run(query="And how did he die?", filters=filters, history=history)
    # {"question": "And how did he die?", "query": "And how did he die? Zhang Xun Suiyang", "source": "both", …}
    ```
    """

    def __init__(
        self,
        conversation_store: ConversationStore,
        *,
        document_store: Any,
        text_embedder: TextEmbedder,
        summary_tree: SummaryTree | None = None,
        token_budget: int = 12000,
    ) -> None:
        """
        Set the stores and the models.

        :param conversation_store: Where conversations are kept.
        :param document_store: Where the passages are that earlier answers read.
        :param text_embedder: Embeds the question, to find summaries that it is about.
        :param summary_tree: Summarizes a conversation after an answer was sent; None for no summaries.
        :param token_budget: The most tokens that the earlier turns may take in a prompt.
        :raises ValueError: If the budget is not positive.
        """
        if token_budget < 1:
            raise ValueError(f"`token_budget` must be positive, got {token_budget}.")
        self.conversation_store = conversation_store
        self.document_store = document_store
        self.text_embedder = text_embedder
        self.summary_tree = summary_tree
        self.token_budget = token_budget
        self._counter = TokenCounter()

    def warm_up(self) -> None:
        """Load the embedder's model and the tokenizer; a second call does nothing."""
        warm_up_generator(self.text_embedder)
        self._counter.warm_up()

    @component.output_types(
        question=str,
        query=str,
        word_query=str,
        vector_query=str,
        source=str,
        history=list[ChatMessage],
        summary=str,
        memory=str,
        messages=list[ChatMessage],
        shown=list[Document],
        outcome=Outcome,
        thread=dict[str, Any],
        warnings=list[str],
    )
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        *,
        conversation_id: str | None = None,
        history: list[Any] | None = None,
        retrieval: str = "hybrid",
        language: str | None = None,
    ) -> dict[str, Any]:
        """
        Read a question.

        :param query: The question, as the user asked it.
        :param filters: Whose conversation and whose passages may be read, from `TenantFilter`.
        :param conversation_id: The conversation; None for none.
        :param history: A caller's own turns, `ChatMessage`s or `{"role", "content"}`; of these the last ten count, as
            many as the budget holds.
        :param retrieval: `words` or `vectors` to search in only one way: the other retriever then gets no query.
        :param language: The question's language; None to detect it.
        :returns: `question`, as it was asked; `query`, the standalone question, and the same for the retrievers as
            `word_query` and `vector_query`; or, where nothing is to be searched, `outcome` instead of these four.
            Besides these, `source` (`database`, `both` or `history`), `history` (the last turns), `summary`, `memory`,
            `messages` and `shown` (the passages with a number; the messages show those with content) for the prompt;
            `thread`, what is kept with this turn for the next prompt; `warnings`.
        :raises RefusedError: If the filters name no tenant, or the id cannot be one.
        """
        filters = require_filters(filters, type(self).__name__)
        conversation = self._read(tenant_of(filters), conversation_id, history)
        warnings = list(conversation.warnings)
        source, search = route_question(query, conversation.messages)
        if read_question(query).chapter is not None:
            # Its passages have the words of its heading, not those of the question.
            source, search = "database", " ".join([query, *_headings_in(filters)])
        spoken = language or read_text(query).language
        outcome = None
        if ready := unsearched_answer(query, spoken):
            outcome = Outcome("unsearched", texts=(ready,))
        elif asks_for_books(query) and isinstance(self.document_store, FileStore):
            outcome = Outcome("unsearched", texts=(book_list(self.document_store.list_files(filters), spoken),))
        elif ready := self._authors(query, filters, spoken):
            outcome = Outcome("unsearched", texts=(ready,))
        elif source == "history":
            found = fragments(query, [], conversation.turns, conversation.nodes)
            outcome = Outcome("recalled", texts=tuple(fragment.text for fragment in found))
        if outcome is not None:
            start = conversation.in_prompts[0].number if conversation.in_prompts else 0
            return {"outcome": outcome, "source": "history", "thread": {"start": start}, "warnings": warnings}
        earlier, problem = self._earlier(conversation, filters)
        ways = {"word_query": ("hybrid", "words"), "vector_query": ("hybrid", "vectors")}
        return {
            "question": query,
            "query": search,
            **{name: search for name, retrievals in ways.items() if retrieval in retrievals},
            "source": source,
            "history": conversation.messages,
            "summary": conversation.summary,
            "memory": "" if source == "database" else self._memory(search, conversation, earlier),
            "messages": earlier.messages,
            "shown": earlier.shown,
            "thread": earlier.thread,
            "warnings": [*warnings, *problem],
        }

    def _read(self, tenant_id: str, conversation_id: str | None, history: list[Any] | None) -> _Conversation:
        if history:
            messages, warnings = clean_history(history, max_turns=len(history))
            asked = [at for at, message in enumerate(messages) if message.role.value == "user"][-_TURNS:]
            messages = messages[asked[0] :] if asked else []
            paired = in_turns(messages)
            while paired and self._tokens(paired) > self.token_budget:
                paired = paired[2:]
            pairs = enumerate(zip(paired[::2], paired[1::2], strict=True), start=1)
            turns = [Turn(asked.text or "", reply.text or "", number=number) for number, (asked, reply) in pairs]
            return _Conversation(turns, messages=messages, own=paired, warnings=warnings)
        if conversation_id is None:
            return _Conversation()
        store = self.conversation_store
        try:
            turns = store.turns(tenant_id, conversation_id, last=_TURNS)
            nodes = store.nodes(tenant_id, conversation_id) if turns else []
            prompted = turns
            if turns and start_of(turns[-1]) < turns[0].number:
                prompted = store.turns(tenant_id, conversation_id, after=start_of(turns[-1]) - 1)
        except StoreError as error:
            return _Conversation(warnings=[f"The conversation could not be read. {error}"])
        return _Conversation(turns, turns_in_prompts(prompted), nodes, clean_history(as_messages(turns))[0])

    def _authors(self, question: str, filters: dict[str, Any], language: str) -> str:
        """Answer who wrote a book of the library, from what its file states; "" for any other question."""
        store, work = self.document_store, asked_work(question)
        files = store.list_files(filters) if work and isinstance(store, FileStore) else []
        named = [file["source"] for file in files if is_titled(file.get("title") or "", work)]
        first = all_of(where("meta.source", "in", named), where("meta.position", "==", 0), filters)
        return authors((passage.meta for passage in store.filter_documents(first)), language) if named else ""

    def _earlier(self, conversation: _Conversation, filters: dict[str, Any]) -> tuple[EarlierTurns, list[str]]:
        """Return the earlier turns, and a warning if the messages start over."""
        if conversation.own is not None or not conversation.in_prompts:
            return EarlierTurns(conversation.own or []), []
        numbers, clear = numbers_of(conversation.in_prompts)
        wanted = passages_of(conversation.in_prompts) if clear else []
        sent = all_of(where("id", "in", wanted), filters)
        found = {passage.id: passage for passage in self.document_store.filter_documents(sent)} if wanted else {}
        whole = clear and len(found) == len(wanted)
        if whole:
            earlier = written_turns(conversation.in_prompts, found, numbers)
            if self._tokens(earlier.messages) <= self.token_budget:
                return earlier, []
        if max(numbers.values(), default=0) > _HIGHEST_NUMBER:
            numbers = {}
        numbers = dict(list(numbers.items())[-_MOST_NUMBERS:])
        return anew(neutral_text(conversation.summary), numbers), [_FULL if whole else _CHANGED]

    def _memory(self, query: str, conversation: _Conversation, earlier: EarlierTurns) -> str:
        if conversation.own is not None or not conversation.turns:
            return ""
        summarised = max((node.last_turn for node in conversation.nodes), default=0)
        turns = [turn for turn in conversation.turns if turn.number > summarised]
        turns = turns if len(turns) >= LAST_TURNS else conversation.turns[-LAST_TURNS:]
        vector = self.text_embedder.run(text=query)["embedding"] if conversation.nodes else []
        found = fragments(query, vector, turns, conversation.nodes)
        start = earlier.thread["start"]
        older = (one for one in found if not start or one.first_turn < start)
        return "\n".join(f"- {fragment.text}" for fragment in older)

    def _tokens(self, messages: Sequence[ChatMessage]) -> int:
        self._counter.warm_up()
        return sum(self._counter.count(message.text or "") for message in messages)


def route_question(question: str, turns: Sequence[ChatMessage]) -> tuple[Literal["database", "both", "history"], str]:
    """
    Decide by rules where a question is answered from, and what the library is searched for.

    `database`: a question that is complete by itself and does not refer to the conversation. `both`: one that depends
    on the turns before it, searched with their most informative words, or one that doubts an earlier answer.
    `history`: one about the conversation itself.
    """
    text = " ".join(question.split())
    if not turns or not text:
        return "database", question
    table = "zh" if read_text(text).language in ("zh", "ja") else "en"
    found = {name for name, patterns in _phrases().items() if patterns[table].search(text)}
    if "history" in found and "checked" not in found:
        return "history", question
    found -= {"checked", *(("short",) if says_enough(text) else ())}
    if not found and not needs_context(text):
        return "database", question
    return "both", asked_of_another(question, turns) or " ".join([question, *salient_terms(question, turns)])


def _headings_in(filters: dict[str, Any]) -> list[str]:
    """Return the headings that a question is limited to."""
    operator = filters.get("operator", "")
    if filters.get("field") == "meta.section":
        named = {"in": filters["value"], "==": [filters["value"]]}.get(operator, ())
        return [heading for heading in named if isinstance(heading, str)]
    inside = () if operator == "NOT" else filters.get("conditions", ())
    return [heading for condition in inside for heading in _headings_in(condition)]
