"""Turns are kept, and conversations summed up when nobody waits."""

import shutil
import threading

import pytest
from haystack import Document, GeneratedAnswer, component
from haystack.document_stores.in_memory import InMemoryDocumentStore
from tests.components.memory.conftest import DocumentEmbedder, TextEmbedder

from shiguan.conversations import Turn
from shiguan.engine.conversations import ConversationKeeper, turn_of
from shiguan.engine.loading import load_stores
from shiguan.errors import StoreFullError
from shiguan.memory.conversation_reader import ConversationReader
from shiguan.memory.summary_tree import SummaryTree
from shiguan.resources import resource_folder
from shiguan.stores.embedded.sqlite_conversation_store import SQLiteConversationStore
from shiguan.tenants import of_tenant

TURN = Turn("How did the fire start?", "In a bakery.")


@pytest.fixture
def store(tmp_path):
    store = SQLiteConversationStore(str(tmp_path))
    yield store
    store.close()


@component
class Waiting:
    """An embedder that waits until it is let go, and counts how many wait at once."""

    def __init__(self):
        self.go, self.begun = threading.Event(), threading.Event()
        self.lock, self.at_work, self.most = threading.Lock(), 0, 0

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]):
        with self.lock:
            self.at_work += 1
            self.most = max(self.most, self.at_work)
        self.begun.set()
        assert self.go.wait(30)
        with self.lock:
            self.at_work -= 1
        return DocumentEmbedder().run(documents)


def reader_of(store, embedder=None):
    tree = SummaryTree(document_embedder=embedder or DocumentEmbedder())
    passages = InMemoryDocumentStore()
    return ConversationReader(store, document_store=passages, text_embedder=TextEmbedder(), summary_tree=tree)


def keeper_of(store, embedder=None):
    return ConversationKeeper(reader_of(store, embedder))


def keep(keeper):
    assert keeper.keep("ours", "c", TURN) == []
    keeper.sum_up("ours", "c")


def finished(keeper):
    for thread in keeper._threads:
        thread.shutdown(wait=True)


def read(store):
    found = reader_of(store).run("And who put it out?", of_tenant("ours"), conversation_id="c")
    return [(message.role.value, message.text) for message in found["history"]], found["summary"], found["warnings"]


def test_one_conversation_is_summed_up_by_one_thread_and_nothing_is_left_out(store):
    embedder = Waiting()
    keeper = keeper_of(store, embedder)
    for _ in range(6):
        keep(keeper)
    assert embedder.begun.wait(30)
    embedder.go.set()
    finished(keeper)
    assert embedder.most == 1
    leaves, parents = [(0, turn) for turn in range(1, 7)], [(1, 1), (1, 3)]
    assert [(node.level, node.first_turn) for node in store.nodes("ours", "c")] == leaves + parents


def test_a_turn_that_ends_while_the_server_goes_down_is_kept(store):
    keeper = keeper_of(store)
    keeper.close()
    keep(keeper)
    assert len(store.turns("ours", "c")) == 1


def test_a_full_disk_costs_a_warning(store, monkeypatch):
    def full(*arguments, **words):
        raise StoreFullError("The disk is full. Free space.")

    keeper = keeper_of(store)
    monkeypatch.setattr(store, "append", full)
    assert keeper.keep("ours", "c", TURN) == ["This turn was not kept. The disk is full. Free space."]
    monkeypatch.setattr(store, "turns", full)
    assert read(store) == ([], "", ["The conversation could not be read. The disk is full. Free space."])
    keeper.close()


def test_a_summary_that_fails_is_told_to_the_log_and_made_up_with_the_next_turn(store, monkeypatch, caplog):
    keeper = keeper_of(store)
    add_node = store.add_node
    failures = [StoreFullError("The disk is full. Free space.")]

    def once(*arguments, **words):
        if failures:
            raise failures.pop()
        return add_node(*arguments, **words)

    monkeypatch.setattr(store, "add_node", once)
    keep(keeper)
    for thread in keeper._threads:
        thread.submit(lambda: None).result(30)
    keep(keeper)
    finished(keeper)
    assert [node.first_turn for node in store.nodes("ours", "c")] == [1, 2]
    assert "The disk is full" in caplog.text


def test_a_conversation_is_asked_with_what_its_answers_say_and_not_with_what_stands_around_it(store):
    keeper = keeper_of(store)
    keeper.keep("ours", "c", Turn("Who was he?", "The sources do not answer this.", meta={"said": ""}))
    keeper.keep("ours", "c", Turn("And she?", "Word for word: > A baker.", meta={"said": "A baker."}))
    finished(keeper)
    assert read(store)[0] == [("user", "Who was he?"), ("user", "And she?"), ("assistant", "A baker.")]


@pytest.mark.parametrize("deployment", ["embedded", "elasticsearch_qdrant"])
def test_every_deployment_says_where_its_conversations_are(deployment, tmp_path, monkeypatch):
    monkeypatch.setenv("SHIGUAN_ELASTICSEARCH_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("SHIGUAN_QDRANT_URL", "http://127.0.0.1:1")
    store = load_stores(deployment, conversations=True, data_dir=tmp_path)["conversations"]
    assert "Conversation" in type(store).__name__
    if deployment == "embedded":
        assert store.file == tmp_path / "conversations.sqlite"
    store.close()


def answer_with(status, **more):
    """An answer, and the same as it was shown."""
    citation = {"quote": "Before. A baker. After.", "start": 10, "end": 33, "sentence": [18, 26]}
    shown = {"answer": "shown", "mode": "simple", "status": status, "citations": [citation]}
    shown["metadata"] = {"receipt": "r"}
    passages = [
        Document(id="p", content="x", meta={"source_id": "s", "number": 2, "cut": [0, 1], "title": "T"}),
        Document(id="old", content="y", meta={"source_id": "s", "number": 1, "earlier": True}),
        Document(id="said", content="z", meta={"origin": "memory"}),
    ]
    made = GeneratedAnswer(data="raw", query="Who?", documents=passages, meta={"language": "en", **more})
    return made, shown


def test_a_turn_says_what_was_read_for_it_and_of_a_quotation_its_sentence():
    turn = turn_of(*answer_with("quoted"), "both", {"start": 3})
    assert (turn.question, turn.answer, turn.source, turn.said) == ("Who?", "shown", "both", "A baker.")
    thread = {"start": 3, "language": "en", "sent": False, "read": [{"id": "p", "number": 2, "cut": [0, 1]}]}
    assert turn.meta == {"mode": "simple", "status": "quoted", "receipt": "r", "said": "A baker.", "thread": thread}


def test_of_an_answer_in_words_of_its_own_later_turns_know_all():
    turn = turn_of(*answer_with("answered", prompt_rendered={"sha256": "x"}), None, {})
    assert (turn.said, turn.source) == ("shown", "both")
    assert turn.meta["thread"]["sent"] is True


def test_a_deployment_whose_modes_read_no_conversations_keeps_none(tmp_path, monkeypatch):
    (tmp_path / "bare").mkdir()
    bare = "# bare: for tests.\ncomponents:\n  tenant_filter: {type: shiguan.retrieval.tenant_filter.TenantFilter}\n"
    (tmp_path / "bare" / "simple.yml").write_text(bare, encoding="utf-8")
    shutil.copy(resource_folder("pipelines") / "embedded" / "index.yml", tmp_path / "bare")
    monkeypatch.setenv("SHIGUAN_PIPELINES_DIR", str(tmp_path))
    assert load_stores("bare", conversations=True).keys() == {"parents", "children"}
