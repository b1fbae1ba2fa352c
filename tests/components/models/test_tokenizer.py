"""The tokens are those of `tokenizers.models.Unigram` over the same pieces."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiguan.models.token_counter import TokenCounter, tokenizer
from shiguan.models.weights import Weights, weights_file

SENTENCES = [
    "The old general wept.", "安史之乱为什么会爆发？", "張巡守睢陽，糧盡，羅雀掘鼠而食。", "Où est la bibliothèque ?",
    "Где находится крепость?", "서울은 어디에 있습니까?", "東京はどこにありますか。", "أين تقع القلعة؟",
    "किला कहाँ है?", "ป้อมปราการอยู่ที่ไหน", "①② ﬁne ＡＢＣ １２３ ｶﾞ", "a  b   c\t\nd\u3000e",
    "</s> <s> <unk> <mask> \u2581 x", "👍👩\u200d👩\u200d👧 e\u0301", "", " ",
]  # fmt: skip


@pytest.fixture(scope="module")
def reference():
    tokenizers = pytest.importorskip("tokenizers")
    weights = Weights(weights_file())
    letters, offsets = weights.piece_letters.tobytes(), weights.piece_offsets.tolist()
    # The pieces that are marks get names that no text has, as a text must not be able to write them.
    pieces = [
        (letters[a:b].decode() if score < 0 else f"\x00{number}", score)
        for number, (a, b, score) in enumerate(
            zip(offsets[:-1], offsets[1:], weights.piece_scores.tolist(), strict=True)
        )
    ]
    unigram = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=weights.unknown_id))
    unigram.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
    return lambda text: unigram.encode(tokenizer()._normalized(text), add_special_tokens=False).ids


@pytest.mark.parametrize("text", SENTENCES)
def test_tokens_are_the_librarys(reference, text):
    assert tokenizer().tokens([text]) == [reference(text)]


@settings(max_examples=60)
@given(st.lists(st.text(max_size=60), max_size=4))
def test_any_texts_have_the_librarys_tokens_whatever_stands_beside_them(reference, texts):
    assert tokenizer().tokens(texts) == [reference(text) for text in texts]


@settings(max_examples=60)
@given(st.text(alphabet=st.characters(codec=None), max_size=80))
def test_offsets_are_in_order_inside_the_text_and_as_many_as_counted(text):
    offsets = TokenCounter().offsets(text)
    assert all(0 <= start < end <= len(text) for start, end in offsets)
    assert offsets == sorted(offsets)
    assert len(offsets) == tokenizer().counts([text])[0]


def test_unknown_characters_side_by_side_are_one_token_of_the_model_and_counted_each():
    # Five signs of Linear A, a script without pieces.
    text = "\U00010600\U00010601\U00010602\U00010603\U00010604"
    (ids,) = tokenizer().tokens([text])
    assert len(ids) == 2
    assert tokenizer().counts([text]) == [5]


def test_a_mark_of_the_model_in_a_text_is_letters():
    assert 2 not in tokenizer().tokens(["</s>"])[0]


def test_lone_surrogates_and_nuls_are_spaces():
    assert tokenizer().tokens(["a\ud800b\x00c"]) == tokenizer().tokens(["a b c"])


def test_a_batch_larger_than_what_is_matched_at_once_has_the_same_tokens():
    texts = ["安禄山 rose " * 3000] * 5
    assert tokenizer().tokens(texts) == [tokenizer().tokens(texts[:1])[0]] * 5
