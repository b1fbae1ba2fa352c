"""What counts in a quotation, and what does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.reading.folded import fold

SAME = [
    ("Call me Ishmael", "“Call  me\nIsh-\nmael,” he said"), ("a well-known man", "a well known man"),
    ("wellknown", "well-known"), ("11 men", "he has 11 men"), ("3,000 men", "3000 men"), ("don’t go", "don't go"),
    ("Don't GO", "don’t go"), ("dont go to the whales tail", "don’t go to the whale’s tail"),
    ("CallmeIshmael.Someyearsago", "Call me Ishmael. Some years ago"), ("C a l l me Ishmael", "Call me Ishmael"),
    ("三年春王", "十，三年春王"), ("羣臣皆曰，善", "群臣皆曰善"), ("貞觀二年", "贞观二年"), ("眞宗卽位", "真宗即位"),
    ("café noir", "cafe\u0301 noir"), ("in 1841–1842", "in 1841-1842"), ("-5 degrees", "at -5 degrees"),
    ("text here", "text[12] here"), ("text here", "text² here"), ("10² metres", "10² metres"), ("U.S. army", "US army"),
    ("がいる", "か\u3099いる"), ("مَكْتَبَة", "مكتبة"), ("un*believ*able", "unbelievable"), ("full ＡＢＣ", "full abc"),
    ("ﬁne day", "fine day"), ("soft\u00adhyphen", "softhyphen"), ("> a line\n> more", "a line more"),
    ("a <b>bold</b> word", "a b bold b word"), ("if x>0", "if x >0"), ("# A title", "A title"),
    ("the X-ray, it fell", "the X-ray; it fell"), ("a == b", "a==b"), ("well-known – he", "well-known - he"),
]  # fmt: skip
OTHERS = [
    ("now here", "nowhere"), ("nowhere", "now here"), ("11 men", "111 men"), ("1.5 miles", "15 miles"),
    ("5 miles", "1.5 miles"), ("3000", "3,0001"), ("we're here", "were here"), ("can go", "can't go"),
    ("cant of it", "can't of it"), ("the whale", "the whale's"), ("he may be there", "he maybe there"),
    ("十三年春", "二十三年春"), ("貞觀十", "貞觀十一年"), ("太宗皇帝", "大宗皇帝"), ("不可", "可"), ("café", "cafe"),
    ("cafe", "cafe\u0301"), ("in 18411842", "in 1841-1842"), ("10 15", "10-15"), ("if x < 0", "if x > 0"),
    ("if x 0", "if x > 0"), ("p<0.05", "p>0.05"), ("when a>b", "when a<b"), ("in C", "in C#"), ("x && y", "x || y"),
    ("a == b", "a != b"), ("n <= 5", "n >= 5"), ("x + y", "x - y"), ("2^n", "2n"), ("if (!go)", "if (go)"),
    ("in C", "in C++"),
    ("it is 5", "it is 5% more"), ("5 now", "$5 now"), ("-5 degrees", "5 degrees"), ("5 degrees", "-5 degrees"),
    ("10²", "102"), ("2½", "212"), ("か", "が"), ("가", "각"), ("x 1, 200", "x 1,200"),
]  # fmt: skip


@pytest.mark.parametrize(("quotation", "passage"), SAME)
def test_dress_does_not_alter_a_quotation(quotation, passage):
    assert list(fold(quotation).find(fold(passage)))


@pytest.mark.parametrize(("quotation", "passage"), OTHERS)
def test_a_word_a_number_and_a_sign_alter_it(quotation, passage):
    assert not list(fold(quotation).find(fold(passage)))


def test_a_place_is_a_place_of_the_text():
    passage = "He said: “Call me Ish-\nmael.”"
    found = fold(passage)
    [at] = fold("call me Ishmael").find(found)
    start, end = found.span(at, at + len(fold("callmeIshmael").key))
    assert passage[start:end] == "Call me Ish-\nmael"


@given(st.text(max_size=80))
def test_every_text_is_folded_to_places_of_its_own(text):
    folded = fold(text)
    assert len(folded.key) == len(folded.places) == len(folded.edges)
    assert list(folded.places) == sorted(folded.places)
    assert all(0 <= place < len(text) for place in folded.places)
    if folded.key:
        assert 0 in folded.find(folded)
