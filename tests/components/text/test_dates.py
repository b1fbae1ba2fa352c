from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.text.dates import find_dates, that_year
from shiguan.text.languages import fold_han
from shiguan.text.reigns import day_in, eras, months_of, reigns, western_day
from shiguan.text.times import When, time_meta, times_in, western_of


def _years(text, context=""):
    return [(when.first, when.last) for mention in find_dates(text, context) for when in mention.times]


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("魯隱公元年", -721), ("周威烈王二十三年", -402), ("汉高祖五年", -201), ("建安十三年", 208),
        ("齐建元元年", 479), ("《资治通鉴·齐纪》在建元元年正月记载了什么？", 479), ("贞观元年", 627),
        ("天寶十四載", 755), ("天宝十五载", 756), ("乾元元年", 758), ("大中祥符元年", 1008), ("洪武元年", 1368),
        ("康熙六十一年", 1722), ("宣統三年", 1911), ("民国三十八年", 1949),
    ],
)  # fmt: skip
def test_years_of_reigns_are_those_of_the_common_era(text, year):
    assert _years(text) == [(year, year)]


@pytest.mark.parametrize(
    ("text", "first", "last", "precision"),
    [
        ("in the year 755, the rebellion", 755, 755, "year"), ("on 16 December 755 he rose", 755, 755, "day"),
        ("December 16, 755", 755, 755, "day"), ("1755-12-16", 1755, 1755, "day"),
        ("from 755 to 763", 755, 763, "range"), ("the Tang (618–907)", 618, 907, "range"),
        ("in 1914-18", 1914, 1918, "range"), ("479 BC", -478, -478, "year"), ("AD 755", 755, 755, "year"),
        ("the eighth century", 701, 800, "century"), ("third century BC", -299, -200, "century"),
        ("the 1970s", 1970, 1979, "decade"), ("公元前479年", -478, -478, "year"),
        ("前221年至前206年", -220, -205, "range"), ("755年12月16日", 755, 755, "day"),
        ("一九四九年", 1949, 1949, "year"), ("八世纪", 701, 800, "century"),
        ("二十世纪七十年代", 1970, 1979, "decade"),
        ("此前2019年他来了", 2019, 2019, "year"), ("戰前1931年", 1931, 1931, "year"), ("目前21世纪", 2001, 2100, "century"),
        ("on 3 April 33 he died", 33, 33, "day"), ("10 May 300, when men died", 300, 300, "day"),
        ("On 10 May 1940 men died", 1940, 1940, "day"), ("30 of them on 2 September 31 BC", -30, -30, "day"),
        ("in 755 this army", 755, 755, "year"), ("In June 755 across the river", 755, 755, "month"),
        ("凯撒前44年遇刺", -43, -43, "year"), ("约前3世纪", -299, -200, "century"),
    ],
)  # fmt: skip
def test_western_dates_in_both_languages(text, first, last, precision):
    (mention,) = find_dates(text)
    assert [(when.first, when.last, when.precision) for when in mention.times] == [(first, last, precision)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("天宝十六载", "天寶 has 15 years and no year 16"), ("天宝十四载十三月", "a year has no month 13"),
        ("天宝十四载十一月甲丑", "there is no day 甲丑 in the round of sixty"),
        ("30 February 1900", "February 1900 has no day 30"), ("1900-02-29", "February 1900 has no day 29"),
        ("2月30日", "there is no day 2月30日 in any year"), ("from 763 to 755", "from 763 to 755 runs backwards"),
    ],
)  # fmt: skip
def test_what_does_not_exist_is_recognised_and_not_converted(text, fault):
    (mention,) = find_dates(text)
    assert mention.times == ()
    assert mention.fault == fault


def test_a_date_is_called_as_the_text_does_without_what_leads_to_it():
    text = "In the year 723 and of 754, about 703, after 755."
    assert [mention.label for mention in find_dates(text)] == ["723", "754", "about 703", "after 755"]


@pytest.mark.parametrize(
    "text",
    [
        "三年不鸣", "about 300 men", "page 755", "十五年后", "15年", "文帝三年", "1,200 in all", "三月不知肉味", "提前3年完成",
        "On 10 May 30 men died", "on 10 May 30 fled", "On May 10, 300 men died", "In May 300 ships left", "in 755 armies",
        "On 10 May 30,000 men died", "On 10 May, 300 of them fled", "on May 10 300.5 tons",
    ],
)  # fmt: skip
def test_numbers_of_things_are_no_dates(text):
    assert find_dates(text) == []


def test_an_open_name_has_all_that_it_may_mean_until_something_decides():
    assert _years("建元元年") == [(-139, -139), (343, 343), (479, 479)]
    assert _years("建元元年", context="《南齐书》") == [(479, 479)]
    assert _years("汉武帝建元元年") == [(-139, -139)] or _years("汉建元元年") == [(-139, -139)]
    # Other dates of the text decide: 483 lies four years after the one of 479.
    assert _years("建元元年正月，受禅。永明元年，改。") == [(479, 479), (483, 483)]
    # Names of small states count where these are named.
    assert _years("前秦建元元年") == [(365, 365)]


def test_a_month_a_leap_month_and_a_day():
    (mention,) = find_dates("建元二年闰月（辛巳）", context="齐纪")
    assert [(when.first, when.month, when.leap) for when in mention.times] == [(480, 9, True)]
    (mention,) = find_dates("天宝十四载十一月甲子，禄山反")
    assert mention.label == "天宝十四载十一月甲子"
    assert western_of(mention.times[0]) == "16 December 755"
    (mention,) = find_dates("天宝十四载十一月丙戌")  # a day that the month does not have
    assert (mention.times[0].precision, mention.times[0].month) == ("month", 11)
    (mention,) = find_dates("贞观元年春正月乙酉，改元")
    assert western_of(mention.times[0]) == "23 January 627"


def test_that_year_is_the_one_before():
    text = "In 755 he rose. In the spring of that year it rained. The following year the court fled."
    found = [(when.first, when.precision) for when in that_year(text, find_dates(text))]
    assert found == [(755, "season"), (756, "year")]
    text = "天宝十四载，反。明年，幸蜀。"
    assert [when.first for when in that_year(text, find_dates(text))] == [756]
    assert list(that_year("In the spring of that year it rained.", [])) == []


def test_western_years_are_written_as_historians_do():
    assert western_of(When(-139, -139)) == "140 BC"
    assert western_of(When(0, 0)) == "1 BC"
    assert western_of(When(701, 800, "century")) == "701–800"


def test_meta_gives_back_the_times_and_spans_the_certain_ones():
    times = [when for mention in find_dates("天宝十四载十一月，至德二载") for when in mention.times]
    meta = time_meta(times)
    assert (meta["when_from"], meta["when_to"]) == (755, 757)
    assert times_in(meta) == times
    opened = time_meta([when for mention in find_dates("建元元年") for when in mention.times])
    assert "when_from" not in opened
    assert [entry["open"] for entry in opened["when"]] == [True, True, True]
    assert time_meta([]) == {}


def test_every_year_of_every_era_converts_and_back():
    for reign in (reign for name in eras() for reign in reigns()[name]):
        for number in {1, 2, reign.last - reign.first + 1} if reign.last < 1912 else {1, 2, 38}:
            if (year := reign.year(number)) is not None:
                text = f"{reign.dynasty}{reign.name}{number}年"
                assert (year, year) in _years(text), text
                assert year - reign.first + 1 == number
        assert reign.year(0) is None
        assert reign.year(reign.last - reign.first + 2) is None


@given(st.integers(-245, 1911))
def test_months_of_a_year_follow_each_other_and_have_their_days(year):
    months = months_of(year)
    for one, other in pairwise(months):
        assert one.first_day + one.days == other.first_day
    for month in months:
        assert 29 <= month.days <= 30
        for day in range(month.first_day, month.first_day + month.days):
            name = f"{'甲乙丙丁戊己庚辛壬癸'[(day + 49) % 10]}{'子丑寅卯辰巳午未申酉戌亥'[(day + 49) % 12]}"
            assert day_in(month, name) == day


@given(st.integers(1_600_000, 2_450_000))
def test_days_go_on_by_one(day):
    (year, month, of_month), (later, next_month, next_of_month) = western_day(day), western_day(day + 1)
    assert (later, next_month, next_of_month) > (year, month, of_month)
    assert next_of_month in (of_month + 1, 1) or (day + 1 == 2_299_161 and next_of_month == 15)


@given(
    st.text(max_size=300)
    | st.text(alphabet="天宝建元十二三年载月闰正甲子春，。【（0123456789-–前公 in BC", max_size=60)
)
def test_any_text_can_be_read(text):
    assert fold_han(text) is not None
    for mention in find_dates(text, text):
        assert 0 <= mention.start < mention.end <= len(text)
        assert bool(mention.times) != bool(mention.fault)
        assert all(when.first <= when.last for when in mention.times)


@pytest.mark.parametrize(
    ("text", "year", "label"),
    [
        ("晋世祖武皇帝泰始二年二月", 266, None), ("晋纪一 世祖武皇帝泰始二年二月", 266, None),
        ("宋太宗明皇帝泰始二年", 466, None), ("世祖武皇帝泰始二年", 266, None),
        ("唐高祖神尧大圣大光孝皇帝武德元年五月", 618, None), ("漢世宗孝武皇帝建元元年", -139, None),
        ("齐太祖高皇帝建元元年", 479, None), ("齐东昏侯永元二年", 500, None), ("陈长城公至德二年", 584, None),
        ("宋太祖啟運立極英武睿文神德聖功至明大孝皇帝建隆元年", 960, None), ("清聖祖仁皇帝康熙六年", 1667, None),
        ("唐肃宗上之上 至德二载", 757, None), ("後來世祖大怒，天宝十四载", 755, "天宝十四载"),
        ("立道成为齐王，天宝十四载", 755, "天宝十四载"),
    ],
)  # fmt: skip
def test_a_rulers_title_before_an_era_belongs_to_the_date(text, year, label):
    (mention,) = find_dates(text)
    assert [when.first for when in mention.times] == [year]
    assert mention.label == (label or text)
