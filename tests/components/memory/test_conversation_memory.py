import threading

import pytest
from tests.components.memory.conftest import DocumentEmbedder

from shiguan.conversations import SummaryNode, Turn
from shiguan.errors import RefusedError, StoreFullError
from shiguan.memory.conversation_memory import ConversationMemory, whole_summary
from shiguan.memory.summary_tree import SummaryTree

TURN = Turn("How did the fire start?", "In a bakery.")


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


def finished(memory):
    memory._threads.shutdown(wait=True)
    return memory


def test_what_was_kept_is_loaded_for_the_next_question(store):
    asked = memory(store)
    assert asked.keep("ours", "c", TURN) == []
    finished(asked)
    loaded = asked.load("ours", "c")
    assert loaded.history == [
        {"role": "user", "content": "How did the fire start?"},
        {"role": "assistant", "content": "In a bakery."},
    ]
    assert (loaded.summary, loaded.warnings) == ("How did the fire start? In a bakery.", [])


def test_of_another_tenant_nothing_is_loaded_and_nothing_said(store):
    asked = memory(store)
    asked.keep("ours", "c", TURN)
    finished(asked)
    for tenant, conversation in (("theirs", "c"), ("ours", "d"), ("OURS", "c"), ("ours ", "c")):
        loaded = asked.load(tenant, conversation)
        assert (loaded.history, loaded.summary, loaded.warnings) == ([], "", [])


def test_the_answer_does_not_wait_for_its_summary(store):
    embedder = Waiting()
    asked = memory(store, embedder)
    asked.keep("ours", "c", TURN)
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
        asked.keep("ours", "c", TURN)
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
    assert asked.keep("ours", "c", TURN) == []
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
    asked.keep("ours", "c", TURN)
    asked._threads.submit(lambda: None).result(30)
    asked.keep("ours", "c", TURN)
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
