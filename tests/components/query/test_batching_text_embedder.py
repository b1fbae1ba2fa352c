import asyncio
import threading

import numpy as np
import pytest
from haystack import Pipeline
from haystack_integrations.components.embedders.sentence_transformers.sentence_transformers_text_embedder import (
    SentenceTransformersTextEmbedder,
)

from shiguan.errors import ConfigurationError
from shiguan.query.batching_text_embedder import BatchingTextEmbedder
from shiguan.support import question_encoder as module
from shiguan.support.model_cache import PACKAGED_MODEL, seed_model_cache

TEXTS = [
    "Who was Guo Ziyi?",
    "",
    "?",
    "安祿山何時起兵？",
    "naïve café",
    "the the the",
    "word " * 400,
    "Where did the general, who had lost two sons, go after the siege was lifted?",
]


@pytest.fixture(scope="session")
def reference():
    """What sentence-transformers makes of the same texts."""
    seed_model_cache()
    embedder = SentenceTransformersTextEmbedder(model=PACKAGED_MODEL, local_files_only=True, progress_bar=False)
    embedder.warm_up()
    return [embedder.run(text=text)["embedding"] for text in TEXTS]


def test_the_embedding_is_that_of_sentence_transformers(reference):
    embedder = BatchingTextEmbedder()
    for text, expected in zip(TEXTS, reference, strict=True):
        np.testing.assert_allclose(embedder.run(text=text)["embedding"], expected, atol=1e-5)


def test_questions_in_one_batch_get_the_embeddings_that_each_has_alone(reference):
    encoder = module.QuestionEncoder(module.token_encoder(PACKAGED_MODEL))
    encoded = encoder.encoder.encode(TEXTS)
    for result, expected in zip(encoded, reference, strict=True):
        np.testing.assert_allclose(result.embedding, expected, atol=1e-5)


def test_both_twins_give_the_same_from_many_threads_and_tasks():
    embedder = BatchingTextEmbedder()
    questions = [f"Who ruled in the year {year}?" for year in range(750, 762)]
    results = {}
    threads = [
        threading.Thread(target=lambda text: results.update({text: embedder.run(text=text)}), args=(text,))
        for text in questions
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    async def all_at_once():
        return await asyncio.gather(*(embedder.run_async(text=text) for text in questions))

    again = asyncio.run(all_at_once())
    assert [results[text] for text in questions] == again
    assert len({tuple(result["embedding"]) for result in again}) == len(questions)


def test_a_missing_model_is_said_to_each_that_asks():
    embedder = BatchingTextEmbedder("nobody/has-this")
    with pytest.raises(ConfigurationError, match="nobody/has-this"):
        embedder.warm_up()
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="nobody/has-this"):
            embedder.run(text="Who?")
    with pytest.raises(ConfigurationError, match="nobody/has-this"):
        asyncio.run(embedder.run_async(text="Who else?"))


@pytest.mark.parametrize("text", [None, 3, ["Who?"]])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(TypeError, match="`text` must be a string"):
        BatchingTextEmbedder().run(text=text)


def test_an_empty_name_is_refused():
    with pytest.raises(ValueError, match="`model` must name"):
        BatchingTextEmbedder(" ")


def test_it_round_trips_through_yaml():
    pipeline = Pipeline()
    pipeline.add_component("embedder", BatchingTextEmbedder("some/model"))
    assert Pipeline.loads(pipeline.dumps()).get_component("embedder").model == "some/model"
