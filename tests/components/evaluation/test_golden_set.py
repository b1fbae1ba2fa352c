"""Reading golden sets, and the sample book's own."""

import gzip
import json
from pathlib import Path

import pytest
from examples.build_book import build_book
from haystack import Document

from shiguan.engine.why import folded
from shiguan.errors import RefusedError
from shiguan.evaluation.json_lines import write_json_lines
from shiguan.evaluation.questions import GoldPassage, read_golden_set
from shiguan.ingest.epub_to_document import EPUBToDocument

SAMPLE = Path(__file__).resolve().parents[3] / "bench" / "quality" / "golden" / "sample_book.jsonl"
GOOD = {"id": "1", "question": "When?", "answers": ["755"], "gold": [{"quote": "In 755"}]}


def written(tmp_path, *rows):
    path = tmp_path / "golden.jsonl"
    write_json_lines(path, rows)
    return path


def test_a_row_is_read_whole(tmp_path):
    row = {**GOOD, "type": "time", "language": "en", "history": [{"role": "user", "content": "An Lushan?"}]}
    (one,) = read_golden_set(written(tmp_path, row)).questions
    assert (one.text, one.answers, one.stratum) == ("When?", ["755"], "time")
    assert one.history == [{"role": "user", "content": "An Lushan?"}]
    assert one.gold == (GoldPassage("In 755"),)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_mark_of_the_encoding_is_no_part_of_the_first_row(tmp_path, suffix):
    data = f"{json.dumps(GOOD)}\n".encode("utf-8-sig")
    path = tmp_path / f"golden.jsonl{suffix}"
    path.write_bytes(gzip.compress(data) if suffix else data)
    (one,) = read_golden_set(path).questions
    assert (one.text, one.answers) == ("When?", ["755"])


def test_queries_of_a_retrieval_set_are_read_as_they_are(tmp_path):
    place = {"doc_id": "d", "start": 3, "end": 6}
    when = {"id": "1", "text": "When?", "answers": ["755"], "gold": [place], "meta": {"lang": "en"}}
    why = {"id": "2", "text": "Why?", "answers": [], "meta": {"unanswerable": True}}
    first, second = read_golden_set(written(tmp_path, when, why)).questions
    assert first.gold == (GoldPassage("", "d", ((3, 6),)),)
    assert (first.language, second.answerable) == ("en", False)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"id": "1", "question": "When?"}, "an answerable question has answers or gold"),
        ({**GOOD, "answerable": False}, "has neither"), ({**GOOD, "answerable": "no"}, "`answerable` is 'no'"),
        ({**GOOD, "answers": "755"}, "must be a list of texts"), ({**GOOD, "answers": [""]}, "must be a list of texts"),
        ({**GOOD, "gold": "In 755"}, "`gold` must be a list"), ({**GOOD, "gold": ["In 755"]}, "`gold` must be a list"),
        ({**GOOD, "gold": [{"quote": ""}]}, "`gold` must be a list"),
        ({**GOOD, "gold": [{"doc_id": "d", "start": 6, "end": 3}]}, "`gold` must be a list"),
        ({"question": "When?", "answers": ["755"]}, "no `id`"),
        ({"id": "1", "question": " ", "answers": ["755"]}, "empty question"),
        ({**GOOD, "question": ["When?"]}, "`question` must be a text"),
        ({**GOOD, "history": [{"role": "user", "content": {"text": "An Lushan?"}}]}, "`content` must be a text"),
        ({**GOOD, "history": [{"role": "User", "content": "An Lushan?"}]}, "`user` or `assistant`"),
        ({**GOOD, "history": [{"role": ["user"], "content": "An Lushan?"}]}, "`user` or `assistant`"),
        ({**GOOD, "history": {}}, "expected a list of turns"),
        ({**GOOD, "gold": [{"quote": "In 755", "source": ["a.epub", "b.epub"]}]}, "source"),
        ({**GOOD, "gold": [{"quote": ["In 755"]}]}, "quote"),
        ({**GOOD, "gold": [{"quote": "In 755", "grade": 2}]}, "grade"),
        ({**GOOD, "gold": [{"quote": "In 755", "source": "a.epub", "doc_id": "d"}]}, "doc_id"),
        ({**GOOD, "gold": [{"quote": "In 755", "source": "d", "start": "3", "end": "6"}]}, "start"),
        ({**GOOD, "gold": [{"quote": "In 755", "source": "d", "start": 3}]}, "`gold` must be a list"),
        ({**GOOD, "id": ["1"]}, "`id` must be a text or a whole number"),
        ({**GOOD, "id": True}, "`id` must be a text or a whole number"),
        ({**GOOD, "type": ["time"]}, "`type` must be a text or a whole number"),
        ({**GOOD, "meta": {"lang": ["en"]}}, "`language` must be a text or a whole number"),
        # What could be read in two ways, or not be written again.
        ('{"id": "1", "question": "When?", "answers": ["755"], "answers": ["756"]}', "`answers` is given twice"),
        ('{"id": "1", "question": "When?", "gold": [{"quote": "a", "quote": "b"}]}', "`quote` is given twice"),
        ('{"id": "1", "question": "When?", "answers": ["75\\ud835"]}', "surrogates not allowed"),
        ('{"id": "1", "question": "When?", "answers": ["755"], "weight": NaN}', "not JSON"),
        ('{"id": "1", "question": "When?", "answers": ["755"], "weight": 1e400}', "not JSON"),
        (f"{json.dumps(GOOD)}\n{json.dumps(GOOD)}", "repeats the id `1`"), ("", "has no questions"),
    ],
)  # fmt: skip
def test_what_could_never_be_right_is_refused(tmp_path, row, words):
    path = tmp_path / "golden.jsonl"
    path.write_text(row if isinstance(row, str) else json.dumps(row), encoding="utf-8")
    with pytest.raises(RefusedError, match=words):
        read_golden_set(path)


def test_names_may_be_numbers_and_what_a_row_says_beside_is_free(tmp_path):
    place = {"doc_id": 7, "start": 3, "end": 6, "text": "755"}
    row = {**GOOD, "id": 1, "type": 3, "gold": [place], "meta": "of a friend", "notes": ["kept"]}
    (one,) = read_golden_set(written(tmp_path, row)).questions
    assert (one.id, one.stratum, one.gold) == ("1", "3", (GoldPassage("", "7", ((3, 6),)),))


def test_a_gold_passage_is_found_by_its_words_or_its_place():
    meta = {"record_id": "d", "source": "b.epub", "start": 10, "end": 33}
    document = Document(id="p", content="In 755\n An Lushan rose.", meta=meta)
    assert GoldPassage("755 An Lushan").stands_in(document)
    assert GoldPassage("755", source="b.epub").stands_in(document)
    assert GoldPassage(source="d", spans=((30, 40),)).stands_in(document)
    assert not GoldPassage(source="d", spans=((33, 40),)).stands_in(document)
    assert not GoldPassage("755", source="other").stands_in(document)
    assert not GoldPassage("756").stands_in(document)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    path = build_book(tmp_path_factory.mktemp("book") / "an-lushan-rebellion.epub")
    documents = EPUBToDocument().run(sources=[path])["documents"]
    return folded("\n".join(document.content for document in documents))


def test_every_answer_of_the_sample_books_set_stands_in_its_passage_and_that_in_the_book(book):
    for one in read_golden_set(SAMPLE).questions:
        quotes = [folded(passage.quote) for passage in one.gold]
        assert all(quote in book for quote in quotes), one.id
        assert all(any(folded(answer) in quote for quote in quotes) for answer in one.answers), one.id
