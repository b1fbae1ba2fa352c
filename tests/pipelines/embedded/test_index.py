import gzip
import json

import docx
import pytest
from tests.doubles.fake_embedder import FakeEmbedder

from shiguan.engine.loading import load_pipeline

READING = {"source_inspector", "epub_converter", "jsonl_converter", "joiner"}
STAGES = {"splitter", "passage_writer", "vector_writer"}


class Index:
    """Both pipelines on a folder of its own, with an embedder that counts."""

    def __init__(self, data_dir):
        self.reading = load_pipeline("embedded", "read")
        self.pipeline = load_pipeline("embedded", "index", data_dir=data_dir)
        self.embedder = FakeEmbedder()
        self.pipeline.get_component("vector_writer").document_embedder = self.embedder
        writer = self.pipeline.get_component("passage_writer")
        self.parents, self.children = writer.parent_store.unscoped(), writer.child_store.unscoped()

    def run(self, *paths, **given):
        read = self.reading.run({"sources": list(paths)}, include_outputs_from=READING)
        documents = read.get("joiner", {}).get("documents", [])
        given = {"documents": documents, "tenant_id": "t", **given}
        return {**read, **self.pipeline.run(given, include_outputs_from=STAGES)}

    def everything(self):
        return [
            sorted(json.dumps(d.to_dict(flatten=False), sort_keys=True) for d in store.filter_documents())
            for store in (self.parents, self.children)
        ]


@pytest.fixture
def index(tmp_path):
    return Index(tmp_path / "data")


@pytest.fixture
def books(tmp_path):
    folder = tmp_path / "books"
    folder.mkdir()
    return folder


def skipped(result):
    return [entry for stage in result.values() for entry in stage.get("skipped", [])]


ENGLISH = "In 755 the governor rebelled at Fanyang. The emperor fled to the west."


def one_of_each(folder):
    (folder / "a.txt").write_text(ENGLISH)
    (folder / "a.md").write_text(f"# Tang\n\n## Rebellion\n\n{ENGLISH}")
    (folder / "a.html").write_text(f"<html><body><h1>Tang</h1><p>{ENGLISH}</p></body></html>")
    (folder / "a.jsonl").write_text(json.dumps({"id": "r1", "text": ENGLISH, "meta": {"juan": 200}}))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(json.dumps({"id": "r1", "text": ENGLISH}).encode()))
    document = docx.Document()
    document.add_heading("Rebellion", 1)
    document.add_paragraph(ENGLISH)
    document.save(str(folder / "a.docx"))
    return sorted(folder.iterdir())


def test_every_kind_of_file_goes_in_with_its_place_and_its_meta(index, books):
    result = index.run(*one_of_each(books))
    assert skipped(result) == []
    parents = {parent.meta["source"]: parent for parent in index.parents.filter_documents()}
    assert {name: parent.content for name, parent in parents.items()} == dict.fromkeys(
        ["a.txt", "a.md", "a.html", "a.jsonl", "b.jsonl.gz", "a.docx"], ENGLISH
    )
    assert parents["a.md"].meta["section"] == ["Tang", "Rebellion"]
    assert parents["a.docx"].meta["section"] == ["Rebellion"]
    assert parents["a.jsonl"].meta["juan"] == 200
    assert parents["a.jsonl"].meta["record_id"] == "r1"
    assert parents["a.jsonl"].meta["source_id"] != parents["b.jsonl.gz"].meta["source_id"]
    assert {parent.meta["tenant_id"] for parent in parents.values()} == {"t"}
    children = index.children.filter_documents()
    assert {child.meta["parent_id"] for child in children} == {parent.id for parent in parents.values()}
    assert all(child.embedding for child in children)


def test_the_same_files_twice_change_nothing_and_embed_nothing(index, books):
    files = one_of_each(books)
    index.run(*files)
    before, embedded = index.everything(), index.embedder.embedded
    result = index.run(*files)
    assert index.everything() == before
    assert index.embedder.embedded == embedded
    assert len(embedded) == 6
    assert result["passage_writer"]["new"] == 0
    assert result["passage_writer"]["removed"] == 0


def test_files_one_by_one_give_the_same_as_together(index, books, tmp_path):
    files = one_of_each(books)
    index.run(*files)
    single = Index(tmp_path / "single")
    for file in files:
        single.run(file)
    assert single.everything() == index.everything()


def test_a_changed_file_replaces_its_own_and_leaves_no_orphan(index, books, tmp_path):
    paragraphs = [f"Paragraph {n}. " + "The garrison marched to the south. " * 20 for n in range(20)]
    book, other = books / "book.txt", books / "other.txt"
    book.write_text("\n\n".join(paragraphs))
    other.write_text(ENGLISH)
    index.run(book, other)
    embedded = len(index.embedder.embedded)
    paragraphs[-1] = "A new ending. " * 10
    book.write_text("\n\n".join(paragraphs))
    result = index.run(book)
    assert result["passage_writer"]["removed"] > 0
    assert 0 < len(index.embedder.embedded) - embedded < embedded / 2
    fresh = Index(tmp_path / "fresh")
    fresh.run(book, other)
    assert index.everything() == fresh.everything()


def test_a_file_that_can_no_longer_be_read_keeps_what_it_had(index, books):
    book = books / "a.txt"
    book.write_text(ENGLISH)
    index.run(book)
    before = index.everything()
    book.write_bytes(b"\0\1\2" * 50)
    assert len(skipped(index.run(book))) == 1
    assert index.everything() == before
