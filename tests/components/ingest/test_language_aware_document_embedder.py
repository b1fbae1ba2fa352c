from dataclasses import replace

import pytest
from haystack import AsyncPipeline, Document, Pipeline, component

from shiguan.ingest.language_aware_document_embedder import LanguageAwareDocumentEmbedder

pytestmark = pytest.mark.transformers


@component
class LengthEmbedder:
    """Embeds a text as its length, and remembers what it was asked."""

    def __init__(self):
        self.batches = []
        self.warmed = 0

    def warm_up(self):
        self.warmed += 1

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]):
        self.batches.append([document.content for document in documents])
        return {"documents": [replace(d, embedding=[float(len(d.content))]) for d in documents]}


def document(content, language="en"):
    return Document(content=content, meta={"language": language})


def embed(*documents, progress=None, **parameters):
    embedder = LengthEmbedder()
    result = LanguageAwareDocumentEmbedder(embedder, **parameters).run(list(documents), progress=progress)
    return result, embedder


def test_known_languages_are_embedded_and_the_others_pass_in_their_order():
    result, _ = embed(document("ab"), document("史官", "zh"), document("abc"), languages=["en"])
    assert [(d.content, d.embedding) for d in result["documents"]] == [("ab", [2.0]), ("史官", None), ("abc", [3.0])]
    assert result["embedded"] == 2
    (warning,) = result["warnings"]
    assert warning.startswith("1 of 3 new passages have no vector: they are in zh, and the embedder knows only en")


def test_all_languages_are_embedded_where_none_are_named():
    result, _ = embed(document("ab"), document("史官", "zh"))
    assert [d.embedding for d in result["documents"]] == [[2.0], [2.0]]
    assert result["warnings"] == []


def test_slices_are_sorted_by_length():
    _, embedder = embed(*[document("x" * n) for n in (1, 5, 3, 4, 2)], batch_size=2)
    assert [[len(text) for text in batch] for batch in embedder.batches] == [[5, 4], [3, 2], [1]]


def test_progress_hears_of_every_slice_and_counts_what_passes_as_done():
    heard = []
    documents = [document("a"), document("b"), document("c"), document("史", "zh")]
    embed(*documents, languages=["en"], batch_size=2, progress=lambda *step: heard.append(step))
    assert heard == [("embedding", 1, 4), ("embedding", 3, 4), ("embedding", 4, 4)]


def test_nothing_to_embed_loads_no_model():
    result, embedder = embed(document("史官", "zh"), languages=["en"])
    assert (embedder.batches, embedder.warmed) == ([], 0)
    assert embed()[0] == {"documents": [], "embedded": 0, "warnings": []}
    assert result["embedded"] == 0


def test_documents_are_not_changed():
    given = document("ab")
    embed(given)
    assert given.embedding is None


def test_a_slice_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="`batch_size` must be positive, got 0"):
        LanguageAwareDocumentEmbedder(LengthEmbedder(), batch_size=0)


def test_the_nested_embedder_comes_back_from_yaml():
    pipeline = Pipeline()
    from haystack_integrations.components.embedders.sentence_transformers.sentence_transformers_document_embedder import (
        SentenceTransformersDocumentEmbedder,
    )

    inner = SentenceTransformersDocumentEmbedder(model="some/model", progress_bar=False)
    pipeline.add_component("e", LanguageAwareDocumentEmbedder(inner, languages=["en"], batch_size=9))
    again = Pipeline.loads(pipeline.dumps()).get_component("e")
    assert (again.languages, again.batch_size) == (["en"], 9)
    assert isinstance(again.document_embedder, SentenceTransformersDocumentEmbedder)
    assert (again.document_embedder.model, again.document_embedder.progress_bar) == ("some/model", False)


async def test_it_runs_in_an_async_pipeline():
    pipeline = AsyncPipeline()
    pipeline.add_component("e", LanguageAwareDocumentEmbedder(LengthEmbedder()))
    result = await pipeline.run_async({"e": {"documents": [document("ab")]}})
    assert result["e"]["documents"][0].embedding == [2.0]
