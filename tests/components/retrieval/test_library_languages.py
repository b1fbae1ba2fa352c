import pytest
from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore

from shiguan.errors import RefusedError
from shiguan.retrieval.library_languages import LibraryLanguages
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore


def tenant(name):
    return {"field": "meta.tenant_id", "operator": "==", "value": name}


@pytest.fixture
def store(tmp_path):
    store = QdrantEdgeDocumentStore("parents", path=str(tmp_path), embedding_dim=None)
    rows = [("a", "zh"), ("a", "zh"), ("a", "en"), ("a", "und"), ("b", "fr")]
    store.write_documents([
        Document(
            id=str(at),
            content="text",
            meta={
                "tenant_id": whose, "source_id": f"s{at}", "file_id": f"f{at}", "source": f"{at}.txt", "language": code,
                "position": 0, "units": 1,
            },
        )
        for at, (whose, code) in enumerate(rows)
    ])  # fmt: skip
    yield store
    store.close()


def test_a_tenants_languages_come_by_how_much_there_is_of_them(store):
    assert LibraryLanguages(store).run(tenant("a")) == {"languages": ["zh", "en"]}
    assert LibraryLanguages(store).run(tenant("b")) == {"languages": ["fr"]}
    assert LibraryLanguages(store).run(tenant("c")) == {"languages": []}
    assert LibraryLanguages(InMemoryDocumentStore()).run(tenant("a")) == {"languages": []}


def test_without_a_tenant_nothing_is_told(store):
    with pytest.raises(RefusedError):
        LibraryLanguages(store).run(None)
