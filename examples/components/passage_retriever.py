"""
PassageRetriever, LanguageBalancer, BestWindowRanker.

In a mode the stages of retrieval are separate nodes: a retriever by words, one by vectors, Haystack's
`DocumentJoiner`, `LanguageBalancer`, `ParentDocumentFetcher`. `PassageRetriever` holds the same parts in one
component, for stages that search by themselves.

`LanguageBalancer` gives less weight to a language in which the library hardly has what is asked for; with stores
other than the embedded one it goes by vectors alone. `BestWindowRanker` scores passages by their best few sentences
with Haystack's `TransformersSimilarityRanker`, and leaves the order unchanged if torch or the weights are missing.

It prints:

    Zhang Xun held Suiyang. He was killed when it fell.
"""

from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.dataclasses import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore

from shiguan.ingest.e5_document_embedder import E5DocumentEmbedder
from shiguan.query.e5_text_embedder import E5TextEmbedder
from shiguan.retrieval.parent_document_fetcher import ParentDocumentFetcher
from shiguan.retrieval.passage_retriever import PassageRetriever

parents, children = InMemoryDocumentStore(), InMemoryDocumentStore(embedding_similarity_function="cosine")
texts = {"p1": ["Zhang Xun held Suiyang.", "He was killed when it fell."], "p2": ["Guo Ziyi retook Luoyang."]}
parents.write_documents([Document(id=name, content=" ".join(lines)) for name, lines in texts.items()])
small = [Document(content=line, meta={"parent_id": name}) for name, lines in texts.items() for line in lines]
children.write_documents(E5DocumentEmbedder().run(documents=small)["documents"])

retriever = PassageRetriever(
    InMemoryBM25Retriever(children),
    text_embedder=E5TextEmbedder(),
    embedding_retriever=InMemoryEmbeddingRetriever(children),
    joiner=DocumentJoiner(join_mode="reciprocal_rank_fusion"),
    parent_fetcher=ParentDocumentFetcher(parents, top_k=1),
)
print(retriever.run(query="Who died at Suiyang?")["documents"][0].content)
