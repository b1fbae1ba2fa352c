"""Claims that a passage has word for word, and those that only look so."""

import pytest

from shiguan.claims.verbatim import cut_denial, cut_number, find_verbatim

PASSAGE = (
    "叛军至城下者凡十五万，守将闭门不出。县一千五百三十八，皆录于簿。In that year the granary lost 12,500 bushels of millet. "
    "The tax rose by 3.5 per cent. No soldiers ever reached the town. 几乎全军覆没于城外。The fleet had 12 ships of the line."
)
NOTED = "裴行俭立碑于碎叶城[脚注：城在今托克马克附近。]，其年为调露元年[脚注：即六七九年。]，士卒皆贺。The siege lasted [Note: by one count] ten weeks."


@pytest.mark.parametrize(
    ("claim", "cut"),
    [
        ("叛军至城下者凡十五。", ("十五", "十五万")),
        ("县一千五百。", ("一千五百", "一千五百三十八")),
        ("守将闭门不出。县一千五百。", ("一千五百", "一千五百三十八")),
        ("In that year the granary lost 12.", ("12", "12,500")),
        ("500 bushels of millet", ("500", "12,500")),
        ("The tax rose by 3.", ("3", "3.5")),
        ("Soldiers ever reached the town.", None),
        ("全军覆没于城外。", None),
    ],
)
def test_a_claim_that_cuts_a_number_or_a_denial_is_not_word_for_word(claim, cut):
    assert find_verbatim(claim, PASSAGE) is None
    assert cut_number(claim, PASSAGE) == cut


@pytest.mark.parametrize(
    "claim",
    [
        "叛军至城下者凡十五万。",
        "In that year the granary lost 12,500 bushels",
        "The tax rose by 3.5 per cent.",
        "no soldiers ever reached the town",
        "几乎全军覆没于城外",
        "the fleet had 12 ships",
    ],
)
def test_a_claim_that_is_whole_is_word_for_word(claim):
    start, end = find_verbatim(claim, PASSAGE)
    assert PASSAGE[start:end].lower() == claim.rstrip("。.").lower()
    assert cut_number(claim, PASSAGE) is None


def test_the_denial_that_a_claim_leaves_out_is_named():
    claims = ("Soldiers ever reached the town.", "全军覆没于城外。", "no soldiers ever reached the town")
    assert [cut_denial(claim, PASSAGE) for claim in claims] == ["No", "几乎", ""]


def test_a_claim_is_found_where_another_place_has_its_number_whole():
    assert find_verbatim("the town lost 12", "The town lost 12,500 men. In truth the town lost 12.") == (35, 51)


@pytest.mark.parametrize(
    ("claim", "found"),
    [
        (
            "裴行俭立碑于碎叶城，其年为调露元年，士卒皆贺。",
            "裴行俭立碑于碎叶城[脚注：城在今托克马克附近。]，其年为调露元年[脚注：即六七九年。]，士卒皆贺",
        ),
        ("其年为调露元年，士卒皆贺", "其年为调露元年[脚注：即六七九年。]，士卒皆贺"),
        ("城在今托克马克附近", "城在今托克马克附近"),
        ("the siege lasted ten weeks", "The siege lasted [Note: by one count] ten weeks"),
        ("lasted [Note: by one count] ten weeks", "lasted [Note: by one count] ten weeks"),
    ],
)
def test_a_claim_across_or_inside_a_note_is_found_with_the_note_in_its_span(claim, found):
    start, end = find_verbatim(claim, NOTED)
    assert NOTED[start:end] == found


@pytest.mark.parametrize(
    "claim", ["裴行俭立碑于碎叶城，士卒皆贺。", "the siege lasted by ten weeks", "裴行俭立碑于碎叶城城在今"]
)
def test_words_left_out_or_taken_from_a_note_are_not_word_for_word(claim):
    assert find_verbatim(claim, NOTED) is None
