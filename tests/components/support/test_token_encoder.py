import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from shiguan.errors import ConfigurationError
from shiguan.support.model_cache import PACKAGED_MODEL, packaged_file, seed_model_cache
from shiguan.support.token_encoder import TokenEncoder, token_encoder

pytestmark = pytest.mark.transformers

TEXTS = [
    "Who was Guo Ziyi?",
    "",
    "   \n",
    "書",
    "naïve café [SEP] unbelievably",
    "The general wept when the news came from the capital. " * 3,
    "word " * 400,
    "short",
]


@pytest.fixture(scope="module")
def reference():
    from sentence_transformers import SentenceTransformer

    seed_model_cache()
    return SentenceTransformer(PACKAGED_MODEL, device="cpu", local_files_only=True)


@pytest.fixture(scope="module")
def encoder():
    return token_encoder(PACKAGED_MODEL)


@pytest.mark.parametrize("batch_size", [1, 3, 32])
def test_embeddings_are_those_of_sentence_transformers(encoder, reference, batch_size):
    found = [text.embedding for text in encoder.encode(TEXTS, batch_size=batch_size)]
    np.testing.assert_allclose(found, reference.encode(TEXTS), atol=1e-5)


def test_token_vectors_are_the_last_layer_without_special_tokens(encoder, reference):
    text = TEXTS[4]
    layer = reference.encode(text, output_value="token_embeddings").numpy()[1:-1]
    expected = layer / np.linalg.norm(layer, axis=1, keepdims=True)
    (found,) = encoder.encode([text])
    np.testing.assert_allclose(found.tokens, expected, atol=1e-5)
    tokens = reference.tokenizer.convert_ids_to_tokens(found.token_ids.tolist())
    # A special token that a text spells out is one of its own.
    assert tokens == ["naive", "cafe", "[SEP]", "un", "##bel", "##ie", "##va", "##bly"]


def test_a_text_beyond_the_window_is_cut_there(encoder):
    (found,) = encoder.encode(["word " * 400])
    assert encoder.window == 256
    assert found.tokens.shape == (254, 384)


def test_a_text_without_tokens_has_an_embedding_and_no_rows(encoder):
    (found,) = encoder.encode([""])
    assert found.tokens.shape == (0, 384)
    assert found.token_ids.shape == (0,)
    assert np.linalg.norm(found.embedding) == pytest.approx(1, abs=1e-5)
    assert encoder.encode([]) == []


def test_token_vectors_can_be_left_out(encoder):
    (found,) = encoder.encode(["The general wept."], with_tokens=False)
    assert found.tokens.shape == (0, 384)
    assert found.token_ids.shape == (0,)


def test_threads_share_one_encoder(encoder, reference):
    expected = reference.encode(TEXTS)
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(lambda _: encoder.encode(TEXTS), range(6)):
            np.testing.assert_allclose([text.embedding for text in found], expected, atol=1e-5)
    assert token_encoder(PACKAGED_MODEL) is encoder


def test_a_model_that_is_not_there_is_named():
    with pytest.raises(ConfigurationError, match=r"`nobody/nothing` is not in the Hugging Face cache.*`hf download"):
        TokenEncoder("nobody/nothing").warm_up()


@pytest.fixture
def copied(tmp_path):
    """The packaged model in a folder of its own, with its weights left where they are."""
    source = packaged_file("config.json").parent
    shutil.copytree(source, tmp_path / "model", ignore=shutil.ignore_patterns("model.safetensors"))
    (tmp_path / "model" / "model.safetensors").symlink_to(source / "model.safetensors")
    return tmp_path / "model"


def test_a_folder_can_be_named(copied, encoder):
    (found,), (expected,) = TokenEncoder(str(copied)).encode(["A word."]), encoder.encode(["A word."])
    np.testing.assert_array_equal(found.tokens, expected.tokens)


@pytest.mark.parametrize(
    ("file", "change", "named"),
    [
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}, "cls_token"),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "max_tokens"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "mean pooling alone"),
        ("modules.json", None, "unknown parts"),
    ],
)
def test_a_model_of_another_kind_is_refused(copied, file, change, named):
    path = copied / file
    if change is None:
        path.unlink()
    else:
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ConfigurationError, match=named):
        TokenEncoder(str(copied)).warm_up()


def test_a_damaged_model_is_named(copied):
    (copied / "tokenizer.json").write_text("{")
    with pytest.raises(ConfigurationError, match=r"could not be loaded from .*whole"):
        TokenEncoder(str(copied)).warm_up()
