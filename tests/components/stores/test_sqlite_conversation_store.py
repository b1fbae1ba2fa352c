import sqlite3

import pytest
from tests.components.stores.turns import questions, say
from tests.doubles.started import Started

from shiguan.conversations import SummaryNode, Turn
from shiguan.errors import StoreError, StoreFormatError, StoreFullError
from shiguan.stores.embedded.sqlite_conversation_store import SQLiteConversationStore

FILE = "conversations.sqlite"


@pytest.fixture
def store(tmp_path):
    store = SQLiteConversationStore(str(tmp_path))
    yield store
    store.close()


def test_the_file_is_its_owners_and_stands_beside_the_library(store, tmp_path):
    say(store, "a")
    assert store.file == tmp_path / FILE
    assert store.file.stat().st_mode & 0o777 == 0o600


def test_a_statement_that_names_nobody_is_refused(store):
    with store._reading("ours", "c") as run, pytest.raises(StoreError, match="whose conversation"):
        run("SELECT * FROM turns WHERE tenant = :tenant")


def steps_of_a_turn(store, conversation):
    """What SQLite does to keep one more turn and to read the last three, in steps of its machine."""
    count = 0

    def step():
        nonlocal count
        count += 1

    say(store, "one more", conversation=conversation)
    store._connection().set_progress_handler(step, 1)
    say(store, "one more", conversation=conversation)
    assert len(store.turns("ours", conversation, last=3)) == 3
    store._connection().set_progress_handler(None, 0)
    return count


def test_after_ten_thousand_turns_one_costs_what_the_fifth_did(store):
    for _ in range(3):
        say(store, "one more", conversation="new")
    few = steps_of_a_turn(store, "new")
    assert few > 100
    with store._writing("ours", "c") as run:
        run("INSERT INTO conversations VALUES (:tenant, :conversation, 'b', 't', 0, 0, 10000)")
        for number in range(1, 10_001):
            run(
                "INSERT INTO turns VALUES (:tenant, :conversation, :number, 0, :content)",
                number=number,
                content=f'{{"question": "q{number}", "answer": "a", "number": {number}}}',
            )
    assert steps_of_a_turn(store, "c") < 1.1 * few
    assert store.find("ours", "c").turns == 10_002


def test_a_full_disk_is_an_error_that_says_so_and_loses_nothing(store):
    say(store, "a")
    (pages,) = store._database.execute("PRAGMA page_count").fetchone()
    store._database.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFullError, match="no room"):
        store.append("ours", "c", Turn("b", "x" * 50_000))
    assert questions(store) == ["a"]
    store._database.execute("PRAGMA max_page_count = 100000")
    assert say(store, "c") == [2]


def test_what_is_deleted_is_nowhere_in_the_files(store, tmp_path):
    say(store, "my very secret question")
    assert any(b"very secret" in path.read_bytes() for path in tmp_path.iterdir())
    assert store.delete("ours", "c")
    assert not any(b"very secret" in path.read_bytes() for path in tmp_path.iterdir())


def test_what_is_no_database_is_named(store, tmp_path):
    (tmp_path / FILE).write_bytes(b"this is no database " * 100)
    with pytest.raises(StoreFormatError, match="move it away"):
        say(store, "a")
    with pytest.raises(StoreError, match="conversations"):  # nor is it a folder
        say(SQLiteConversationStore(str(tmp_path / FILE)), "a")


def test_a_file_of_a_later_version_is_not_touched(store, tmp_path):
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("PRAGMA user_version = 9")
    database.close()
    with pytest.raises(StoreFormatError, match="format 9, expected 1"):
        say(store, "a")


KILLED = """
import sys
from shiguan.conversations import Turn
from shiguan.stores.embedded.sqlite_conversation_store import SQLiteConversationStore
store = SQLiteConversationStore(sys.argv[1])
while True:
    print(store.append("ours", "c", Turn("q", "a" * 3000)), flush=True)
"""


@pytest.mark.parametrize(
    "after", [pytest.param(1, marks=pytest.mark.slow), 7, pytest.param(30, marks=pytest.mark.slow)]
)
def test_a_killed_process_loses_no_turn_that_was_kept(tmp_path, after):
    with Started("-c", KILLED, tmp_path) as writer:
        told = [int(writer.line()) for _ in range(after)]
        writer.kill()
        told += [int(line) for line in writer.process.stdout.read().split("\n")[:-1]]
    store = SQLiteConversationStore(str(tmp_path))
    numbers = [turn.number for turn in store.turns("ours", "c")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(told) <= len(numbers) <= len(told) + 1
    assert say(store, "again") == [len(numbers) + 1]
    store.close()


def test_kept_turns_and_summaries_that_do_not_fit_are_left_out(store, caplog):
    for number in range(1, 8):
        store.append("ours", "c", Turn(f"Question {number}?", "Answer."))
    birth = store.find("ours", "c").birth
    for first in (1, 2):
        assert store.add_node("ours", "c", SummaryNode(0, first, first, "A summary."), birth=birth)
    broken = ["{", "[]", '{"question": 3}', '{"question": "a", "answer": "b", "meta": 7}', None]
    for number, content in enumerate(broken, start=1):
        store._connection().execute("UPDATE turns SET content = ? WHERE number = ?", (content, number))
    store._connection().execute("UPDATE nodes SET text = X'FF' WHERE first_turn = 1")
    assert [turn.number for turn in store.turns("ours", "c")] == [6, 7]
    assert [node.first_turn for node in store.nodes("ours", "c")] == [2]
    assert caplog.text.count("A kept turn was left out") == len(broken)
    assert "A kept summary was left out" in caplog.text
