"""Children are in both stores or count as missing."""

import pytest
from haystack import Document
from tests.components.stores.cluster.conftest import ALL, TENANT, child
from tests.doubles.recording_server import Reply

from shiguan.cli import main
from shiguan.engine.library import Library
from shiguan.engine.loading import load_stores
from shiguan.errors import StoreError, StoreUnavailableError
from shiguan.stores.cluster.paired_document_store import PairedDocumentStore


def test_what_is_in_one_store_alone_lacks_its_vector_or_is_left_over(pair):
    pair.write_documents([child(1)], policy=ALL)
    pair.words.write_documents([child(2)], policy=ALL)
    pair.vectors.write_documents([child(3)], policy=ALL)
    assert pair.existing_ids(["c1", "c2", "c3"]) == {"c1", "c2"}
    assert pair.list_ids_without_vector(TENANT) == ["c2"]
    assert pair.list_ids() == ["c1", "c2", "c3"]
    pair.delete_documents(["c2", "c3"])
    assert pair.list_ids() == ["c1"]


def test_vectors_follow_words(pair):
    assert pair.write_documents([child(1, embedding=None), child(2, embedding=None)], ALL) == 2
    assert pair.list_ids_without_vector(TENANT) == ["c1", "c2"]
    assert pair.count_by_file(TENANT) == {"f": (2, 0)}
    assert pair.write_vectors([child(2)], model="m") == 1
    assert pair.list_ids_without_vector(TENANT) == ["c1"]
    assert pair.count_by_file(TENANT) == {"f": (2, 1)}
    assert pair.words.list_meta(TENANT, ["file_id"]) == [{"file_id": "f"}, {"file_id": "f"}]


def test_vectors_that_fail_leave_words_that_the_next_run_completes(pair, qdrant):
    qdrant.faults.append(lambda request: Reply("full", status=507) if request.method == "PUT" else None)
    with pytest.raises(StoreError, match=r"Qdrant at .* refused a request \(status 507"):
        pair.write_documents([child(1)], policy=ALL)
    assert pair.list_ids_without_vector() == ["c1"]
    qdrant.faults.clear()
    assert pair.write_vectors([child(1)], model="m") == 1
    assert pair.list_ids_without_vector() == []


def test_it_reads_and_counts_in_elasticsearch(pair):
    pair.write_documents([child(1), child(2)], policy=ALL)
    assert (pair.count_documents(), pair.count_documents_by_filter(TENANT)) == (2, 2)
    assert [document.embedding for document in pair.filter_documents(TENANT)] == [None, None]
    assert pair.delete_by_filter(TENANT) == 2
    assert pair.vectors.count_documents() == 0


async def test_it_round_trips_and_writes_from_an_event_loop(pair):
    again = PairedDocumentStore.from_dict(pair.to_dict())
    assert await again.write_documents_async([child(1)], ALL) == 1
    assert pair.list_ids() == ["c1"]
    again.close()


def test_what_a_server_watches_its_stores_by_asks_both(pair, name, server):
    pair.write_documents([child(1)], policy=ALL)
    assert pair.count_documents_by_filter(TENANT) == 1
    server.stop()
    with pytest.raises(StoreUnavailableError, match=f"{name} at"):
        pair.count_documents_by_filter(TENANT)


@pytest.mark.parametrize("passages", [10, 2_000])
def test_listing_sources_takes_as_many_requests_however_many_passages_there_are(elasticsearch, qdrant, passages):
    main(["stores", "init"])
    for kind in ("parents", "children"):
        for name in "abc":
            meta = {"source": f"{name}.txt", "file_id": name, "source_id": name, "language": "en", "units": passages}
            rows = {f"{name}{n}": {"id": f"{name}{n}", "tenant_id": "a", **meta} for n in range(passages)}
            elasticsearch.indexes[f"shiguan-{kind}"].update(rows)
    library, asked = Library("elasticsearch_qdrant"), []
    library.count(tenant_id="a")
    elasticsearch.faults.append(lambda request: asked.append(request) if request.path.endswith("/_search") else None)
    found = library.sources(tenant_id="a")
    assert [(entry["source"], entry["passages"], entry["words"]) for entry in found] == [
        (f"{name}.txt", passages, passages) for name in "abc"
    ]
    assert [(request.path, request.body["size"]) for request in asked] == [
        ("/shiguan-children/_search", 0),
        ("/shiguan-parents/_search", 0),
    ]


@pytest.mark.slow
def test_a_source_of_seventy_thousand_records_is_taken_out(elasticsearch, qdrant, monkeypatch):
    """More sources than a server takes in one request; stopped in the middle, the same call does the rest."""
    # Servers are quicker than these stand-ins, which filter in Python.
    monkeypatch.setattr("shiguan.stores.cluster.server.TIMEOUT", 60.0)
    main(["stores", "init"])
    stores = load_stores("elasticsearch_qdrant")
    meta = {"tenant_id": "a", "source": "rows.jsonl", "file_id": "f"}
    for kind in ("parents", "children"):
        elasticsearch.indexes[f"shiguan-{kind}"].update(
            {f"{n:05d}": {"id": f"{n:05d}", "source_id": f"s{n:05d}", **meta} for n in range(70_000)}
        )
    other = Document(id="other", meta={**meta, "tenant_id": "b", "source_id": "s00001"}, embedding=[0.5] * 1024)
    some = [
        Document(id=f"{n:05d}", meta={**meta, "source_id": f"s{n:05d}"}, embedding=[0.5] * 1024)
        for n in range(0, 70_000, 1_000)
    ]
    stores["children"].vectors.unscoped().write_documents([*some, other], policy=ALL)
    library = Library("elasticsearch_qdrant")
    deletions = []

    def stopped_once(request):
        if request.path == "/shiguan-children/_bulk":
            deletions.append(request)
            return Reply({"error": {"type": "node", "reason": "left"}}, status=500) if len(deletions) == 11 else None
        return None

    elasticsearch.faults.append(stopped_once)
    with pytest.raises(StoreError, match="status 500"):
        library.delete("rows.jsonl", tenant_id="a")
    assert len(elasticsearch.indexes["shiguan-children"]) == 50_000
    assert library.count(tenant_id="a") == 70_000, "parents go when no child is left"
    assert library.delete("rows.jsonl", tenant_id="a") == 70_000
    assert library.count(tenant_id="a") == 0
    assert (len(elasticsearch.indexes["shiguan-children"]), qdrant.local.count("shiguan-children").count) == (0, 1)
