import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.claims.checker import ClaimChecker
from shiguan.claims.claims import split_claims


@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        ("“Go,” said I. [1] “No!” said he. [2]", [("“Go,” said I.", (1,)), ("“No!” said he.", (2,))]),
        ("See vol. [1] of it [2].", [("See vol. of it.", (1, 2))]),
        ("He rose in 755 [1]. He fell [2].", [("He rose in 755.", (1,)), ("He fell.", (2,))]),
        ("He rose in 755. [1] He fell. [2]", [("He rose in 755.", (1,)), ("He fell.", (2,))]),
        ("[1] He rose in 755. [2] He fell.", [("He rose in 755.", (1,)), ("He fell.", (2,))]),
        ("安祿山反。[1]郭子儀討之。【2】", [("安祿山反。", (1,)), ("郭子儀討之。", (2,))]),
        ("安祿山反[1]。郭子儀討之[2][3]。", [("安祿山反。", (1,)), ("郭子儀討之。", (2, 3))]),
        ("Both [1] and he [2] rose.", [("Both and he rose.", (1, 2))]),
        ("- First point. [1]\n- Second point [2]", [("First point.", (1,)), ("Second point", (2,))]),
        ("He rose. He fell.", [("He rose.", ()), ("He fell.", ())]),
        ("He rose [1][1].", [("He rose.", (1,))]),
        ("*Enemy:* He rose [1]. **He** fell.", [("*Enemy:* He rose.", (1,)), ("**He** fell.", ())]),
        ("**He rose. He fell.** [1] So.", [("**He rose.", ()), ("He fell.**", (1,)), ("So.", ())]),
        ("**安祿山反。**郭子儀*討*之。", [("**安祿山反。**", ()), ("郭子儀*討*之。", ())]),
        ("> He rose.\n> He fell.", [("He rose.", ()), ("He fell.", ())]),
        ("Like\n```\nHe rose.\n```\nHe fell.", [("Like", ()), ("He rose.", ()), ("He fell.", ())]),
        (
            "So:\n| A | B |\n|---|---|\n|755|He rose. He fell [1]|\nThat is all.",
            [("So:", ()), ("| A | B", ()), ("755|He rose. He fell", (1,)), ("That is all.", ())],
        ),
        ("[1]", []),
        ("[1] 。 [2]", []),
        ("", []),
        ("  \n ", []),
    ],
)
def test_each_sentence_gets_its_marks(answer, claims):
    parts = split_claims(answer)
    assert [(claim.text, claim.numbers) for claim in parts.claims] == claims
    assert all(parts.text[claim.start : claim.end] == claim.text for claim in parts.claims)


@pytest.mark.parametrize(
    "line",
    [
        "# The rebellion", "**Background.**", "| Side | Outcome |\n|:--|--:|", "The reasons are:", "原因如下：",
        "Yes.", "Certainly!", "是的。", "Sure, of course.",
    ],
)  # fmt: skip
def test_what_claims_nothing_states_nothing(line):
    checker = ClaimChecker({1: "The rebellion of An Lushan began in 755."})
    # A word of assent is not even kept.
    assert not any(checker.stated(claim) for claim in checker.split(line).claims)


@given(st.text() | st.text(alphabet="ab。. [1]【2】\n-#：:"))
def test_any_answer_is_split_within_its_bounds(answer):
    parts = split_claims(answer)
    at = 0
    for claim in parts.claims:
        assert at <= claim.start < claim.end <= len(parts.text)
        at = claim.end
    assert all(0 <= position <= len(parts.text) for position, _ in parts.marks)


@pytest.mark.parametrize(
    "text", ["29.7% of all households were of one person.", "2.5 million people live there.", "3.14是圆周率。"]
)
def test_a_number_with_a_decimal_point_is_no_list_number(text):
    assert [claim.text for claim in split_claims(text).claims] == [text]
