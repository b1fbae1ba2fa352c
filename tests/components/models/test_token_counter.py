import subprocess
import sys

import pytest

from shiguan.models.token_counter import TokenCounter


def test_tokens_are_the_embedders_own_without_start_and_end_marks():
    # WordPiece: the, old, general, wept and the stop.
    assert TokenCounter().count("The old general wept.") == 5


def test_every_han_character_is_a_token_with_its_place():
    assert TokenCounter().offsets("安祿山 fled") == [(0, 1), (1, 2), (2, 3), (4, 8)]


def test_counts_of_a_batch_are_those_of_its_texts_and_nothing_is_padded_or_cut():
    counter = TokenCounter()
    texts = ["", "one", "word " * 1000]
    assert counter.counts(texts) == [counter.count(text) for text in texts] == [0, 1, 1000]


def test_no_texts_have_no_counts():
    assert TokenCounter().counts([]) == []


def test_a_long_text_is_counted_in_pieces_that_cut_no_word():
    assert TokenCounter().count("general " * 10_000) == 10_000
    offsets = TokenCounter().offsets("general " * 10_000)
    assert offsets[-1] == (79_992, 79_999)


def test_a_run_without_spaces_counts_by_its_characters_and_not_as_one_unknown_token():
    assert TokenCounter().count("x" * 4_000) == 1_000
    assert TokenCounter().offsets("x" * 4_000)[:2] == [(0, 4), (4, 8)]


def test_a_missing_tokenizer_counts_characters_and_says_so():
    counter = TokenCounter("nobody/no-such-model")
    assert counter.warnings == []
    assert counter.count("十二 ab") == 5
    assert counter.offsets("二 a") == [(0, 1), (2, 3)]
    (warning,) = counter.warnings
    assert "nobody/no-such-model" in warning
    assert "characters" in warning


def test_a_broken_tokenizer_file_counts_characters_and_says_so(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{")
    counter = TokenCounter(str(tmp_path))
    assert counter.count("abc") == 3
    assert len(counter.warnings) == 1


@pytest.mark.parametrize("heavy", ["torch", "transformers", "tokenizers", "huggingface_hub"])
def test_importing_the_counter_imports_no_model_library(heavy):
    code = f"import sys; import shiguan.models.token_counter; sys.exit({heavy!r} in sys.modules)"
    # haystack itself may import torch; the module must not add to what haystack's logging loads.
    base = f"import sys; from haystack import logging; sys.exit({heavy!r} in sys.modules)"
    run = [subprocess.run([sys.executable, "-c", c], check=False).returncode for c in (code, base)]
    assert run[0] == run[1]
