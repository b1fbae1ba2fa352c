import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.text.terms import term_indices, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []), ("   \n\t", []), ("，。！？…—《》", []), ("书", ["书"]),
        ("他的书", ["他", "的", "书", "他的", "的书"]), ("他，书", ["他", "书"]),
        ("安祿山反於范陽", ["安", "禄", "山", "反", "于", "范", "阳", "安禄", "禄山", "山反", "反于", "于范", "范阳"]),
        ("The governors of 范陽", ["governor", "范", "阳", "范阳"]),
        ("the and of what", []),
        ("The emperor's men don't rebel", ["emperor", "men", "rebel"]),
        ("emperor’s", ["emperor"]), ("can't won’t couldn't", []), ("Don Quixote's haven", ["don", "quixot", "haven"]),
        ("O'Brien's l'histoire", ["o", "brien", "l", "histoir"]),
        ("not no", ["not", "no"]), ("755年", ["755", "年"]),
        ("1,234,567 men, 3.14 and 1,2,3", ["1234567", "men", "3.14", "1", "2", "3"]),
        ("１２３ＡＢＣ", ["123abc"]), ("snake_case e-mail", ["snake", "case", "e", "mail"]),
        ("Ān Lùshān café Straße", ["lushan", "cafe", "strass"]), ("Москва́ Ёлка", ["москва", "елка"]),
        ("كِتَاب", ["كتاب"]), ("हिन्दी भाषा।", ["हिन्दी", "भाषा"]),
        ("ひらがな", ["ひ", "ら", "が", "な", "ひら", "らが", "がな"]),
        ("ｶﾅ", ["カ", "ナ", "カナ"]), ("図書館", ["图", "书", "馆", "图书", "书馆"]),
        ("서울은", ["서", "울", "은", "서울", "울은"]), ("𠀀𠀁", ["𠀀", "𠀁", "𠀀𠀁"]),
        ("soft\u00adware zero\u200bwidth", ["softwar", "zerowidth"]),
        ("٣٤", ["34"]),
        # Everyday simplified characters stay themselves.
        ("予，么，豫", ["予", "么", "豫"]),
    ],
)  # fmt: skip
def test_terms_of_a_text(text, expected):
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("節度使", "节度使"), ("叛亂爲禍", "叛乱为祸"), ("說", "説"), ("羣衆", "群众"), ("國 国", "国 國"),
        ("予", "予"), ("Rebellion", "rebellions"), ("ﬁre", "fire"),
    ],
)  # fmt: skip
def test_forms_of_one_word_give_the_same_terms(one, other):
    assert terms(one) == terms(other)


def test_a_word_of_a_million_letters_is_cut_to_a_short_term():
    (term,) = terms("a" * 1_000_000)
    assert len(term) <= 64


@given(st.text())
def test_any_text_gives_terms_without_spaces_or_capitals(text):
    for term in terms(text):
        assert term
        assert not any(c.isspace() for c in term)
        assert term in (term.lower(), term.casefold())  # Cherokee is folded to its capitals


@given(st.text(alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1))
def test_a_han_run_of_n_gives_n_characters_and_n_minus_one_pairs(text):
    found = terms(text)
    assert len(found) == 2 * len(text) - 1
    singles, pairs = found[: len(text)], found[len(text) :]
    assert pairs == [a + b for a, b in pairwise(singles)]
    # Folding is complete in one step: folded text folds to itself.
    assert terms("".join(singles)) == found


@given(st.text(), st.text())
def test_a_full_stop_between_two_texts_keeps_their_terms_apart(one, other):
    assert terms(one + " 。 " + other) == terms(one) + terms(other)


def test_ascii_text_gives_the_same_terms_beside_other_script():
    text = "The 12,000 men of Lushan's army didn't cross at 3.5 miles"
    assert terms(text + " 河") == [*terms(text), "河"]


def test_terms_are_the_same_from_many_threads():
    words = [f"governing{n}ments rebellions{n}" for n in range(200)]
    expected = [terms(word) for word in words]
    fresh = [word.replace("governing", "xgoverning") for word in words]
    with ThreadPoolExecutor(8) as pool:
        parallel = [list(pool.map(terms, fresh)) for _ in range(4)]
    assert all(result == parallel[0] for result in parallel)
    assert [[t.removeprefix("x") for t in row] for row in parallel[0]] == expected


def test_a_term_index_is_the_published_checksum_in_every_process():
    # CRC-32 of "123456789" is the check value of its specification.
    assert term_indices(["123456789"]) == [0xCBF43926]
    code = "from shiguan.text.terms import term_indices; print(*term_indices(['节度使', '唐']))"
    for seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path))}
        printed = subprocess.check_output([sys.executable, "-c", code], env=environment)
        assert list(map(int, printed.split())) == term_indices(["节度使", "唐"])
