"""The words of a sentence that tell something, in every form in which a text may have them."""

from hypothesis import given
from hypothesis import strategies as st

from shiguan.reading.text import content_words, without_quantities
from shiguan.text.terms import terms


def words(sentence, **options):
    return [word.text for word in content_words(sentence, **options)]


def test_numbers_with_what_they_count_names_and_words_of_grammar_tell_nothing():
    assert words("In 755 he was of them.") == []
    assert words("3,000 horses") == ["hors"]
    assert words("An Lushan burned Luoyang", names=False) == ["burn"]
    assert without_quantities("他有三只眼") == "他有  眼"


def test_a_word_is_said_in_translation():
    (horse,) = content_words("horse", translated=True)
    assert [horse.said_by(frozenset(terms(text))) for text in ("他有一匹马。", "他有一条船。")] == [1.0, 0.0]


def test_characters_in_common_count_for_their_share():
    (word,) = content_words("烧毁")
    assert word.said_by(frozenset(terms("焚烧"))) == 0.0
    assert word.said_by(frozenset(terms("焚烧")), by_characters=0.2) == 0.1


@given(st.text())
def test_any_text_has_its_own_words(text):
    own = frozenset(terms(text))
    assert all(0.0 <= word.said_by(own) <= 1.0 and word.weight >= 0 for word in content_words(text))
