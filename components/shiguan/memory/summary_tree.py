"""Summarizes a conversation, turn by turn and theme by theme."""

import re
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import numpy as np
from haystack import Document
from haystack.components.embedders.types.protocol import DocumentEmbedder
from haystack.components.generators.chat.types import ChatGenerator

from shiguan.conversations import ConversationStore, SummaryNode, Turn
from shiguan.errors import ModelMissingError
from shiguan.llm.calls import ask_llm, is_available, warm_up_generator
from shiguan.llm.json_replies import json_object
from shiguan.llm.prompts import render_prompt
from shiguan.llm.source_blocks import neutral_text
from shiguan.reading.text import read_text
from shiguan.serialization import Serializable
from shiguan.text.questions import fault_of_goal
from shiguan.text.sentences import sentence_spans

FAN_OUT = 4
_CHARACTERS, _WORDS = 80, 50
_LONGEST_ANSWER = 2_000
_MOST_CALLS = 40
"""In one run: a long conversation that was never summarized is not sent to a model as a whole."""
_MARKS = re.compile(r"\s?\[\d[\d, ]*\]")


class SummaryTree(Serializable):
    """
    Adds to a conversation the summaries that it lacks.

    An argument of `ConversationReader`; it works after an answer was sent. Every turn gets a leaf of at most 80 Chinese
    characters or 50 words; four consecutive leaves get a summary of what they have in common, and so do two or three
    where the next turn opens a topic (its route was `database`); four summaries of a level get one on the next, and so
    on. A node is never rewritten; what a crash left out is added the next time.

    Without a model a leaf is the question and the answer's first sentence, shortened, and a parent its children, each
    shortened. A turn whose summary was lost gets it the next time, by these rules if that fails too. A summary with
    names that the turns do not have is not used.

    Reply of the model: an object with `summary`.
    """

    def __init__(self, *, document_embedder: DocumentEmbedder, chat_generator: ChatGenerator | None = None) -> None:
        """
        Set the models.

        :param document_embedder: Embeds the summaries.
        :param chat_generator: Writes the summaries; None for the rules.
        """
        self.document_embedder = document_embedder
        self.chat_generator = chat_generator

    def add_missing(self, store: ConversationStore, tenant_id: str, conversation_id: str) -> list[str]:
        """Add the missing summaries, and return warnings."""
        warnings: list[str] = []
        conversation = store.find(tenant_id, conversation_id)
        if conversation is None:
            return warnings
        levels = defaultdict[int, list[SummaryNode]](list)
        for node in store.nodes(tenant_id, conversation_id, vectors=False):
            levels[node.level].append(node)
        summed_up = levels[0][-1].last_turn if levels[0] else 0
        turns = deque(store.turns(tenant_id, conversation_id, after=summed_up))
        calls = count()
        while True:
            group = next_group(levels)
            if group:
                text = self._summary([node.text for node in group], calls, warnings) or joined(group)
                node = SummaryNode(group[0].level + 1, group[0].first_turn, group[-1].last_turn, text)
            elif turns:
                turn = turns.popleft()
                summary = self._summary([turn.question, _plain(turn)], calls, warnings)
                if summary is None and not turns:
                    break  # a lost summary is requested once more with the next turn
                text = summary or leaf_text(turn)
                node = SummaryNode(0, turn.number, turn.number, text, turn.source == "database")
            else:
                break
            node = self._embedded(node, warnings)
            added = store.add_node(tenant_id, conversation_id, node, birth=conversation.birth)
            if not added and store.find(tenant_id, conversation_id) != conversation:
                break  # it is gone
            levels[node.level].append(node)
        return list(dict.fromkeys(warnings))

    def _summary(self, texts: list[str], calls: Iterator[int], warnings: list[str]) -> str | None:
        """Ask for a summary; empty where no model is to be asked, None where the call or its reply was lost."""
        if not is_available(self.chat_generator) or next(calls) >= _MOST_CALLS:
            return ""
        messages = render_prompt(
            "summary_tree", language=read_text(texts[0]).language, texts=[neutral_text(text) for text in texts]
        )
        reply = ask_llm(self.chat_generator, messages)
        summary, fault = ("", reply.failure) if reply.failure else read_summary(reply.text, texts)
        if fault:
            warnings.append(f"A part of the conversation was not summarized ({fault}).")
            return None
        return summary

    def _embedded(self, node: SummaryNode, warnings: list[str]) -> SummaryNode:
        try:
            warm_up_generator(self.document_embedder)
            (document,) = self.document_embedder.run(documents=[Document(content=node.text)])["documents"]
        except ModelMissingError as error:
            warnings.append(str(error))
            return node
        vector = np.asarray(document.embedding or [], dtype=np.float32)
        length = float(np.linalg.norm(vector)) or 1.0
        return node._replace(embedding=(vector / length).astype(np.float32).tobytes())


def next_group(levels: Mapping[int, Sequence[SummaryNode]]) -> list[SummaryNode]:
    """Find, from the bottom, the first nodes in a row that are due for a parent; each level in order."""
    for level in sorted(levels):
        above, nodes = levels.get(level + 1), levels[level]
        covered = above[-1].last_turn if above else 0
        waiting = nodes[bisect_right(nodes, covered, key=lambda node: node.first_turn) :]
        group: list[SummaryNode] = []
        for node in waiting:
            if len(group) == FAN_OUT or (node.opens and len(group) > 1):
                break
            group.append(node)
        if len(group) == FAN_OUT or 1 < len(group) < len(waiting):
            return group
    return []


def read_summary(reply: str, texts: Sequence[str]) -> tuple[str, str]:
    """Read a summary from a reply; the second value says what is wrong with it."""
    found = json_object(reply, "summary") or {}
    text = found.get("summary")
    summary = " ".join(text.split()) if isinstance(text, str) else ""
    return shortened(neutral_text(summary)), fault_of_goal(summary, texts[0], "\n".join(texts))


def leaf_text(turn: Turn) -> str:
    """Summarize a turn by rule: its question, and the first sentence of its answer."""
    answer = _plain(turn)
    spans = sentence_spans(answer)
    first = answer[spans[0][0] : spans[0][1]] if spans else ""
    return shortened(neutral_text(f"{shortened(turn.question, 0.5)} {first}".strip()))


def joined(nodes: Sequence[SummaryNode]) -> str:
    """Summarize nodes by rule: each with its share of the length."""
    return " / ".join(shortened(node.text, 1 / len(nodes)) for node in nodes)


def shortened(text: str, share: float = 1.0) -> str:
    """Shorten a text to its share of the length of a summary."""
    text = " ".join(text.split())
    if read_text(text).language in ("zh", "ja"):
        limit = int(_CHARACTERS * share) - 1
        return text if len(text) <= limit else f"{text[:limit]}…"
    words = text.split(" ")
    limit = int(_WORDS * share)
    text = text if len(words) <= limit else f"{' '.join(words[:limit])} …"
    return text[: _WORDS * 12]


def _plain(turn: Turn) -> str:
    return _MARKS.sub("", turn.said)[:_LONGEST_ANSWER]
