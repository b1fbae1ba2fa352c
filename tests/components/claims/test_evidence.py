"""What passages have of a claim, with weights checked by hand where they are simple."""

import pytest

from shiguan.claims.claim_support import judge, plain_claim
from shiguan.claims.evidence import Evidence
from shiguan.text.languages import character_weight, is_classical
from shiguan.text.terms import rarity

MODERN = "安禄山在范阳起兵反叛，他的军队有十五万人，很快就占领了洛阳。"
CLASSICAL = "十一月，安禄山反于范阳，众十五万，遂陷东京。上闻之，召宰相谋之，皆曰：禄山必败。"


def test_a_claim_that_stands_there_word_for_word_is_found_whole():
    reading = Evidence(["It rained. An Lushan rose at Fanyang. It snowed."]).read("an lushan rose at Fanyang")
    assert reading.verbatim
    assert (reading.windows[0].start, reading.windows[0].end) == (11, 37)


def test_shares_grow_with_what_may_be_read():
    reading = Evidence(["Alpha came early. Beta came late.", "Gamma never arrived."]).read("Alpha, Beta and Gamma")
    assert 0 < reading.sentence < reading.window < reading.passages == 1.0


@pytest.mark.parametrize(
    ("claim", "how"),
    [
        ("the southern town fell on 24 November", "word for word"),
        ("此城陷於天寶十四載十一月", "word for word"),  # in the other script
        ("On 24 November the southern town fell", "in nearly the same words"),
        ("The town, after ten months of siege, had food", "in nearly the same words"),
        ("The town was captured by Yin Ziqi", "in nearly the same words"),
    ],
)
def test_only_what_has_every_word_in_place_is_called_word_for_word(claim, how):
    passages = [
        "The southern town fell on 24 November. 此城陷于天宝十四载十一月。",
        "The town, after ten months of siege (the longest of the war), had food. Yin Ziqi captured the town.",
    ]
    (support,) = judge([Evidence(passages).read(claim)], [None])
    assert support.reason == f"a passage says so {how}"


@pytest.mark.parametrize("passages", [[], [""], ["   "]])
def test_without_passages_nothing_is_supported(passages):
    (support,) = judge([Evidence(passages).read("An Lushan rose.")], [None])
    assert (support.score, support.verdict, support.passage) == (0.0, "unsupported", -1)


def test_numbers_and_names_that_no_passage_has_are_named():
    reading = Evidence(["An Lushan rose in 755."]).read("An Lushan and Guo Ziyi rose in 760.")
    assert reading.foreign_numbers == ("760",)
    assert reading.foreign_names == ("Guo", "Ziyi")


def test_another_date_for_the_same_matter_contradicts_also_in_other_words():
    evidence = Evidence(["In the year 755 the general An Lushan raised the banner of revolt at Fanyang."])
    (support,) = judge([evidence.read("The revolt of the general An Lushan at Fanyang: in the year 757.")], [None])
    assert support.verdict == "contradicted"


def test_a_name_that_the_whole_answer_is_about_helps_a_short_claim():
    evidence = Evidence(["An Lushan rose at Fanyang in 755 with many men."])
    alone = judge([evidence.read("That went badly.")], [None])[0]
    beside = judge(
        [evidence.read("That went badly."), evidence.read("An Lushan rose at Fanyang with many men.")], [None] * 2
    )
    assert beside[0].score > alone.score


def test_similarity_counts_where_there_is_one():
    reading = Evidence(["An Lushan rose."]).read("The general rose.")
    assert judge([reading], [0.9])[0].score > judge([reading], [None])[0].score > judge([reading], [0.0])[0].score


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("颜杲卿和袁履谦用计杀掉了李钦凑。", "partial"),  # 设计擒杀
        ("颜杲卿和袁履谦写信安慰李钦凑。", "unsupported"),
    ],
)
def test_other_words_with_the_same_characters_speak_of_the_same_matter(claim, verdict):
    passage = "常山太守颜杲卿与长史袁履谦设计擒杀守井陉口的李钦凑，河北十七郡一时反正。"
    assert judge([Evidence([passage]).read(claim)], [None])[0].verdict == verdict


def test_common_words_weigh_less_than_rare_ones():
    assert rarity("year") < rarity("battl") < rarity("fanyang") == pytest.approx((0.5 + 1 + 2.9977) / 4.5, abs=0.01)
    assert rarity("的") < rarity("安") < rarity("安禄") == 1.0


def test_classical_chinese_is_told_from_modern():
    assert is_classical(CLASSICAL)
    assert not is_classical(MODERN)
    assert not is_classical("An Lushan rose.")
    assert not is_classical("之乎者也")
    assert (character_weight("了"), character_weight("军"), character_weight("禄")) == (0.0, 1.0, 1.0)


@pytest.mark.parametrize("claim", ["什么", "的", "什么了？"])
def test_a_claim_of_grammar_alone_says_nothing_of_a_classical_passage(claim):
    reading = Evidence([CLASSICAL]).read(claim)
    assert (reading.weight, reading.windows) == (0.0, ())
    assert judge([reading], [None])[0].verdict == "unsupported"


def test_a_modern_retelling_of_a_classical_passage_is_supported_and_an_invention_is_not():
    evidence = Evidence([CLASSICAL])
    told, made_up = judge(
        [evidence.read("安禄山在范阳反叛，攻陷了东京。"), evidence.read("李白醉酒后落水身亡，葬在采石矶。")],
        [None, None],
    )
    assert told.verdict in ("supported", "partial")
    assert made_up.verdict == "unsupported"


@pytest.mark.parametrize(
    ("sentence", "plain"),
    [
        ("**Tech Support**: they call you.", "tech support: they call you."),
        ("He used `grep` *often*.", "He used grep often."),
        ("There are three of them: 1.", "There are three of them:"),
        ("They fled; 2.", "They fled;"),
        ("Revenue, in millions: 2019: 12.", "Revenue, in millions: 2019: 12."),
    ],
)
def test_markdown_is_taken_off(sentence, plain):
    assert plain_claim(sentence) == plain
