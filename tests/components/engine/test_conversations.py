import threading

import pytest
from tests.components.memory.conftest import DocumentEmbedder

from shiguan.conversations import SummaryNode, Turn
from shiguan.engine.conversations import ConversationMemory, open_conversations, whole_summary
from shiguan.errors import RefusedError, StoreFullError
from shiguan.memory.summary_tree import SummaryTree
from shiguan.stores.embedded.sqlite_conversation_store import SQLiteConversationStore

TURN = Turn("How did the fire start?", "In a bakery.")


@pytest.fixture
def store(tmp_path):
    store = SQLiteConversationStore(str(tmp_path))
    yield store
    store.close()


class Waiting:
    """An embedder that waits until it is let go, and counts how many wait at once."""

    def __init__(self):
        self.go, self.begun = threading.Event(), threading.Event()
        self.lock, self.at_work, self.most = threading.Lock(), 0, 0

    def run(self, documents):
        with self.lock:
            self.at_work += 1
            self.most = max(self.most, self.at_work)
        self.begun.set()
        assert self.go.wait(30)
        with self.lock:
            self.at_work -= 1
        return DocumentEmbedder().run(documents)


def memory(store, embedder=None):
    return ConversationMemory(SummaryTree(store, document_embedder=embedder or DocumentEmbedder()))


def keep(memory):
    assert memory.keep("ours", "c", TURN) == []
    memory.sum_up("ours", "c")


def finished(memory):
    memory._threads.shutdown(wait=True)


def test_what_was_kept_is_loaded_for_the_next_question(store):
    asked = memory(store)
    keep(asked)
    finished(asked)
    loaded = asked.load("ours", "c")
    assert loaded.history == [
        {"role": "user", "content": "How did the fire start?"},
        {"role": "assistant", "content": "In a bakery."},
    ]
    assert (loaded.summary, loaded.warnings) == ("How did the fire start? In a bakery.", [])


def test_of_another_tenant_nothing_is_loaded_and_nothing_said(store):
    asked = memory(store)
    keep(asked)
    finished(asked)
    for tenant, conversation in (("theirs", "c"), ("ours", "d"), ("OURS", "c"), ("ours ", "c")):
        loaded = asked.load(tenant, conversation)
        assert (loaded.history, loaded.summary, loaded.warnings) == ([], "", [])


def test_the_answer_does_not_wait_for_its_summary(store):
    embedder = Waiting()
    asked = memory(store, embedder)
    keep(asked)
    assert embedder.begun.wait(30)
    assert [turn.number for turn in store.turns("ours", "c")] == [1]
    assert store.nodes("ours", "c") == []
    embedder.go.set()
    finished(asked)
    assert len(store.nodes("ours", "c")) == 1


def test_one_conversation_is_summed_up_by_one_thread_and_nothing_is_left_out(store):
    embedder = Waiting()
    asked = memory(store, embedder)
    for _ in range(6):
        keep(asked)
    assert embedder.begun.wait(30)
    embedder.go.set()
    finished(asked)
    assert embedder.most == 1
    assert [(n.level, n.first_turn) for n in store.nodes("ours", "c")] == [
        *((0, n) for n in range(1, 7)),
        (1, 1),
        (1, 3),
    ]
    assert asked._at_work == {}


def test_a_turn_that_ends_while_the_server_goes_down_is_kept(store):
    asked = memory(store)
    asked.close()
    keep(asked)
    assert len(store.turns("ours", "c")) == 1


def test_a_full_disk_costs_a_warning(store, monkeypatch):
    def full(*arguments, **words):
        raise StoreFullError("The disk is full. Free space.")

    asked = memory(store)
    monkeypatch.setattr(store, "append", full)
    assert asked.keep("ours", "c", TURN) == ["This turn was not kept. The disk is full. Free space."]
    monkeypatch.setattr(store, "turns", full)
    assert asked.load("ours", "c").warnings == ["The conversation could not be read. The disk is full. Free space."]
    asked.close()


def test_a_summary_that_fails_is_told_to_the_log_and_made_up_with_the_next_turn(store, monkeypatch, caplog):
    asked = memory(store)
    add_node = store.add_node
    failures = [StoreFullError("The disk is full. Free space.")]

    def once(*arguments, **words):
        if failures:
            raise failures.pop()
        return add_node(*arguments, **words)

    monkeypatch.setattr(store, "add_node", once)
    keep(asked)
    asked._threads.submit(lambda: None).result(30)
    keep(asked)
    finished(asked)
    assert [node.first_turn for node in store.nodes("ours", "c")] == [1, 2]
    assert "The disk is full" in caplog.text


@pytest.mark.parametrize("conversation", ["", "a/b", "..", "x" * 129, None, 7, "a b", "a\n", "../../etc"])
def test_what_can_be_no_id_is_refused(store, conversation):
    asked = memory(store)
    with pytest.raises(RefusedError, match="no id of a conversation"):
        asked.load("ours", conversation)
    with pytest.raises(RefusedError, match="no id of a conversation"):
        asked.keep("ours", conversation, TURN)
    asked.close()


def test_the_whole_is_told_by_what_nothing_else_contains():
    nodes = [
        *(SummaryNode(0, number, number, f"leaf {number}") for number in range(1, 7)),
        SummaryNode(1, 1, 4, "the first four"),
    ]
    assert whole_summary(nodes) == "the first four\nleaf 5\nleaf 6"
    assert whole_summary([]) == ""


def test_a_conversation_is_asked_with_what_its_answers_say_and_not_with_what_stands_around_it(store):
    asked = memory(store)
    asked.keep("ours", "c", Turn("Who was he?", "The sources do not answer this.", meta={"said": ""}))
    asked.keep("ours", "c", Turn("And she?", "Word for word: > A baker.", meta={"said": "A baker."}))
    finished(asked)
    assert [(turn["role"], turn["content"]) for turn in asked.load("ours", "c").history] == [
        ("user", "Who was he?"),
        ("user", "And she?"),
        ("assistant", "A baker."),
    ]


@pytest.mark.parametrize(
    "deployment", ["embedded", pytest.param("elasticsearch_qdrant", marks=pytest.mark.transformers)]
)
def test_every_deployment_says_where_its_conversations_are(deployment, tmp_path, monkeypatch):
    monkeypatch.setenv("SHIGUAN_ELASTICSEARCH_URL", "http://127.0.0.1:1")
    opened = open_conversations(deployment, data_dir=tmp_path)
    assert "Conversation" in type(opened.store).__name__
    if deployment == "embedded":
        assert opened.store.file == tmp_path / "conversations.sqlite"
    opened.close()


def test_a_deployment_without_the_file_keeps_none(tmp_path, monkeypatch):
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "simple.yml").write_text("components: {}\n", encoding="utf-8")
    monkeypatch.setenv("SHIGUAN_PIPELINES_DIR", str(tmp_path))
    assert open_conversations("bare") is None
