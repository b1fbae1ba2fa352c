"""`shiguan stores` as a person types it."""

import json
import threading

import pytest
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from tests.doubles.fake_embedder import FakeEmbedder
from tests.doubles.recording_server import Reply

from shiguan.cli import main
from shiguan.engine import library_copy
from shiguan.engine.library import Library
from shiguan.engine.library_copy import LibraryCopy
from shiguan.engine.loading import load_stores
from shiguan.errors import RefusedError
from shiguan.ingest.e5_document_embedder import E5DocumentEmbedder
from shiguan.tenants import where

DEPLOYMENT = "elasticsearch_qdrant"


@pytest.fixture
def embedder(monkeypatch):
    """The deployment's embedder, replaced: its weights are too large for a test."""
    counting = FakeEmbedder(None, dimensions=1024)
    real = LibraryCopy.__init__
    monkeypatch.setattr(library_copy, "_SLICE", 256)

    def init(self, *arguments, **options):
        real(self, *arguments, **options)
        self.vector_writer.document_embedder = counting

    monkeypatch.setattr(LibraryCopy, "__init__", init)
    return counting


@pytest.fixture
def library():
    """600 parents and as many children of two tenants in the embedded stores, and none of their models."""
    file = {"source": "x.txt", "source_id": "s", "blocks": [{"start": 0}]}
    for kind, vector in (("parents", None), ("children", [0.5] * 384)):
        documents = []
        for number in range(600):
            meta = {"tenant_id": "a" if number % 3 else "b", **file}
            given = {"content": f"The {number}. passage", "meta": meta, "embedding": vector}
            documents.append(Document(id=f"{kind}-{number:04d}", **given))
        store = load_stores("embedded")[kind]
        store.write_documents(documents, policy=DuplicatePolicy.OVERWRITE)
        store.close()


def test_init_says_what_it_made_and_a_second_one_that_it_was_there(elasticsearch, qdrant, capsys):
    assert main(["stores", "init"]) == 0
    first = capsys.readouterr().out.splitlines()
    assert [line.split(": ", 1)[1].split(":")[0] for line in first] == [
        "index shiguan-parents made", "index shiguan-children made",
        "collection shiguan-children made", "payload indexes made",
        "index shiguan-conversations made",
    ]  # fmt: skip
    assert main(["stores", "init", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)["done"]
    assert [line.rsplit(" ", 2)[1:] for line in done] == [["was", "there"]] * 4


def test_init_of_the_embedded_deployment_has_nothing_to_make_and_without_an_address_names_the_variable(capsys):
    assert main(["stores", "init", "--deployment", "embedded"]) == 0
    assert "has no servers" in capsys.readouterr().out
    assert main(["stores", "init"]) == 2
    assert "SHIGUAN_ELASTICSEARCH_URL is not set" in capsys.readouterr().err


RESUME = "run `shiguan ingest --resume --deployment embedded --tenant a`"


@pytest.mark.parametrize(("without", "former", "told"), [
    ({}, False, None),
    ({"embedding": None}, False, f"`x.txt` of the tenant `a` has 0 vectors for 1 retrieval units: {RESUME}"),
    ({"embedding": None}, True, " were made with `former` and not with `intfloat/multilingual-e5-small"),
])  # fmt: skip
def test_status_of_the_embedded_deployment_names_what_a_file_lacks(
    tmp_path, monkeypatch, capsys, without, former, told
):
    monkeypatch.setenv("SHIGUAN_DATA_DIR", str(tmp_path))
    file = {"tenant_id": "a", "source": "x.txt", "source_id": "s", "file_id": "f", "title": "X", "language": "en"}
    passage = {"content": "The wall stood.", "meta": {**file, "units": 1}}
    for kind, more in (("parents", {}), ("children", {"embedding": [0.5] * 384, **without})):
        store = load_stores("embedded")[kind]
        store.write_documents([Document(id=kind, **passage, **more)])
        if former and kind == "children":
            store.write_vectors([Document(id=kind, embedding=[0.5] * 384)], model="former")
        store.close()
    assert main(["stores", "status", "--deployment", "embedded"]) == (1 if told else 0)
    first, second, *lacking = capsys.readouterr().out.splitlines()
    assert (first, second, [told in line for line in lacking]) == ("parents: 1", "children: 1", [True] if told else [])


def test_status_shows_counts_and_names_the_server_that_is_down(elasticsearch, qdrant, monkeypatch, capsys):
    main(["stores", "init"])
    capsys.readouterr()
    assert main(["stores", "status"]) == 0
    assert capsys.readouterr().out.splitlines() == ["parents: 0", "children: 0"]
    monkeypatch.setenv("SHIGUAN_ELASTICSEARCH_URL", "http://127.0.0.1:9")
    assert main(["stores", "status"]) == 1
    assert "Elasticsearch at http://127.0.0.1:9 cannot be reached" in capsys.readouterr().err


@pytest.mark.transformers  # the target names sentence-transformers models
def test_a_copy_takes_every_tenant_and_embeds_anew(elasticsearch, qdrant, library, embedder, capsys):
    main(["stores", "init"])
    capsys.readouterr()
    assert main(["stores", "copy", "--from", "embedded", "--to", "elasticsearch_qdrant", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)
    whole = {"source": 600, "written": 600, "known": 0, "missing": 0, "target": 600}
    assert counts == {
        "from": "embedded", "to": "elasticsearch_qdrant", "parents": whole, "children": whole, "warnings": []
    }  # fmt: skip
    assert len(embedder.embedded) == 600
    parents = load_stores("elasticsearch_qdrant")["parents"].unscoped()
    (copied,) = parents.filter_documents(where("id", "==", "parents-0007"))
    assert copied.meta == {"tenant_id": "a", "source": "x.txt", "source_id": "s", "blocks": [{"start": 0}]}
    points, _ = qdrant.local.scroll("shiguan-children", limit=600)
    assert {point.payload["content"] for point in points} == {f"The {number}. passage" for number in range(600)}


@pytest.mark.transformers  # the target names sentence-transformers models
def test_a_copy_that_was_interrupted_goes_on_where_it_was(elasticsearch, qdrant, library, embedder, capsys):
    main(["stores", "init"])
    bulks = []

    def full_after_four(request):
        if request.path.endswith("/_bulk"):
            bulks.append(request)
            if len(bulks) > 4:
                return Reply({"error": {"type": "es_rejected", "reason": "full"}, "status": 507}, status=507)
        return None

    elasticsearch.faults.append(full_after_four)
    capsys.readouterr()
    assert main(["stores", "copy"]) == 1
    assert "refused a request (status 507" in capsys.readouterr().err
    # Words come first, then all vectors.
    assert (embedder.embedded, qdrant.local.count("shiguan-children").count) == ([], 0)
    elasticsearch.faults.clear()
    there = len(elasticsearch.indexes["shiguan-children"])  # one slice; which, is a race of four
    assert there in (256, 88)
    assert main(["stores", "copy"]) == 0
    said = "{}: 600 in embedded, {} written, {} were there, 0 missing; elasticsearch_qdrant has 600 altogether."
    counts = (("parents", 0, 600), ("children", 600 - there, there))
    assert capsys.readouterr().out.splitlines() == [said.format(*one) for one in counts]
    assert len(embedder.embedded) == qdrant.local.count("shiguan-children").count == 600


@pytest.mark.transformers  # the target names sentence-transformers models
def test_a_copy_to_servers_that_were_not_prepared_says_so(elasticsearch, qdrant, library, embedder, capsys):
    assert main(["stores", "copy"]) == 1
    assert "Make it with `shiguan stores init`" in capsys.readouterr().err


@pytest.mark.transformers  # the target names sentence-transformers models
def test_slices_are_copied_side_by_side_and_ids_are_read_as_they_are_needed(
    elasticsearch, qdrant, library, embedder, monkeypatch
):
    main(["stores", "init"])
    monkeypatch.setattr(library_copy, "_SLICE", 10)
    copy = LibraryCopy("embedded", "elasticsearch_qdrant")
    parents, read, together = copy.source["parents"], [], threading.Barrier(4)
    iter_ids, get = parents.iter_ids, parents.filter_documents

    def counted():
        for document_id in iter_ids():
            read.append(document_id)
            yield document_id

    def waiting(filters):
        together.wait(30)  # for three others: one slice after the other would break the barrier
        return get(filters)

    parents.iter_ids, parents.filter_documents = counted, waiting
    try:
        assert copy.slices("parents") == 60
        steps = copy.copy("parents")
        next(steps)
        assert len(read) == 80  # eight slices are on their way, the others not known yet
        assert len(list(steps)) == 59
        assert copy.target["parents"].count_documents() == 600
    finally:
        copy.close()


def test_a_deployment_is_not_copied_to_itself():
    with pytest.raises(RefusedError, match="cannot be copied to itself"):
        LibraryCopy("embedded", "embedded")


@pytest.mark.transformers  # the target names sentence-transformers models
def test_what_gets_lost_meanwhile_is_missing(elasticsearch, qdrant, library, embedder, capsys):
    main(["stores", "init"])

    def forget_one(request):
        if request.path == "/shiguan-parents/_count":
            elasticsearch.indexes["shiguan-children"].pop("children-0000", None)
        return

    elasticsearch.faults.append(forget_one)
    capsys.readouterr()
    assert main(["stores", "copy"]) == 1
    out = capsys.readouterr().out
    assert "600 written, 0 were there, 1 missing; elasticsearch_qdrant has 599 altogether" in out
    assert "Run the same command again" in out


def test_a_copy_takes_vectors_along_where_both_deployments_embed_alike(
    elasticsearch, qdrant, small_models, tmp_path, monkeypatch, capsys
):
    path = tmp_path / "salt.txt"
    path.write_text("Liu Yan taxed salt in the year 760.\n\nThe tax paid for the war.", encoding="utf-8")
    [done] = Library("embedded").ingest([path], tenant_id="a")
    assert main(["stores", "init"]) == 0
    embedded = []
    run = E5DocumentEmbedder.run

    def counted(self, documents, **options):
        embedded.extend(documents)
        return run(self, documents, **options)

    monkeypatch.setattr(E5DocumentEmbedder, "run", counted)
    assert main(["stores", "copy"]) == 0
    source, target = (load_stores(name)["children"].unscoped() for name in ("embedded", DEPLOYMENT))
    assert (embedded, target.embedder()) == ([], source.embedder())
    copied, own = target.read_vectors({}), source.read_vectors({})
    assert len(copied) == done.children
    for name, vector in own.items():
        assert copied[name] == pytest.approx(vector, abs=1e-6)

    # Another field embedded makes other vectors: those that are missing are made, not copied.
    target.vectors.delete_documents(list(copied))
    monkeypatch.setattr(library_copy, "_embedder_of", lambda deployment: deployment)
    assert main(["stores", "copy"]) == 0
    assert (len(embedded), len(target.read_vectors({}))) == (done.children, done.children)
