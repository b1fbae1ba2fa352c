"""The search of a mode as one component: over Haystack's own parts, and over the embedded store."""

from pathlib import Path

import pytest
import yaml
from haystack import Document, component
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

from shiguan.errors import RefusedError
from shiguan.retrieval.language_balancer import LanguageBalancer
from shiguan.retrieval.parent_document_fetcher import ParentDocumentFetcher
from shiguan.retrieval.passage_retriever import PassageRetriever
from shiguan.stores.embedded.qdrant_edge_bm25_retriever import QdrantEdgeBM25Retriever
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.stores.embedded.qdrant_edge_embedding_retriever import QdrantEdgeEmbeddingRetriever

TEXTS = {"salt": ("The salt monopoly paid.", [1.0, 0.0]), "wall": ("A wall of bricks.", [0.0, 1.0])}


@component
class Embedder:
    """Every question lies nearest to the wall."""

    @component.output_types(embedding=list[float])
    def run(self, text: str):
        return {"embedding": [0.1, 1.0]}


@component
class NoWeights:
    @component.output_types(embedding=list[float], warnings=list[str])
    def run(self, text: str):
        return {"embedding": [], "warnings": ["words alone"]}


@pytest.fixture
def parts():
    children, parents = InMemoryDocumentStore(), InMemoryDocumentStore()
    parents.write_documents([Document(id=name, content=f"{text} More.") for name, (text, _) in TEXTS.items()])
    children.write_documents(
        [Document(content=text, embedding=vector, meta={"parent_id": name}) for name, (text, vector) in TEXTS.items()]
    )
    return {
        "bm25_retriever": InMemoryBM25Retriever(children, top_k=1),
        "text_embedder": Embedder(),
        "embedding_retriever": InMemoryEmbeddingRetriever(children, top_k=2),
        "joiner": DocumentJoiner(join_mode="reciprocal_rank_fusion"),
        "parent_fetcher": ParentDocumentFetcher(parents),
    }


def test_passages_come_from_words_and_from_vectors_over_haystacks_own_parts(parts):
    found = PassageRetriever(**parts).run("salt monopoly")
    # Salt is first by words and second by vectors, the wall first by vectors: 1/61 + 1/62 before 1/61.
    assert [document.id for document in found["documents"]] == ["salt", "wall"]
    assert found["documents"][0].content == "The salt monopoly paid. More."


def test_without_an_embedding_words_alone_are_searched_with_a_warning(parts):
    found = PassageRetriever(**{**parts, "text_embedder": NoWeights()}).run("salt")
    assert [document.id for document in found["documents"]] == ["salt"]
    assert found["warnings"] == ["words alone"]


@pytest.fixture
def embedded(tmp_path):
    children = QdrantEdgeDocumentStore(path=str(tmp_path), embedding_dim=2)
    parents = QdrantEdgeDocumentStore("parents", path=str(tmp_path), embedding_dim=None)
    for tenant in "ab":
        meta = {"tenant_id": tenant, "language": "en"}
        for name, (text, vector) in TEXTS.items():
            parent = {**meta, "source_id": name, "source": name, "file_id": name, "position": 0, "units": 1}
            parents.write_documents([Document(id=f"{name}-{tenant}", content=text, meta=parent)])
            child = {**meta, "parent_id": f"{name}-{tenant}", "start": 0, "end": len(text)}
            children.write_documents([Document(content=f"{text}{tenant}", embedding=vector, meta=child)])
    yield PassageRetriever(
        QdrantEdgeBM25Retriever(children, scale_score=True),
        text_embedder=Embedder(),
        embedding_retriever=QdrantEdgeEmbeddingRetriever(children, scale_score=True),
        joiner=DocumentJoiner(join_mode="merge"),
        language_balancer=LanguageBalancer(children),
        parent_fetcher=ParentDocumentFetcher(parents),
    )
    children.close()
    parents.close()


def test_every_part_searches_under_the_callers_filters(embedded):
    tenant = {"field": "meta.tenant_id", "operator": "==", "value": "a"}
    found = embedded.run("salt monopoly", {"operator": "AND", "conditions": [tenant]})
    assert {document.meta["tenant_id"] for document in found["documents"]} == {"a"}
    assert sorted(document.id for document in found["documents"]) == ["salt-a", "wall-a"]
    with pytest.raises(RefusedError):
        embedded.run("salt monopoly")


@pytest.mark.parametrize("deployment", ["embedded", "elasticsearch_qdrant"])
def test_the_modes_name_their_own_nodes_as_its_parts(deployment):
    folder = Path(__file__).parents[3] / "pipelines" / deployment
    nodes = yaml.safe_load((folder / "advanced.yml").read_text(encoding="utf-8"))["components"]
    inside = nodes["sub_questions"]["init_parameters"]["retriever"]["init_parameters"]
    for name in ("embedding_retriever", "joiner", "parent_fetcher"):
        assert inside[name] == nodes[name]
