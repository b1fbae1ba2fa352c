import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.text import names
from shiguan.text.names import sounds_of_names, sounds_of_text


def test_neighbouring_characters_sound_together_and_not_across_marks():
    assert list(sounds_of_text("安禄山反，范阳")) == ["an lu", "lu shan", "shan fan", "fan yang"]


@pytest.mark.parametrize("text", ["", "安", "An Lushan rebelled.", "あいうえお", "12", "安，禄"])
def test_what_has_no_two_han_characters_side_by_side_has_no_sound(text):
    assert not list(sounds_of_text(text))


def test_traditional_characters_sound_like_simplified_ones():
    assert list(sounds_of_text("郭子儀")) == list(sounds_of_text("郭子仪")) == ["guo zi", "zi yi"]


@pytest.mark.parametrize(
    ("question", "sounds"),
    [
        ("When did An Lushan rebel?", ["an lu", "lu shan"]),
        ("Was Guo Zi-yi older?", ["guo zi", "zi yi"]),
        ("Where is Xi'an?", ["xi an"]),
        ("What was Li Shimin's plan for Luoyang?", ["li shi", "shi min", "luo yang"]),
        ("Who was Lü Dongbin?", ["lu dong", "dong bin"]),
        ("How did Ahab die?", []),
        ("who was an lushan?", []),
        ("安禄山是谁？", []),
    ],
)
def test_names_in_pinyin_sound_as_their_characters(question, sounds):
    assert list(sounds_of_names(question)) == sounds


@given(st.text())
def test_any_text_is_read(text):
    assert all(len(sound.split(" ")) == 2 for sound in [*sounds_of_names(text), *sounds_of_text(text)])


def test_a_word_too_long_for_a_name_is_none():
    assert not list(sounds_of_names("Xian" + "xian" * 100_000))


def test_the_syllables_of_names_are_those_of_all_characters():
    heard = {sound for sound in names._readings().values() if any(vowel in sound for vowel in "aeiou")}
    assert heard == names._SYLLABLES
