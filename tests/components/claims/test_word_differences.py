"""What a claim has in place of what its source has."""

import pytest

from shiguan.claims.opposites import are_opposites
from shiguan.claims.word_differences import compare

SOURCE = "Temüjin's mother Hoelun taught him many lessons in 1171, when the camp had 12 tents."


@pytest.mark.parametrize(
    ("claim", "span", "kind", "claimed", "found"),
    [
        (SOURCE.replace("Hoelun", "Chinese"), SOURCE, "name", "Chinese", "Hoelun"),
        (SOURCE.replace("1171", "1181"), SOURCE, "number", "1181", "1171"),
        (SOURCE.replace("12 tents", "nineteen tents"), SOURCE, "number", "nineteen", "12"),
        (
            "The army marched north in great haste.",
            "The army marched south in great haste.",
            "opposite",
            "north",
            "south",
        ),
        ("他在1989年获得了单季的全垒打王。", "他在1987年获得了单季的全垒打王。", "number", "1989", "1987"),
        ("讨伐淮西的将领是李光进和乌重胤。", "讨伐淮西的将领是李光颜和乌重胤。", "name", "李光进", "李光颜"),
        ("郭子仪讨安禄山。", "郭子仪讨安庆绪于相州。", "name", "安禄山", "安庆绪"),
        ("陈璋听说陶雅回京师。", "陈璋听说陶雅归京师。", "word", "回京", "归京师"),
        ("袁履谦用计杀了李钦凑。", "袁履谦设计杀了李钦凑。", "word", "用计", "设计"),
        ("张三是一位西班牙的插画家和作者。", "张三是一位意大利的插画家和作者。", "name", "西班牙", "意大利"),
        ("此战之后唐军收复了洛阳与长安。", "此战之前唐军收复了洛阳与长安。", "opposite", "之后", "之前"),
        ("手机关机后，位置很容易被获取到。", "手机开机后，位置很容易被获取到。", "word", "关机", "开机"),
        ("隨著年齡的增長，聽覺上限會升高。", "隨著年齡的增長，聽覺上限會降低，強度也一樣。", "word", "升高", "降低"),
        ("赵喜进提出朝阳龙是原始的龙类。", "尤海鲁等人提出朝阳龙是原始的龙类。", "name", "赵喜进", "尤海鲁等人"),
        (
            "The Anglo-French fleet won the battle that year.",
            "The Anglo-Dutch fleet won the battle that year.",
            "name",
            "French",
            "Dutch",
        ),
        (
            "The army arrived three days before the fall.",
            "The army arrived three days after the fall.",
            "opposite",
            "before",
            "after",
        ),
        (
            "The committee accepted the plan at once and built lodges.",
            "The committee accepted the plan at once and built houses.",
            "word",
            "lodges",
            "houses",
        ),
    ],
)
def test_the_difference_is_named(claim, span, kind, claimed, found):
    (difference, *_) = compare(claim, span).differences
    assert (difference.kind, difference.claimed, difference.found) == (kind, claimed, found)


@pytest.mark.parametrize(
    ("claim", "span"),
    [
        (SOURCE, SOURCE),
        ("She taught him many lessons in 1171.", SOURCE),
        ("Hoelun taught him many lessons.", "She taught him many lessons."),
        ("Wine, tea and silk were sold in every market.", "Silk, wine and tea were sold in every market."),
        ("安禄山於范陽起兵反唐朝廷。", "安禄山于范阳起兵反唐朝廷。"),
        ("It cost two thousand strings of cash that year.", "It cost 2,000 strings of cash that year."),
        ("Schubert died in Vienna in 1828.", "Schubert, who never married, died in Vienna in 1828."),
        ("King John died at Newark in October 1216.", "King John never recovered. He died at Newark in October 1216."),
        ("The United Nations condemned the attack.", "The U.N. condemned the attack."),
        ("Something else altogether is said here.", SOURCE),
        (
            "The Pequod sailed from Nantucket on Christmas.",
            "The Pequod had sailed from Nantucket at the beginning of the Season-on-the-Line.",
        ),
    ],
)
def test_the_same_said_otherwise_is_no_difference(claim, span):
    assert compare(claim, span).differences == ()


@pytest.mark.parametrize(
    ("claim", "span"),
    [
        ("He did not leave the city that winter.", "He did leave the city that winter."),
        ("The shop is not open on Sundays.", "The shop is open on Sundays."),
        ("Karl did not sell the ship.", "Karl sold the ship."),
        ("The dam did break in May.", "The dam didn't break in May."),
        ("The ship did not arrive in May.", "The ship did not arrive until May."),
    ],
)
def test_a_denial_on_one_side_only_is_a_difference(claim, span):
    comparison = compare(claim, span)
    assert [one.kind for one in comparison.differences] == ["negation"]


def test_opposites_are_found_whatever_their_inflection():
    assert are_opposites("increased", "decreases")
    assert are_opposites("大的胜利", "大的失败") is False
    assert are_opposites("胜利", "失败")
    assert are_opposites("Before", "after")
    assert not are_opposites("rose", "lost")


@pytest.mark.parametrize(
    ("claim", "span"),
    [
        # A bound that the number keeps, and a difference of two numbers.
        ("The army had over 2,500 men before the battle.", "The army had 3,000 men before the battle."),
        ("The army had about 3,100 men before the battle.", "The army had 3,000 men before the battle."),
        ("The Snake is 150 miles longer than the Columbia.", "The Snake is longer than the Columbia: 1,078 miles."),
        ("列车时速不超过50公里。", "列车最高时速50公里。"),
        # An age is no year.
        ("王渊五十岁时死于洛阳城。", "王渊1340年时死于洛阳城。"),
        # One denies what the other does not say.
        ("Two of the five ships did not sink near Acre.", "Three of the five ships sank near Acre."),
        ("He had to leave the town of Acre in May.", "He had no choice but to leave the town of Acre in May."),
        # In another place of the sentence.
        (
            "The nobles of the town often called themselves English in the course of the Franco War.",
            "In the course of the Franco War, the nobles of the town often called themselves English. "
            "It helped in the development of Middle English.",
        ),
        # A year and a decade.
        (
            "2006年广州队被白云山制药厂所属的广州医药集团收购。",
            "20世纪80年代末期，白云山制药厂资助的广州白云足球队曾是中国一支足坛劲旅，而这支广州队之后经历了"
            "多个不同的赞助商时期，2006年被白云山制药厂所属的广州医药集团收购。",
        ),
        # The other way round.
        ("潼关在洛阳以西三百里。", "洛阳在潼关以东三百里。"),
        # Only what stands between the commas is denied.
        ("The mill was sold to Hale in 1891.", "The mill was sold, not rented, to Hale in 1891."),
        ("Otto Hale founded the school in 1770.", "Otto Hale, not Karl Low, founded the school in 1770."),
        ("李文博于1921年创办了天文台。", "李文博而非张志远于1921年创办了天文台。"),
        ("The European Union has 27 members.", "The EU has 27 members."),
        # Denied in other words, or in another place.
        ("Smoking is not permitted on the ship.", "Smoking is prohibited on the ship."),
        ("The shop is closed on Sundays.", "The shop is not open on Sundays."),
        ("The river has never been so low.", "Never has the river been so low."),
        ("No witness saw the car.", "None of the witnesses saw the car."),
        ("The ship arrived in May.", "The ship did not arrive until May."),
    ],
)
def test_what_may_be_true_of_both_is_no_contradiction(claim, span):
    assert {difference.kind for difference in compare(claim, span).differences} <= {"word"}


@pytest.mark.parametrize(
    ("claim", "span"),
    [
        ("The army had over 3,500 men before the battle.", "The army had 3,000 men before the battle."),
        ("The army had about 4,000 men before the battle.", "The army had 3,000 men before the battle."),
        ("The army had fewer than 3,000 men before the battle.", "The army had 3,500 men before the battle."),
    ],
)
def test_a_bound_that_the_number_breaks_is_a_contradiction(claim, span):
    assert [difference.kind for difference in compare(claim, span).differences] == ["number"]
