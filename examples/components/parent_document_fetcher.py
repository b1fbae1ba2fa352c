"""
ParentDocumentFetcher.

Children are small so that they match precisely; a reader or a model needs the passage around them. The fetcher groups
the children that were found by parent, reads the parents from any document store, and returns them in the order of
their best child, with the matched spans in `meta.matches`.

It knows the children of `ParentChildSplitter` (`meta.parent_id`) and those of Haystack's
`HierarchicalDocumentSplitter` (`meta.__parent_id`).

A parent that belongs to another tenant than its child (`meta.tenant_id`) is left out with a warning. Shiguan's own
stores cannot be read without the filters of a `TenantFilter`; other stores need none.

It prints:

    Guo Ziyi took Luoyang. The rebels fled east.

    Zhang Xun held Suiyang. When it fell he was killed.
"""

from haystack import Pipeline
from haystack.components.preprocessors import HierarchicalDocumentSplitter
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore

from shiguan.retrieval.parent_document_fetcher import ParentDocumentFetcher

text = "Guo Ziyi took Luoyang. The rebels fled east.\n\nZhang Xun held Suiyang. When it fell he was killed."
splitter = HierarchicalDocumentSplitter(block_sizes={8}, split_overlap=0, split_by="word")
blocks = splitter.run([Document(content=text)])["documents"]
parents, children = InMemoryDocumentStore(), InMemoryDocumentStore()
parents.write_documents([block for block in blocks if block.meta["__level"] == 0])
children.write_documents([block for block in blocks if block.meta["__level"] == 1])

pipeline = Pipeline()
pipeline.add_component("retriever", InMemoryBM25Retriever(children, top_k=1))
pipeline.add_component("fetcher", ParentDocumentFetcher(parents))
pipeline.connect("retriever.documents", "fetcher.documents")
(parent,) = pipeline.run({"retriever": {"query": "Suiyang"}})["fetcher"]["documents"]
print(parent.content)
