"""
HyDEEmbedder.

A question and the passage that answers it are written differently. A passage imagined by a language model reads like
the real one and lies nearer to it, even if its details are wrong (Gao et al. 2022). The embedding is the mean of the
unit vectors of the question, its other wordings and the imagined passages.

It takes the place of a text embedder and works with any of Haystack's text and document embedders and any chat
generator. If the model is missing, fails or answers "I cannot", the question is embedded as it is.

`text` may be a list: the question and its other wordings, such as `QueryRewriter.vector_queries`. `use_hyde=False`
skips the model for one call; `QueryAnalyzer` says which questions profit from a passage.

It prints:

    ['The ship was stove by a whale and sank with her crew.']
    The Pequod went down in a vortex.
"""

from haystack import Pipeline, component
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.dataclasses import ChatMessage, Document
from haystack.document_stores.in_memory import InMemoryDocumentStore

from shiguan.ingest.e5_document_embedder import E5DocumentEmbedder
from shiguan.query.e5_text_embedder import E5TextEmbedder
from shiguan.query.hyde_embedder import HyDEEmbedder


@component
class Imagining:  # any chat generator will do, such as OpenAIChatGenerator
    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]):
        return {"replies": [ChatMessage.from_assistant("The ship was stove by a whale and sank with her crew.")]}


store = InMemoryDocumentStore(embedding_similarity_function="cosine")
passages = [Document(content="The Pequod went down in a vortex."), Document(content="Queequeg is a harpooneer.")]
store.write_documents(E5DocumentEmbedder().run(documents=passages)["documents"])

pipeline = Pipeline()
pipeline.add_component(
    "embedder",
    HyDEEmbedder(E5TextEmbedder(), document_embedder=E5DocumentEmbedder(), chat_generator=Imagining()),
)
pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=1))
pipeline.connect("embedder.embedding", "retriever.query_embedding")
found = pipeline.run({"embedder": {"text": "How did it end?"}}, include_outputs_from={"embedder"})
print(found["embedder"]["hypothetical_passages"])
print(found["retriever"]["documents"][0].content)
