import pytest
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from tests.doubles.cluster import elasticsearch, qdrant, small_models, waits  # noqa: F401  fixtures

from shiguan.stores.cluster.elasticsearch_conversation_store import ElasticsearchConversationStore
from shiguan.stores.cluster.elasticsearch_store import ElasticsearchStore
from shiguan.stores.cluster.paired_document_store import PairedDocumentStore
from shiguan.stores.cluster.qdrant_store import QdrantStore

TENANT = {"operator": "AND", "conditions": [{"field": "meta.tenant_id", "operator": "==", "value": "a"}]}
ALL = DuplicatePolicy.OVERWRITE


def child(number, tenant="a", embedding=(1.0, 0.0), content=None, **meta):
    meta = {"tenant_id": tenant, "file_id": "f", "parent_id": "p", "start": number, **meta}
    return Document(
        id=f"c{number}", content=content or f"salt {number}", meta=meta, embedding=embedding and [*embedding]
    )


@pytest.fixture(autouse=True)
def _no_waiting(waits):  # noqa: F811
    """A server that is away is asked again; no test waits for it."""


@pytest.fixture
def words(elasticsearch):  # noqa: F811
    store = ElasticsearchStore("children", bm25_fields=["title"])
    store.set_up()
    yield store.unscoped()
    store.close()


@pytest.fixture
def vectors(qdrant):  # noqa: F811
    store = QdrantStore("children", embedding_dim=2)
    store.set_up()
    yield store.unscoped()
    store.close()


@pytest.fixture
def pair(words, vectors):
    return PairedDocumentStore(words, vectors=vectors).unscoped()


@pytest.fixture
def conversations(elasticsearch):  # noqa: F811
    store = ElasticsearchConversationStore()
    store.set_up()
    yield store
    store.close()


@pytest.fixture(params=["Elasticsearch", "Qdrant"])
def name(request):
    return request.param


@pytest.fixture
def server(request, name):
    return request.getfixturevalue(name.lower())


@pytest.fixture
def store(request, name):
    return request.getfixturevalue({"Elasticsearch": "words", "Qdrant": "vectors"}[name])
