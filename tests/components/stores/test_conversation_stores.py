"""What every store of conversations keeps, and for whom: the embedded one, and the cluster's on a stand-in."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, product

import pytest
from tests.components.stores.turns import questions, say
from tests.doubles.cluster import elasticsearch, waits  # noqa: F401  fixtures

from shiguan import conversations
from shiguan.conversations import SummaryNode, Turn
from shiguan.engine.conversations import export_markdown, head_of, shown_conversation
from shiguan.errors import RefusedError
from shiguan.stores.cluster.elasticsearch_conversation_store import ElasticsearchConversationStore
from shiguan.stores.embedded.sqlite_conversation_store import SQLiteConversationStore
from shiguan.text.works import plain_line


@pytest.fixture(params=["sqlite", "elasticsearch"])
def make_store(request, tmp_path):
    with ExitStack() as opened:
        if request.param == "elasticsearch":
            request.getfixturevalue("elasticsearch")

        def make(**limits):
            if request.param == "sqlite":
                store = SQLiteConversationStore(str(tmp_path), **limits)
            else:
                store = ElasticsearchConversationStore(**limits)
                store.set_up()
            opened.callback(store.close)
            return store

        yield make


@pytest.fixture
def store(make_store):
    return make_store()


def leaf(number, text="a summary"):
    return SummaryNode(0, number, number, text, number == 1, b"\0\0\x80?")


def test_turns_come_back_in_order_the_last_ones_or_those_after(store):
    assert say(store, *"abcde") == [1, 2, 3, 4, 5]
    assert questions(store) == ["a", "b", "c", "d", "e"]
    assert questions(store, last=2) == ["d", "e"]
    assert questions(store, after=3) == ["d", "e"]
    assert questions(store, after=1, last=2) == ["d", "e"]
    assert questions(store, last=0) == []
    assert [turn.number for turn in store.turns("ours", "c")] == [1, 2, 3, 4, 5]


def test_more_turns_than_one_answer_holds_come_all(store, monkeypatch):
    monkeypatch.setattr("shiguan.stores.cluster.elasticsearch_conversation_store._PAGE", 10)
    say(store, *map(str, range(1, 26)))
    assert questions(store) == [str(number) for number in range(1, 26)]
    assert questions(store, last=21) == [str(number) for number in range(5, 26)]


def test_a_turn_keeps_what_it_had(store):
    given = Turn("安禄山是谁？", "A general [1].", "both", {"passages": {"1": "abc"}})
    store.append("ours", "c", given)
    store.close()  # the next use opens it again
    (kept,) = store.turns("ours", "c")
    assert replace(kept, created=0.0) == replace(given, number=1)
    assert kept.created > 1_700_000_000


def test_conversations_are_listed_renamed_and_deleted(store, monkeypatch):
    now = 1_000.0
    monkeypatch.setattr(conversations.time, "time", lambda: now)
    say(store, "Who was\n An Lushan?")
    now += 1
    say(store, "x" * 500, conversation="d")
    first, second = store.conversations("ours")
    assert (first.id, first.title, first.turns, first.created) == ("d", "x" * 200, 1, 1_001.0)
    assert (second.id, second.title) == ("c", "Who was An Lushan?")
    assert store.rename("ours", "c", " The\nrebellion ")
    assert store.find("ours", "c").title == "The rebellion"
    now += 1
    say(store, "again")
    assert [one.id for one in store.conversations("ours")] == ["c", "d"]
    assert store.delete("ours", "c")
    assert not store.delete("ours", "c")
    assert not store.rename("ours", "c", "x")
    assert store.find("ours", "c") is None
    assert [one.id for one in store.conversations("ours")] == ["d"]
    assert store.turns("ours", "c") == []
    assert say(store, "anew") == [1]


def test_summaries_are_added_once_and_come_in_order(store):
    say(store, *"abcdefghijklmn")
    birth = store.find("ours", "c").birth
    given = [SummaryNode(1, 1, 4, "parent"), leaf(10), leaf(2), leaf(1)]
    assert all(store.add_node("ours", "c", node, birth=birth) for node in given)
    assert not store.add_node("ours", "c", leaf(2, "another"), birth=birth)
    assert store.nodes("ours", "c") == [leaf(1), leaf(2), leaf(10), given[0]]
    store.delete("ours", "c")
    assert store.nodes("ours", "c") == []


def test_a_summary_of_what_is_gone_is_not_added(store):
    say(store, "a")
    birth = store.find("ours", "c").birth
    assert not store.add_node("ours", "c", leaf(2), birth=birth)
    assert not store.add_node("theirs", "c", leaf(1), birth=birth)
    store.delete("ours", "c")
    assert not store.add_node("ours", "c", leaf(1), birth=birth)
    say(store, "b")
    assert not store.add_node("ours", "c", leaf(1), birth=birth)
    assert store.nodes("ours", "c") == []
    store.delete("ours", "c")
    say(store, "c")
    assert store.nodes("ours", "c") == []


def test_two_requests_at_once_are_both_kept_in_order(make_store):
    stores = [make_store() for _ in range(3)]
    asked = [[f"{name}-{at}" for at in range(10)] for name in range(3)]
    with ThreadPoolExecutor(3) as pool:
        numbers = list(pool.map(lambda name: say(stores[name], *asked[name]), range(3)))
    assert sorted(chain(*numbers)) == list(range(1, 31))
    assert [turn.number for turn in stores[0].turns("ours", "c")] == list(range(1, 31))
    for name in range(3):
        assert [q for q in questions(stores[0]) if q.startswith(f"{name}-")] == asked[name]


def test_old_turns_of_all_tenants_go(make_store, monkeypatch):
    now = 1_000_000.0
    monkeypatch.setattr(conversations.time, "time", lambda: now)
    store = make_store(retention_days=2)
    say(store, "old")
    say(store, "old", tenant="theirs")
    now += 86_400
    say(store, "newer")
    birth = store.find("ours", "c").birth
    for node in (*map(leaf, (1, 2)), SummaryNode(1, 1, 2, "both")):
        assert store.add_node("ours", "c", node, birth=birth)
    now += 1.5 * 86_400
    say(make_store(retention_days=2), "today", conversation="d")  # the first turn that a store keeps
    assert questions(store) == ["newer"]
    assert [(node.level, node.first_turn) for node in store.nodes("ours", "c")] == [(0, 2)]
    # A summary that was being written when its turn went is not kept.
    assert not store.add_node("ours", "c", leaf(1), birth=birth)
    assert store.conversations("theirs") == []
    assert say(store, "today") == [3]


NO_IDS = ["", "../../etc/passwd", "x" * 129, "a b", "a\n", "\0", "-a", None, [10**5000]]
NOBODY = ["", " ", None, 7, "a\0b", "\ud800"]


@pytest.mark.parametrize(
    ("tenant", "conversation", "said"),
    [
        *(("ours", conversation, "not a valid conversation id") for conversation in NO_IDS),
        *((tenant, "c", "without a tenant") for tenant in NOBODY),
    ],
)
def test_what_can_be_no_id_and_nobodys_is_refused_by_every_door(store, tenant, conversation, said):
    doors = [store.turns, store.find, store.nodes, store.delete]
    doors += [lambda whose, name: say(store, "a", tenant=whose, conversation=name)]
    doors += [lambda whose, _: store.conversations(whose)] if tenant != "ours" else []
    for ask in doors:
        with pytest.raises(RefusedError, match=said):
            ask(tenant, conversation)


def test_usual_ids_are_taken(store):
    for usual in ("c", "x" * 128, "8f14e45f-ceea-4e1b", "用户1", "a.b:c_d-e"):
        assert say(store, "a", conversation=usual) == [1]


def test_whatever_is_said_comes_back_or_is_made_storable(store):
    said = "'; DROP TABLE turns; -- \x00 \U0001f600 \u202e {whose} :tenant"
    store.append("ours", "c", Turn(said, "\ud800 half", "both"))
    (turn,) = store.turns("ours", "c")
    assert (turn.question, turn.answer) == (said, "? half")
    store.append("ours", "c", Turn("long", "x" * 1_000_000))
    assert len(store.turns("ours", "c", last=1)[0].answer) == 100_000


TENANTS = ["ours", "theirs", "Ours", "ours ", "our", "ours' OR '1'='1", "书", "*", "%", "ours\x1ftheirs"]
NAMES = ["c", "C", "c1", "c_", "c.", "用户", "c:c"]


def test_no_conversation_of_another_tenant_is_ever_seen(store):
    births = {}
    for tenant, name in product(TENANTS, NAMES):
        say(store, f"{tenant}|{name}", tenant=tenant, conversation=name)
        births[tenant, name] = store.find(tenant, name).birth
        assert store.add_node(tenant, name, leaf(1, f"{tenant}|{name}"), birth=births[tenant, name])
    assert len(set(births.values())) == len(births)
    assert store.rename(TENANTS[0], NAMES[0], "renamed")
    assert store.delete(TENANTS[0], NAMES[1])
    for tenant, name in product(TENANTS, NAMES):
        said = [f"{tenant}|{name}"] * ((tenant, name) != (TENANTS[0], NAMES[1]))
        assert questions(store, tenant, name) == [node.text for node in store.nodes(tenant, name)] == said
        found = store.find(tenant, name)
        title = "renamed" if (tenant, name) == (TENANTS[0], NAMES[0]) else plain_line(f"{tenant}|{name}", 80)
        assert found is None if not said else (found.title, found.birth) == (title, births[tenant, name])
        assert name in {one.id for one in store.conversations(tenant)} or not said


@pytest.mark.parametrize("careless", [lambda self: [], lambda self, tenant_id, text: []])
def test_a_door_that_does_not_say_whose_cannot_be_built(careless):
    with pytest.raises(TypeError, match="whose conversation"):
        type("Careless", (SQLiteConversationStore,), {"search": careless})


def test_a_conversation_is_exported(store):
    say(store, "Who was\nAn Lushan?")
    store.append("ours", "c", Turn("And then?", "# He died.\n\nIn 757 [1]."))
    conversation, turns = store.find("ours", "c"), store.turns("ours", "c")
    data = shown_conversation(conversation, turns)
    assert (data["id"], data["title"]) == ("c", "Who was An Lushan?")
    assert [turn["number"] for turn in data["turns"]] == [1, 2]
    assert "birth" not in data
    text = export_markdown(conversation, turns)
    assert text.startswith("# Who was An Lushan?\n\n## 1. Who was An Lushan?\n\n*20")
    assert text.endswith("## 2. And then?\n\n" + text.split("\n\n")[-2] + "\n\n> # He died.\n>\n> In 757 [1].\n")


HOSTILE = (
    "\x1b[31mred\x1b[0m \x00\u202eback\u2066 \x9b2J <img src=x onerror=alert(1)> ![x](http://h/y) [a](b) # *b* `c` $5$"
)


def test_a_title_has_no_control_and_no_override(store):
    say(store, HOSTILE)
    store.append("ours", "d", Turn("\u202e\u200f", "A."))
    for conversation in store.conversations("ours"):
        assert conversation.title.isprintable()
    plain = "red back <img src=x onerror=alert(1)> ![x](http://h/y) [a](b) # *b* `c` $5$"
    assert store.find("ours", "c").title == plain
    assert store.rename("ours", "c", f"{HOSTILE} 👩\u200d🚀")
    assert store.find("ours", "c").title == f"{plain} 👩\u200d🚀"


def test_an_export_writes_what_people_said_as_text(store):
    say(store, HOSTILE)
    store.append("ours", "c", Turn("<script>1</script>\u202e", "- **b** [1] <b onclick=x> ![p](http://h/?q) \x1b[2J"))
    as_it_came = replace(store.find("ours", "c"), title=HOSTILE)
    assert head_of(as_it_came)["title"].isprintable()
    text = export_markdown(as_it_came, store.turns("ours", "c"))
    assert all(one.isprintable() or one == "\n" for one in text)
    title = r"# red back \<img src=x onerror=alert(1)\> \!\[x\](http://h/y) \[a\](b) \# \*b\* \`c\` \$5\$"
    assert text.splitlines()[0] == title
    assert r"## 2. \<script\>1\</script\>" in text
    assert r"> - **b** [1] \<b onclick=x> !\[p]\(http://h/?q)" in text
