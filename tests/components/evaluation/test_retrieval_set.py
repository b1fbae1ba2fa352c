import gzip
import json

import pytest

from shiguan.errors import RefusedError
from shiguan.evaluation.questions import GoldPassage, read_retrieval_set, spread

CORPUS = [
    {"id": "d1", "title": "One", "text": "The capital fell in 756."},
    {"id": "d2", "title": "Two", "text": "安史之亂"},
]
TURNS = [("user", "唐代"), ("assistant", "嗯"), ("user", "何亂？")]
QUERIES = [
    {
        "id": "q1", "text": "When did the capital fall?", "answers": ["756"],
        "gold": [{"doc_id": "d1", "start": 20, "end": 23}], "meta": {"lang": "en", "stratum": "easy"},
    },
    {"id": "q2", "turns": [{"role": role, "text": text} for role, text in TURNS]},
]  # fmt: skip
QRELS = [{"query_id": "q1", "doc_id": "d1", "score": 2}, {"query_id": "q2", "doc_id": "d2", "score": 1}]


@pytest.fixture
def files(tmp_path):
    def write(corpus=CORPUS, queries=QUERIES, qrels=QRELS):
        paths = []
        for name, rows in (("corpus", corpus), ("queries", queries), ("qrels", qrels)):
            path = tmp_path / f"{name}.jsonl"
            text = rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows)
            path.write_text(text, encoding="utf-8")
            paths.append(path)
        return paths

    return write


def test_a_set_is_read_with_its_judgements_places_groups_and_turns(files):
    found = read_retrieval_set(*files())
    first, second = found.questions
    assert (first.text, first.gold) == ("When did the capital fall?", (GoldPassage("", "d1", ((20, 23),), 2.0),))
    assert (first.stratum, first.language, first.answers) == ("easy", "en", ["756"])
    assert (second.text, second.language, second.gold) == ("何亂？", "und", (GoldPassage(source="d2"),))
    assert second.history == [{"role": role, "content": text} for role, text in TURNS[:2]]
    assert set(found.hashes) == {"corpus.jsonl", "queries.jsonl", "qrels.jsonl"}
    assert found.unjudged == []


def test_compressed_files_are_read_too(files, tmp_path):
    paths = []
    for path in files():
        packed = tmp_path / f"{path.name}.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        paths.append(packed)
    assert [question.id for question in read_retrieval_set(*paths).questions] == ["q1", "q2"]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"corpus": []}, "corpus.jsonl has no documents"),
        ({"queries": []}, "queries.jsonl has no questions"),
        ({"qrels": []}, "2 of 2 questions have no relevant document"),
        ({"corpus": [*CORPUS, CORPUS[0]]}, "corpus.jsonl, line 3 repeats the id `d1`"),
        ({"queries": [*QUERIES, QUERIES[0]]}, "queries.jsonl, line 3 repeats the id `q1`"),
        ({"qrels": [*QRELS, QRELS[0]]}, "qrels.jsonl, line 3 judges `d1` for `q1` a second time"),
        ({"qrels": [*QRELS, {"query_id": "q1", "doc_id": "d9", "score": 1}]}, "line 3: there is no document `d9`"),
        ({"qrels": [*QRELS, {"query_id": "q9", "doc_id": "d1", "score": 1}]}, "line 3: there is no question `q9`"),
        ({"qrels": QRELS[:1]}, "1 of 2 questions have no relevant document"),
        ({"qrels": [QRELS[0], {**QRELS[1], "score": 0}]}, "1 of 2 questions have no relevant document"),
        ({"qrels": [{**QRELS[0], "score": -1}]}, "the score must be a number of at least 0, got -1"),
        ({"qrels": [{**QRELS[0], "score": "high"}]}, "the score must be a number of at least 0, got 'high'"),
        ({"qrels": [{**QRELS[0], "score": 10**400}]}, "the score must be a number of at least 0, got 1"),
        ({"qrels": [{**QRELS[0], "query_id": ["q1"]}]}, "`query_id` must be a text or a whole number, got ['q1']"),
        ({"corpus": [{**CORPUS[0], "text": ["The", "capital"]}]}, "`text` must be a text, got ['The', 'capital']"),
        ({"queries": [{"id": "q1", "turns": QUERIES[1]["turns"][:2]}]}, "the last turn must be of `user`"),
        ({"qrels": '{"query_id": "q1"\n'}, "qrels.jsonl, line 1 is not JSON"),
        ({"queries": '[1]\n'}, "queries.jsonl, line 1 holds a list"),
        ({"queries": [{"id": "q1"}]}, "has no `text` or `question`; its fields are id"),
        ({"queries": [{"id": "q1", "text": "  "}]}, "has an empty question"),
        ({"queries": [{**QUERIES[0], "gold": [{"doc_id": "d1", "start": 20, "end": 99}]}, QUERIES[1]]}, "20 to 99 is not a place"),
        ({"queries": [{**QUERIES[0], "gold": [{"doc_id": "x", "start": 0, "end": 1}]}, QUERIES[1]]}, "0 to 1 is not a place in the document `x`"),
        ({"queries": [{**QUERIES[0], "answers": "756"}, QUERIES[1]]}, "`answers` must be a list of texts, got '756'"),
        ({"queries": [{**QUERIES[0], "gold": "here"}, QUERIES[1]]}, "`gold` must be a list"),
    ],
)  # fmt: skip
def test_a_broken_set_is_refused_with_the_place(files, broken, message):
    with pytest.raises(RefusedError) as raised:
        read_retrieval_set(*files(**broken))
    assert message in str(raised.value)


def test_a_missing_or_damaged_file_is_refused(files, tmp_path):
    corpus, queries, qrels = files()
    with pytest.raises(RefusedError, match="does not exist"):
        read_retrieval_set(tmp_path / "none.jsonl", queries, qrels)
    damaged = tmp_path / "damaged.jsonl.gz"
    damaged.write_bytes(gzip.compress(corpus.read_bytes())[:-10])
    with pytest.raises(RefusedError, match=r"damaged.jsonl.gz cannot be read after line \d"):
        read_retrieval_set(damaged, queries, qrels)


def test_questions_without_judgements_are_left_out_on_request_and_counted(files):
    found = read_retrieval_set(*files(qrels=QRELS[:1]), skip_unjudged=True)
    assert [question.id for question in found.questions] == ["q1"]
    assert found.unjudged == ["q2"]


def test_a_slice_is_spread_over_the_whole_file():
    assert spread(list("abcdefghij"), 4) == ["a", "c", "f", "h"]
    assert spread(["a"], 5) == ["a"]
    assert spread(["a", "b"], None) == ["a", "b"]
    with pytest.raises(ValueError, match="`limit` must be positive, got 0"):
        spread(["a"], 0)
