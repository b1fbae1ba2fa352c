import pytest
from haystack import Pipeline
from haystack.components.joiners import DocumentJoiner
from tests.components.memory.conftest import DocumentEmbedder, of
from tests.doubles.work import work

from shiguan.conversations import Turn
from shiguan.errors import RefusedError, StoreError
from shiguan.memory.memory_retriever import MemoryRetriever, _bm25
from shiguan.memory.summary_tree import SummaryTree
from shiguan.query.e5_text_embedder import E5TextEmbedder
from shiguan.retrieval.score_standardizer import ScoreStandardizer
from shiguan.stores.embedded.sqlite_conversation_store import SQLiteConversationStore

THEMES = ["the salt monopoly", "the siege of Suiyang", "the census of 764", "the battle of Xiangji"]


def talk(store, count=12, tenant="ours", conversation="c"):
    """Three turns on each of four themes, each new one opened by a question of its own."""
    for number in range(count):
        theme = THEMES[number // 3 % len(THEMES)]
        source = "both" if number % 3 else "database"
        store.append(
            tenant, conversation, Turn(f"What of {theme}, part {number}?", f"Of {theme} it says {number}.", source)
        )
    summaries = SummaryTree(store, document_embedder=DocumentEmbedder())
    summaries.run(conversation_id=conversation, filters=of(tenant))


def search(retriever, query="the siege of Suiyang", tenant="ours", **more):
    return retriever.run(**{"memory_query": query, "filters": of(tenant), "conversation_id": "c", **more})


def turns(result):
    return [(one.meta["level"], *one.meta["turns"]) for one in result["documents"]]


def test_the_last_turns_come_as_they_were_said_and_with_them_what_fits(store, make_retriever):
    talk(store)
    result = search(make_retriever(top_k=1))
    assert result["warnings"] == []
    assert sorted(turns(result)[1:]) == [(-1, 10, 10), (-1, 11, 11), (-1, 12, 12)]
    assert turns(result)[0][1] in (4, 5, 6)
    assert "Suiyang" in result["documents"][0].content
    recent = next(one for one in result["documents"] if one.meta["turns"] == [12, 12])
    assert recent.content == "What of the battle of Xiangji, part 11?\nOf the battle of Xiangji it says 11."


def test_fragments_say_that_they_are_memory_and_have_no_number(store, make_retriever):
    talk(store)
    for one in search(make_retriever())["documents"]:
        assert one.meta["origin"] == "memory"
        assert one.meta["tenant_id"] == "ours"
        assert "number" not in one.meta


def test_of_summaries_that_contain_one_another_one_is_shown(store, make_retriever):
    talk(store, 16)
    found = [one for one in turns(search(make_retriever(top_k=20))) if one[0] >= 0]
    spans = [set(range(first, last + 1)) for _, first, last in found]
    assert any(level > 0 for level, _, _ in found)
    assert all(spans[a].isdisjoint(spans[b]) for a in range(len(spans)) for b in range(a))


def test_a_turn_without_a_summary_stands_in_for_it(store, make_retriever):
    talk(store, 2)
    for number in range(6):
        store.append("ours", "c", Turn(f"What of the plague, part {number}?", "Nothing."))
    found = turns(search(make_retriever(last_turns=2, top_k=4), "plague"))
    assert {(-1, number, number) for number in (7, 8)} <= set(found)
    assert {(-1, number, number) for number in (3, 4, 5, 6)} <= set(found)


@pytest.mark.parametrize("more", [{"source": "database"}, {"conversation_id": None}, {"memory_query": " "}])
def test_where_nothing_is_asked_of_memory_there_is_none(store, make_retriever, more):
    talk(store)
    assert search(make_retriever(), **more) == {"documents": [], "warnings": []}


def test_another_tenants_conversation_is_as_if_it_were_not(store, make_retriever):
    talk(store)
    assert search(make_retriever(), tenant="theirs") == {"documents": [], "warnings": []}
    assert search(make_retriever(), conversation_id="unknown") == {"documents": [], "warnings": []}


@pytest.mark.parametrize("filters", [None, {}, {"field": "meta.title", "operator": "==", "value": "x"},
    {"operator": "OR", "conditions": of("ours")["conditions"]},
    {"operator": "AND", "conditions": [*of("ours")["conditions"], *of("theirs")["conditions"]]}])  # fmt: skip
def test_without_one_tenant_nothing_is_searched(store, make_retriever, filters):
    with pytest.raises(RefusedError):
        search(make_retriever(), filters=filters)


def test_a_callers_own_conditions_do_not_change_whose_conversation_it_is(store, make_retriever):
    talk(store)
    own = {"operator": "OR", "conditions": [{"field": "meta.tenant_id", "operator": "==", "value": "theirs"}]}
    filters = {"operator": "AND", "conditions": [*of("ours")["conditions"], own]}
    assert {one.meta["tenant_id"] for one in search(make_retriever(), filters=filters)["documents"]} == {"ours"}


def test_a_store_that_fails_costs_a_warning(store, make_retriever, monkeypatch):
    def broken(*arguments, **words):
        raise StoreError("The store is away. Start it.")

    talk(store)
    monkeypatch.setattr(store, "nodes", broken)
    assert search(make_retriever()) == {
        "documents": [],
        "warnings": ["The conversation was not looked up. The store is away. Start it."],
    }


def test_without_vectors_words_find_it_alone(store, make_retriever):
    class Nothing:
        def run(self, text):
            return {"embedding": [], "warnings": ["Searched by words alone."]}

    talk(store)
    result = search(make_retriever(text_embedder=Nothing(), top_k=1))
    assert result["warnings"] == ["Searched by words alone."]
    assert "Suiyang" in result["documents"][0].content


def test_vectors_of_another_length_are_not_compared(store, make_retriever):
    class Longer:
        def run(self, text):
            return {"embedding": [1.0] * 17}

    talk(store)
    assert "Suiyang" in search(make_retriever(text_embedder=Longer(), top_k=1))["documents"][0].content


def test_scores_of_words_are_those_of_bm25():
    # Three texts of one or two terms; `salt` is in two of them: ln(1 + 1.5 / 2.5) = .470.
    scores = _bm25("salt", ["salt tax", "salt salt", "iron"])
    length = 1.2 * (0.25 + 0.75 * 2 / 200)
    assert scores.tolist() == pytest.approx(
        [0.470004 * 2.2 / (1 + length), 0.470004 * 2 * 2.2 / (2 + length), 0.0], rel=1e-5
    )


def test_four_times_as_many_turns_are_at_most_twice_the_work(store, make_retriever):
    retriever, steps = make_retriever(), []
    for count in (200, 800):
        talk(store, count - (steps != []) * 200)
        search(retriever)
        steps.append(work(lambda: search(retriever)))
    assert 1_000 < steps[1] <= 2 * steps[0]


def test_round_trip(tmp_path):
    pipeline = Pipeline()
    retriever = MemoryRetriever(
        SQLiteConversationStore(str(tmp_path)),
        text_embedder=E5TextEmbedder(),
        standardizer=ScoreStandardizer(),
        joiner=DocumentJoiner(join_mode="merge", weights=[0.5, 0.5]),
    )
    pipeline.add_component("memory", retriever)
    again = Pipeline.loads(pipeline.dumps()).get_component("memory")
    assert again.conversation_store.path == str(tmp_path)
