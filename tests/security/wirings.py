"""Random pipeline files: joiners, branches, loops, converters, tools, every option, and readers in any place."""

import random
from dataclasses import dataclass
from typing import Any

from haystack import component
from haystack.dataclasses import ChatMessage, ToolCall
from tests.security.mutant_parts import (
    ADAPTER,
    BRANCH_JOINER,
    CHAT_PROMPT,
    EDGE_STORE,
    FILTER_RETRIEVER,
    LOOP,
    MEMORY_BM25,
    MEMORY_STORE,
    PROMPT,
    TENANT_FILTER,
)  # fmt: skip

from shiguan.engine.options import AskOptions

MEMORY_INDEX = "wirings"
ROUTER = "haystack.components.routers.conditional_router.ConditionalRouter"
CONVERTERS = "haystack.components.converters."
AGENT = "shiguan.agent.tool_agent.ToolAgent"
FILE_ROUTER = "haystack.components.routers.file_type_router.FileTypeRouter"
DOCUMENT_JOINER = "haystack.components.joiners.document_joiner.DocumentJoiner"
RELEVANCE = "shiguan.grading.relevance_grader.RelevanceGrader"
PASSAGE_READER = "shiguan.agent.passage_reader.PassageReader"


NAMES = ["query", "tenant_id", *AskOptions.model_fields]
"""Whatever a caller may say has one of these names."""


@component
class Caller:
    """A model that asks for everything it could not have, and then answers."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: list | None = None):
        everything = {"field": "meta.tenant_id", "operator": "==", "value": "theirs"}
        asked = [{"number": 1}, {"number": 1, "filters": everything}, {"number": 2}]
        if any(message.tool_calls for message in messages):
            return {"replies": [ChatMessage.from_assistant("Guo Ziyi took the capital back. [1]")]}
        calls = [ToolCall("read_passage", arguments, id=str(place)) for place, arguments in enumerate(asked)]
        return {"replies": [ChatMessage.from_assistant(tool_calls=calls)]}


@dataclass(frozen=True)
class Kind:
    """
    :param type: The class.
    :param parameters: Its `init_parameters`.
    :param inputs: Sockets and what goes into them; `!` behind it for a mandatory one, `*` for any number.
    :param outputs: Sockets and what comes out of them.
    :param weight: How often it is chosen.
    """

    type: str
    parameters: dict[str, Any]
    inputs: dict[str, str]
    outputs: dict[str, str]
    weight: int = 2


_START = (ADAPTER, {"template": "{{ [text] }}", "output_type": "list"}, {"text": "text!"}, {"output": "attempt"})
"""What a loop may begin with."""

_OF_THE_TENANT = {"filters": "filters", "kwargs": "retriever_kwargs"}


def kinds(folder: str) -> list[Kind]:
    """What files are made of; the stores of all files hold the same passages."""
    edge = {"type": EDGE_STORE, "init_parameters": {"name": "children", "path": folder, "embedding_dim": 2}}
    memory = {"type": MEMORY_STORE, "init_parameters": {"index": MEMORY_INDEX}}
    again = [
        {"condition": "{{ text|length < 60 }}", "output": "{{ text ~ ' Guo' }}", "output_name": "again", "output_type": "str"},
        {"condition": "{{ true }}", "output": "{{ text }}", "output_name": "done", "output_type": "str"},
    ]  # fmt: skip
    bm25 = "shiguan.stores.embedded.qdrant_edge_bm25_retriever.QdrantEdgeBM25Retriever"
    multi = "haystack.components.retrievers.multi_retriever.MultiRetriever"
    wordings = "haystack.components.retrievers.multi_query_text_retriever.MultiQueryTextRetriever"
    fetcher = "shiguan.retrieval.parent_document_fetcher.ParentDocumentFetcher"
    searched = {"query": "text!", "filters": "filters", "top_k": "count"}
    return [
        Kind(bm25, {"document_store": edge}, searched, {"documents": "documents"}, 18),
        Kind(MEMORY_BM25, {"document_store": memory}, searched, {"documents": "documents"}, 1),
        Kind(FILTER_RETRIEVER, {"document_store": edge}, {"filters": "filters"}, {"documents": "documents"}),
        Kind(FILTER_RETRIEVER, {"document_store": memory}, {"filters": "filters"}, {"documents": "documents"}, 1),
        Kind(multi, {"retrievers": {"words": {"type": bm25, "init_parameters": {"document_store": edge}}}},
             {"query": "text!", "filters": "filters"}, {"documents": "documents"}),
        Kind(wordings, {"retriever": {"type": bm25, "init_parameters": {"document_store": edge}}},
             {"queries": "texts!", "retriever_kwargs": "kwargs"}, {"documents": "documents"}, 3),
        Kind(fetcher, {"document_store": edge}, {"documents": "documents!", "filters": "filters"}, {"documents": "documents"}),
        Kind(PROMPT, {"template": "{{ one }} {{ two }}"}, {"one": "text", "two": "text"}, {"prompt": "text"}, 4),
        Kind(PROMPT, {"template": "{% for d in found %}{{ d.content }}{% endfor %}"}, {"found": "documents"}, {"prompt": "text"}),
        Kind(ADAPTER, {"template": "{{ text }}", "output_type": "str"}, {"text": "text!"}, {"output": "text"}),
        Kind(ADAPTER, {"template": "{{ [text] }}", "output_type": "list[str]"}, {"text": "text!"}, {"output": "sources"}, 1),
        Kind(ADAPTER, {"template": "{{ [text] }}", "output_type": "list[str]"}, {"text": "text!"}, {"output": "texts"}, 3),
        Kind(*_START),
        Kind(BRANCH_JOINER, {"type_": "str"}, {"value": "text*"}, {"value": "text"}, 6),
        Kind(BRANCH_JOINER, {"type_": "dict"}, {"value": "filters*"}, {"value": "filters"}, 1),
        Kind(ROUTER, {"routes": again}, {"text": "text!"}, {"again": "text", "done": "text"}, 4),
        Kind(DOCUMENT_JOINER, {}, {"documents": "documents*"}, {"documents": "documents"}),
        Kind(LOOP, {}, {"start": "attempt*", "filters": "filters!"},
             {"attempt": "attempt", "query": "text", "word_queries": "texts", "filters": "filters", "retriever_kwargs": "kwargs"}),
        Kind(RELEVANCE, {}, {"documents": "documents!", "attempt": "attempt"}, {"documents": "documents", "retry": "attempt"}),
        *(
            Kind(f"{CONVERTERS}{name}", {}, {"sources": "sources!"}, {"documents": "documents"}, 1)
            for name in ("txt.TextFileToDocument", "csv.CSVToDocument", "html.HTMLToDocument", "multi_file_converter.MultiFileConverter")
        ),
        Kind("shiguan.ingest.source_inspector.SourceInspector", {}, {"sources": "sources!"}, {"sources": "sources"}, 1),
        Kind(CHAT_PROMPT, {"template": "{% message role='user' %}{{ one }}{% endmessage %}"}, {"one": "text"}, {"prompt": "messages"}, 5),
        Kind(AGENT, {"chat_generator": {"type": f"{__name__}.Caller", "init_parameters": {}}, "tools": [{"type": PASSAGE_READER, "init_parameters": {"document_store": edge}}]},
             {"messages": "messages!", "documents": "documents!", "filters": "filters!", "query": "text"}, {"passages": "documents"}, 6),
        Kind(FILE_ROUTER, {"mime_types": ["text/plain"]}, {"sources": "sources!"}, {"text/plain": "sources", "unclassified": "sources"}, 1),
    ]  # fmt: skip


def wiring(chance: random.Random, known: list[Kind]) -> dict[str, Any]:
    """One random file. Most sockets are fed as a person would, so that enough of them pass the check."""
    chosen = {f"c{number}": kind for number, kind in enumerate(_chosen(chance, known))}
    guard = Kind(TENANT_FILTER, {}, {}, {"filters": "filters", "retriever_kwargs": "kwargs"})
    everything = {"tenant_filter": guard, **chosen}
    connections: list[dict[str, str]] = []
    inputs: dict[str, list[str]] = {"tenant_id": ["tenant_filter.tenant_id"]}
    for place, (name, kind) in enumerate(chosen.items(), start=1):
        for socket, wanted in kind.inputs.items():
            carried = wanted.rstrip("!*")
            senders = [
                (sender, output, before < place)
                for before, (sender, other) in enumerate(everything.items())
                for output, given in other.outputs.items()
                if given == carried and sender != name
            ]
            needed = wanted[-1] in "!*"
            if not needed and chance.random() < (0.04 if carried in _OF_THE_TENANT else 0.4):
                continue
            count = chance.choice([1, 2, 2, 3]) if wanted.endswith("*") else 1
            for _ in range(count):
                _feed(chance, f"{name}.{socket}", carried, senders, connections, inputs)
    # What a caller may say goes by any of the names that there are, and stands in either section.
    options = {name: inputs.pop(name) for name in [*inputs] if name != "tenant_id" and chance.random() < 0.3}
    return {
        "max_runs_per_component": 4,
        "components": {name: {"type": kind.type, "init_parameters": kind.parameters} for name, kind in everything.items()},
        "connections": connections,
        "inputs": inputs,
        **({"options": options} if options else {}),
    }  # fmt: skip


def _chosen(chance: random.Random, known: list[Kind]) -> list[Kind]:
    chosen = chance.choices(known, [kind.weight for kind in known], k=chance.randint(1, 7))
    if chance.random() < 0.25:  # the loop that hands its filters on, with whatever else
        chosen += [kind for kind in known if kind.type in (LOOP, RELEVANCE) or kind.outputs.get("output") == "attempt"]
    return chosen


def _feed(chance, receiver, carried, senders, connections, inputs) -> None:
    earlier = [sender for sender in senders if sender[2]]
    pool = senders if chance.random() < 0.25 or not earlier else earlier
    if carried in _OF_THE_TENANT and chance.random() < 0.8:
        # From the tenant's filter, or from where a loop carries it.
        own = ("tenant_filter", _OF_THE_TENANT[carried])
        pool = [one for one in senders if one[:2] == own] if chance.random() < 0.7 else pool
    if pool and (carried != "text" or chance.random() < 0.75):
        sender, output, _ = chance.choice(pool)
        edge = {"sender": f"{sender}.{output}", "receiver": receiver}
        if edge not in connections:
            connections.append(edge)
    elif carried in ("text", "count", "filters", "sources") and (carried in ("text", "count") or chance.random() < 0.5):
        name = {"text": "query", "count": "top_k"}.get(carried, carried)
        name = chance.choice(NAMES) if chance.random() < 0.1 else name
        if receiver not in inputs.setdefault(name, []):
            inputs[name].append(receiver)
