"""The words of the two deployments are the same: the shipped analysis, run by Lucene itself."""

import pytest
from tests.doubles.lucene import lucene

from shiguan.stores.cluster.schema import word_settings
from shiguan.text.terms import terms

pytestmark = [pytest.mark.lucene, pytest.mark.filterwarnings("ignore")]

SAMPLES = [
    "end.Next", "example.com", "foo_bar", "a:b", "Chang'an", "Ch'ang-an", "don't", "isn’t it", "Tang’s", "rock'n'roll",
    "they'll've", "O'Neill's", "'tis", "U.S.A.", "C++ x86_64", "e-mail 2,024", "co\u00adoperate", "a\u200bb",
    "cafe\u0301", "café", "größe", "Straße's", "Ørsted", "İstanbul", "ﬁne", "Ⅷ", "½", "L’État", "naïve running",
    "Ｔａｎｇ", "１２３", "٣٤٥", "1,234,567", "3.14", "1.2.3", "12345,678", "カタカナ", "ｶﾞｲﾄﾞ", "か\u3099き", "ひらがな",
    "漢書", "安祿山起兵", "𠮷野家", "中文abc中文", "the governors of 范陽", "한국어", "ภาษาไทย", "हिन्दी", "Москвы", "بِسْمِ",
]  # fmt: skip
KNOWN = ["\u1112\u1161\u11ab"]
"""What the server has no filter for: Korean syllables that are written in their parts."""


@pytest.fixture(scope="module")
def in_lucene():
    analyzer = lucene(word_settings(())["analysis"])

    def words(text):
        fields = ("shiguan_bigrams", "shiguan_characters", "shiguan_words")
        return sorted(term for field in fields for term in analyzer.terms(field, text))

    return words


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_has_the_same_words(in_lucene, sample):
    assert in_lucene(sample) == sorted(terms(sample))


@pytest.mark.parametrize("sample", KNOWN)
def test_what_differs_is_known(in_lucene, sample):
    assert in_lucene(sample) != sorted(terms(sample))


@pytest.mark.parametrize(
    "text", ["a" * 100_000, "a'" * 50_000, "1." * 50_000, "1,111" * 20_000, "कि" * 50_000, "漢" * 50_000]
)
def test_no_text_runs_the_server_out_of_stack(in_lucene, text):
    assert isinstance(in_lucene(text), list)
