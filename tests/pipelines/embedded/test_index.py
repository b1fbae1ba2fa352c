import gzip
import json
from dataclasses import replace

import docx
import pypdf
import pytest
import yaml
from haystack import AsyncPipeline, Document, component

from shiguan.loading import load_pipeline
from shiguan.resources import resource_folder

STAGES = {"source_inspector", "epub_converter", "jsonl_converter", "conversion_inspector", "splitter", "embedder",
          "child_writer", "orphan_remover"}  # fmt: skip


@component
class CountingEmbedder:
    """Gives every text the same kind of vector, and counts them."""

    def __init__(self):
        self.embedded = 0

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]):
        self.embedded += len(documents)
        return {"documents": [replace(d, embedding=[1.0, float(len(d.content))] * 192) for d in documents]}


class Index:
    """The index pipeline on a folder of its own, with an embedder that counts."""

    def __init__(self, data_dir):
        self.pipeline = load_pipeline("embedded", "index", data_dir=data_dir)
        self.embedder = CountingEmbedder()
        self.pipeline.get_component("embedder").document_embedder = self.embedder
        self.parents = self.pipeline.get_component("parent_writer").document_store.unscoped()
        self.children = self.pipeline.get_component("child_writer").document_store.unscoped()

    def data(self, paths, tenant_id="t", **extra):
        return {
            "source_inspector": {"sources": list(paths)},
            "stamper": {"tenant_id": tenant_id},
            "embedder": extra,
        }

    def run(self, *paths, **parameters):
        return self.pipeline.run(self.data(paths, **parameters), include_outputs_from=STAGES)

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


def test_the_file_is_loaded_by_haystack_alone():
    text = (resource_folder("pipelines") / "embedded" / "index.yml").read_text(encoding="utf-8")
    pipeline = AsyncPipeline.loads(text)
    # Haystack writes one of the PDF converter's defaults as a tuple, which plain YAML does not know.
    first, second = (
        yaml.safe_load(p.dumps().replace("!!python/tuple", ""))
        for p in (pipeline, AsyncPipeline.loads(pipeline.dumps()))
    )
    for dumped in (first, second):
        dumped["connections"].sort(key=str)
    assert first == second


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


async def test_the_pipeline_runs_in_an_event_loop(index, books):
    result = await index.pipeline.run_async(index.data(one_of_each(books)), include_outputs_from=STAGES)
    assert result["child_writer"]["documents_written"] == 6
    assert index.parents.count_documents() == 6


def test_the_same_files_twice_change_nothing_and_embed_nothing(index, books):
    files = one_of_each(books)
    index.run(*files)
    before, embedded = index.everything(), index.embedder.embedded
    result = index.run(*files)
    assert index.everything() == before
    assert index.embedder.embedded == embedded == 6
    assert result["child_writer"]["documents_written"] == 0
    assert result["orphan_remover"]["removed"] == 0


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
    embedded = index.embedder.embedded
    paragraphs[-1] = "A new ending. " * 10
    book.write_text("\n\n".join(paragraphs))
    result = index.run(book)
    assert result["orphan_remover"]["removed"] > 0
    assert 0 < index.embedder.embedded - embedded < embedded / 2
    fresh = Index(tmp_path / "fresh")
    fresh.run(book, other)
    assert index.everything() == fresh.everything()


def test_a_record_that_is_gone_from_its_file_is_gone_from_the_library(index, books):
    rows = books / "rows.jsonl"
    rows.write_text("\n".join(json.dumps({"id": str(n), "text": f"Row {n}. {ENGLISH}"}) for n in range(5)))
    index.run(rows)
    rows.write_text("\n".join(json.dumps({"id": str(n), "text": f"Row {n}. {ENGLISH}"}) for n in (0, 3)))
    assert index.run(rows)["orphan_remover"]["removed"] == 6
    assert {d.meta["record_id"] for d in index.parents.filter_documents()} == {"0", "3"}


def test_a_file_that_can_no_longer_be_read_keeps_what_it_had(index, books):
    book = books / "a.txt"
    book.write_text(ENGLISH)
    index.run(book)
    before = index.everything()
    book.write_bytes(b"\0\1\2" * 50)
    assert len(skipped(index.run(book))) == 1
    assert index.everything() == before


def test_two_tenants_have_a_file_each_and_neither_touches_the_others(index, books):
    book = books / "a.txt"
    book.write_text(ENGLISH)
    index.run(book, tenant_id="t")
    index.run(book, tenant_id="u")
    book.write_text("Something else.")
    index.run(book, tenant_id="u")
    assert {(d.meta["tenant_id"], d.content) for d in index.parents.filter_documents()} == {
        ("t", ENGLISH),
        ("u", "Something else."),
    }


def test_chinese_goes_in_without_a_vector(index, books):
    (books / "a.txt").write_text("天宝十四载，安禄山反于范阳。玄宗幸蜀，太子即位于灵武。")
    result = index.run(books / "a.txt")
    (child,) = index.children.filter_documents()
    assert (child.meta["language"], child.embedding, index.embedder.embedded) == ("zh", None, 0)
    assert "have no vector" in result["embedder"]["warnings"][0]


def test_progress_hears_of_the_passages(index, books):
    heard = []
    (books / "a.txt").write_text(ENGLISH)
    index.run(books / "a.txt", progress=lambda *step: heard.append(step))
    assert heard == [("embedding", 0, 1), ("embedding", 1, 1)]


@pytest.mark.filterwarnings("ignore")
def test_bad_files_are_each_explained_and_the_good_ones_go_in(index, books):
    good = one_of_each(books)
    bad = books / "bad"
    bad.mkdir()
    writer = pypdf.PdfWriter()
    writer.add_blank_page(100, 100)
    writer.write(str(bad / "scan.pdf"))
    writer.encrypt("secret")
    writer.write(str(bad / "locked.pdf"))
    (bad / "damaged.pdf").write_bytes(b"%PDF-1.7\n" + b"garbage " * 50)
    (bad / "cut.docx").write_bytes((books / "a.docx").read_bytes()[:2000])
    (bad / "zip.epub").write_bytes(b"PK\x03\x04 no archive")
    (bad / "empty.txt").write_bytes(b"")
    (bad / "picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n")
    (bad / "blank.html").write_text("<html><body> </body></html>")
    (bad / "notes.doc").write_bytes(b"x")
    (bad / "rows.jsonl").write_text('{"id": 1}\n["x"]\n{"text": "Good row."}\n')
    (bad / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"text": "x"}' * 1000)[:30])
    result = index.run(*good, *sorted(bad.iterdir()), bad / "missing.epub", bad)
    entries = skipped(result)
    named = sorted(entry["source"] for entry in entries)
    expected = sorted([*(p.name for p in bad.iterdir() if p.name != "rows.jsonl"), "rows.jsonl", "rows.jsonl",
                       "missing.epub", "bad"])  # fmt: skip
    assert named == expected
    assert all(entry["cause"] and entry["next_step"] for entry in entries)
    sources = {parent.meta["source"] for parent in index.parents.filter_documents()}
    assert sources == {*(path.name for path in good), "rows.jsonl"}


@pytest.mark.slow
def test_a_single_line_of_five_megabytes_goes_in(index, books):
    (books / "a.txt").write_text("天地玄黄宇宙洪荒" * 208_334)
    result = index.run(books / "a.txt")
    assert skipped(result) == []
    assert sum(len(child.content) for child in result["splitter"]["children"]) == 8 * 208_334


def test_only_bad_files_end_without_an_error(index, books):
    result = index.run(books / "gone.txt")
    assert len(skipped(result)) == 1
    assert index.parents.count_documents() == 0
