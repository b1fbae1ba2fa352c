import numpy as np
import pytest
from haystack import AsyncPipeline, Document, Pipeline

from shiguan.ingest.token_vector_document_embedder import TokenVectorDocumentEmbedder
from shiguan.support.model_cache import PACKAGED_MODEL, seed_model_cache
from shiguan.support.packed_tokens import PackedTokens, token_ids
from shiguan.support.token_encoder import token_encoder

pytestmark = pytest.mark.transformers

DOCUMENTS = [
    Document(id="a", content="The general wept.", meta={"title": "The Siege", "page": 3}),
    Document(id="b", content="No title here.", meta={"title": None}),
    Document(id="c", content=None, meta={"title": "Only a title"}),
    Document(id="d", content="", meta={}),
    Document(id="e", content="word " * 400, meta={"title": "Long"}),
]


def run(**parameters):
    return TokenVectorDocumentEmbedder(**parameters).run(documents=DOCUMENTS)["documents"]


def test_embeddings_are_those_of_haystacks_embedder():
    from haystack_integrations.components.embedders.sentence_transformers.sentence_transformers_document_embedder import (
        SentenceTransformersDocumentEmbedder,
    )

    seed_model_cache()
    other = SentenceTransformersDocumentEmbedder(
        model=PACKAGED_MODEL, local_files_only=True, progress_bar=False, meta_fields_to_embed=["title", "page"]
    )
    other.warm_up()
    expected = [document.embedding for document in other.run(documents=DOCUMENTS)["documents"]]
    found = [document.embedding for document in run(meta_fields_to_embed=["title", "page"])]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_token_vectors_travel_in_the_meta_those_of_the_title_too():
    found = run(meta_fields_to_embed=["title"])
    tokens = [document.meta["token_vectors"] for document in found]
    assert all(isinstance(packed, PackedTokens) for packed in tokens)
    assert {(packed.model, packed.dimensions) for packed in tokens} == {(PACKAGED_MODEL, 384)}
    (expected,) = token_encoder(PACKAGED_MODEL).encode(["The Siege\nThe general wept."])
    assert token_ids(tokens[0].token_ids).tolist() == sorted(set(expected.token_ids.tolist()))
    # 48 bytes for each token; special tokens are not among them, and the window has room for 254 others.
    assert [len(packed.vectors) / 48 for packed in tokens] == [6, 4, 3, 0, 254]


def test_they_can_be_left_out():
    found = run(token_vectors=False)
    assert [document.meta for document in found] == [document.meta for document in DOCUMENTS]
    assert all(len(document.embedding) == 384 for document in found)


def test_documents_are_not_changed_and_keep_their_ids():
    found = run()
    assert [document.id for document in found] == ["a", "b", "c", "d", "e"]
    assert all("token_vectors" not in document.meta and document.embedding is None for document in DOCUMENTS)


def test_nothing_gives_nothing():
    assert TokenVectorDocumentEmbedder("no/such-model").run(documents=[]) == {"documents": []}


def test_a_batch_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="`batch_size` must be positive, got 0"):
        TokenVectorDocumentEmbedder(batch_size=0)


def test_it_comes_back_from_yaml_inside_another_component():
    pipeline = Pipeline()
    settings = {"meta_fields_to_embed": ["title"], "embedding_separator": " ", "batch_size": 5, "token_vectors": False}
    pipeline.add_component("e", TokenVectorDocumentEmbedder("some/model", **settings))
    again = Pipeline.loads(pipeline.dumps()).get_component("e")
    assert again.model == "some/model"
    assert {name: getattr(again, name) for name in settings} == settings


async def test_it_runs_in_an_async_pipeline():
    pipeline = AsyncPipeline()
    pipeline.add_component("e", TokenVectorDocumentEmbedder())
    result = await pipeline.run_async({"e": {"documents": DOCUMENTS[:1]}})
    assert len(result["e"]["documents"][0].embedding) == 384
