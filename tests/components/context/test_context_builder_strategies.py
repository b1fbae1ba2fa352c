import random

import pytest
from haystack import Document
from haystack.dataclasses import ChatMessage
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.doubles.prompt_reading import parse_sources

from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.context.context_builder import ContextBuilder
from shiguan.errors import ModelMissingError
from shiguan.models import token_counter
from shiguan.models.token_counter import TokenCounter

STRATEGIES = ("truncate", "dynamic", "hierarchical")
GOODS = "horses gates grain salt letters silk tea iron boats walls wine carts oxen bells lamps".split()


def sentence(at):
    return f"Sentence {at} tells of the governor of town{at} and his {GOODS[at]}."


TEXT = " ".join(sentence(at) for at in range(15))


def passage(name, score, *matched, text=TEXT, **meta):
    spans = [(text.index(sentence(at)), text.index(sentence(at)) + len(sentence(at))) for at in matched]
    matches = [{"child_id": f"{name}{start}", "start": start, "end": end, "score": 1.0} for start, end in spans]
    return Document(id=name, content=text, score=score, meta={"source": "t.epub", "matches": matches, **meta})


def parents(count=5, length=15):
    """Different long passages, so that none is a near-duplicate."""
    found = []
    for at in range(count):
        counted = (f"In town{at} the {GOODS[(at * 3 + n) % 15]} of house{at}x{n} were counted." for n in range(length))
        text = " ".join(counted)
        start = text.index(f"house{at}x{length // 2}")
        matches = [{"child_id": "c", "start": start, "end": start + 5, "score": 1.0}]
        meta = {"source": "t.epub", "matches": matches}
        found.append(Document(id=f"{'cbdae'[at]}{at}", content=text, score=1 - at / 10, meta=meta))
    return found


def read(result):
    """What the generator reads of the only passage."""
    (block,) = parse_sources(result["context"])
    return block.text


def without_weights():
    raise ModelMissingError("The weights are not installed.")


def test_a_citation_across_a_gap_has_the_stored_parents_offsets():
    built = ContextBuilder(200, strategy="hierarchical").run([passage("a", 1.0, 2, 13)])
    (document,) = built["documents"]
    assert read(built) == f"…\n{' '.join(map(sentence, (1, 2, 3)))}\n…\n{' '.join(map(sentence, (12, 13, 14)))}"
    start, end = document.meta["cut"]
    assert TEXT[start:end] == document.content
    kept = [" ".join(map(sentence, (1, 2, 3))), " ".join(map(sentence, (12, 13, 14)))]
    assert [TEXT[a:b] for a, b in document.meta["kept"]] == kept
    replies = [ChatMessage.from_assistant("Sentence 13 tells of the governor of town13 and his bells [1].")]
    (citation,) = CitationExtractor().run(replies, documents=built["documents"])["answers"][0].meta["citations"]
    assert TEXT[citation["start"] : citation["end"]] == citation["quote"] == sentence(13)
    assert citation["verdict"] == "supported"


def test_dynamic_reads_of_every_passage_and_more_of_one_that_has_more_of_the_question():
    query = "Who counted the iron of house3x7 and the salt of house3x1 in town3?"
    assert len(ContextBuilder(800).run(parents())["documents"]) == 3
    built = ContextBuilder(800, strategy="dynamic").run(parents(), query=query)
    lengths = {one.id: len(one.content) for one in built["documents"]}
    assert len(lengths) == 5
    assert max(lengths, key=lengths.get) == parents()[3].id
    assert all("x7" in one.content for one in built["documents"])  # the matched sentence
    whole = ContextBuilder(strategy="dynamic").run(parents(), query=query)["documents"]
    assert [one.content for one in whole] == [one.content for one in parents()]


def test_hierarchical_reads_the_matched_sentence_with_its_neighbours_and_the_best_passages_whole():
    documents = [passage("a", 1.0, 6, section=["Part 1", "Towns"]), parents(2)[1]]
    around = ContextBuilder(130, strategy="hierarchical").run(documents[:1])
    (block,) = parse_sources(around["context"])
    assert block.text == f"…\n{sentence(5)} {sentence(6)} {sentence(7)}\n…"
    assert "Part 1 › Towns" in around["context"]
    both = ContextBuilder(400, strategy="hierarchical").run(documents)["documents"]
    assert both[0].content == TEXT
    assert (both[1].content.count("."), "house1x7" in both[1].content) == (3, True)
    whole = ContextBuilder(800, strategy="hierarchical").run(documents)["documents"]
    assert [one.content for one in whole] == [one.content for one in documents]


@given(budget=st.integers(60, 1200), count=st.integers(1, 5), strategy=st.sampled_from(["dynamic", "hierarchical"]))
@settings(max_examples=25, deadline=None)
def test_no_strategy_exceeds_its_budget(budget, count, strategy):
    built = ContextBuilder(budget, strategy=strategy).run(parents(count), query="Who counted the iron of house1x7?")
    assert TokenCounter().count(built["context"]) <= budget


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_shuffled_passages_give_the_same_bytes(strategy, monkeypatch):
    documents = [
        *parents(length=5),
        Document(id="tie-b", content="Two carts of salt.", score=0.8),
        Document(id="tie-a", content="One cart of silk.", score=0.8),
        # The same passage twice, as when a second retrieval finds it again.
        Document(id="c0", content=parents(length=5)[0].content, score=0.2),
    ]

    # Characters are counted here, which is much faster than tokens.
    monkeypatch.setattr(token_counter, "tokenizer", without_weights)
    builder = ContextBuilder(900, strategy=strategy)
    first = builder.run(documents, query="How many carts of salt were counted?")
    assert 2 <= len(first["documents"]) <= 7
    shuffler = random.Random(11)
    for _ in range(50):
        shuffler.shuffle(documents)
        again = builder.run(documents, query="How many carts of salt were counted?")
        assert again["context"].encode() == first["context"].encode()
        assert again["documents"] == first["documents"]


@settings(max_examples=60)
@example([("。1!天", [], 0.0)], 1, "hierarchical")
@given(
    st.lists(
        st.tuples(
            st.text(alphabet="ab 。.!\n天寶[]1<>", max_size=120) | st.text(max_size=60),
            st.lists(st.tuples(st.integers(-5, 150), st.integers(-5, 150)), max_size=3),
            st.none() | st.floats(0, 1),
        ),
        max_size=5,
    ),
    st.integers(1, 120),
    st.sampled_from(STRATEGIES),
)
def test_any_passages_read_back_and_map_to_their_parents(items, budget, strategy):
    documents = [
        Document(id=str(at), content=text, score=score, meta={"matches": [{"start": a, "end": b} for a, b in spans]})
        for at, (text, spans, score) in enumerate(items)
    ]
    result = ContextBuilder(budget, strategy=strategy).run(documents, query="a 天寶")
    numbers = list(range(1, len(result["documents"]) + 1))
    assert [block.number for block in parse_sources(result["context"])] == numbers
    assert [document.meta["number"] for document in result["documents"]] == numbers
    for document in result["documents"]:
        stored = documents[int(document.id)].content
        start, end = document.meta.get("cut", [0, len(stored)])
        assert stored[start:end] == document.content
        for a, b in document.meta.get("kept", []):
            assert start <= a < b <= end
