import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.text.quantities import quantities


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("天寶十四載", [({755, 14}, "year")]), ("天宝元年", [({742, 1}, "year")]),
        ("上元二年", [({675, 761, 2}, "year")]),
        ("755年12月16日", [({755}, "year"), ({12}, "month"), ({16}, "day")]),
        ("十一月九日", [({11}, "month"), ({9}, "day")]), ("眾十五萬", [({150_000}, "number")]),
        ("二十餘萬人", [({200_000}, "number")]), ("三百六十州", [({360}, "number")]),
        ("一九四九年", [({1949}, "year")]), ("二〇二三年", [({2023}, "year")]), ("3万人", [({30_000}, "number")]),
        ("１２３", [({123}, "number")]), ("10%", [({10}, "percent")]), ("全長364.6公里", [({364.6}, "number")]),
        ("12,345 men", [({12_345}, "number")]), ("1.5 million", [({1_500_000}, "number")]),
        ("twenty-five thousand men", [({25_000}, "number")]), ("two hundred and six", [({206}, "number")]),
        ("on 21 February 1804", [({21}, "number"), ({2}, "month"), ({1804}, "year")]),
        ("replaced in march 2016", [({3}, "month"), ({2016}, "year")]),
        ("at 3:30 p.m.", [({930}, "time")]), ("at 3:30", [({210, 930}, "time")]), ("at 12 a.m.", [({0}, "time")]),
        ("夜里两点", [({120}, "time")]), ("晚上12点", [({0}, "time")]), ("中午十二点一刻", [({735}, "time")]),
        ("15时", [({900}, "time")]), ("15时间", [({15}, "number")]),
        ("a time of 3:15:22", [({3}, "number"), ({15}, "number"), ({22}, "number")]),
        ("two dozen", [({24}, "number")]), ("half a dozen", [({6}, "number")]), ("half an hour", [({0.5}, "number")]),
        ("dozens", []), ("Part XIV", [({14}, "number")]), ("Part I", [({1}, "number")]),
        ("the Second World War", [({2}, "ordinal")]),
        ("in march, 1754", [({3}, "month"), ({1754}, "number")]),
        ("on july 25", [({7}, "month"), ({25}, "day")]),
        ("in september of 2017", [({9}, "month"), ({2017}, "number")]),
        ("they may meet 12 times", [({12}, "number")]), ("a march of 10 miles", [({10}, "number")]),
        ("in the 8th century", [({8}, "ordinal")]), ("the seventh emperor", [({7}, "ordinal")]),
        ("第七位皇帝", [({7}, "ordinal")]), ("20世纪70年代", [({1970}, "year")]),
        ("上世紀五十年代", [({1950}, "year")]), ("1820年代", [({1820}, "year")]), ("萬餘人", [({10_000}, "number")]),
        ("九八年", [({98, 1998}, "year")]), ("于05年动工", [({5, 2005}, "year")]), ("十有八九不成", []),
        ("历时98年", [({98}, "year")]), ("56年后", [({56}, "year")]), ("公元98年", [({98}, "year")]),
        ("15年", [({15}, "year")]), ("in the eleventh month", [({11}, "month")]),
        ("in the 12th month", [({12}, "month")]), ("for two months", [({2}, "number")]),
        ("the ninth and tenth day", [({9}, "ordinal"), ({10}, "ordinal")]),
        ("the first two", [({2}, "number")]), ("the twenty-first time", [({21}, "ordinal")]),
        ("the 1960s and 70s", [({1960}, "number"), ({70, 1970, 2070}, "year")]),
        ("20世纪60年代和70年代", [({1960}, "year"), ({70, 1970, 2070}, "year")]),
        ("叁拾陸萬人", [({360_000}, "number")]), ("第伍章", [({5}, "ordinal")]), ("伍元", [({5}, "number")]),
        ("退伍十年", [({10}, "year")]), ("十分钟", [({10}, "number")]), ("四十分", [({40}, "number")]),
        ("三点十分", [({3}, "number"), ({10}, "number")]), ("三点二十", [({3}, "number"), ({20}, "number")]),
        ("三点五亿人", [({350_000_000}, "number")]), ("十二千克", [({12_000}, "number")]),
        ("百分之三点五", [({3.5}, "percent")]), ("三千万不足", [({30_000_000}, "number")]),
        ("兩千三", [({2_300}, "number")]), ("一万二的月薪", [({12_000}, "number")]),
        ("二十三万五，", [({235_000}, "number")]), ("一亿二", [({120_000_000}, "number")]),
        ("一亿二千万五百人", [({120_000_500}, "number")]), ("四万万五千万人", [({450_000_000}, "number")]),
        ("三万五千亿元", [({3_500_000_000_000}, "number")]), ("两千零三", [({2_003}, "number")]),
        ("三百五", [({305, 350}, "number")]), ("三百五人", [({305}, "number")]), ("一千三人", [({1_003}, "number")]),
        ("第一千三", [({1_003}, "ordinal")]), ("卷一千三", [({1_003}, "number")]), ("卷一百五", [({105}, "number")]),
        ("二十三", [({23}, "number")]),
    ],
)  # fmt: skip
def test_numbers_have_their_values_and_kinds(text, expected):
    assert [(set(quantity.values), quantity.kind) for quantity in quantities(text)] == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "百姓", "万一", "千里馬", "一个人", "one of them", "May he rest", "hundreds", "三思", "三五人", "退伍军人",
        "錄事參軍", "陸軍", "大陸人", "入伍年龄", "收拾人心", "十分重要", "千百年来", "億萬人民", "千万不要忘记",
    ],
)  # fmt: skip
def test_vague_words_are_no_numbers(text):
    assert quantities(text) == []


@pytest.mark.parametrize(
    ("first", "second", "agree"),
    [
        ("755年", "天寶十四載", True), ("in 755", "天宝十四载", True), ("756年", "天宝十四载", False),
        ("150,000", "十五万", True), ("11月", "11日", False), ("11月", "十一月", True), ("5%", "5人", False),
        ("显庆二年", "咸亨二年", False), ("2/3 of the men", "三分之二的人", True),
        ("two-thirds of them", "三分之二", True), ("three quarters", "75%", True),
        ("the poorest fifth of them", "20 percent", True), ("a third of them", "三分之一", True),
        ("two-thirds of them", "三分之一", False), ("the third man", "三分之一", False),
        ("Resolution 43/53", "43 men", True), ("显庆二年", "二年", True), ("the 1970s", "20世纪70年代", True),
        ("the eleventh month", "十一月", True), ("月薪一万二", "12,000", True), ("月薪一万二", "10,002", False),
        ("月租三百五", "350", True), ("月租三百零五", "350", False), ("户三万一千三百三", "31,303", True),
        ("户三万一千三百三", "31,333", False),
    ],
)  # fmt: skip
def test_quantities_agree_whatever_their_spelling(first, second, agree):
    assert quantities(first)[0].agrees_with(quantities(second)[0]) is agree


@given(st.text() | st.text(alphabet="零一二两三四五六七八九十百千万亿0123456789.,年月日 天宝元hundredtwofi-"))
def test_any_text_gives_spans_in_order(text):
    spans = [(quantity.start, quantity.end) for quantity in quantities(text)]
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


@pytest.mark.parametrize(
    ("text", "month"), [("on 24 November. He", "November"), ("16 Dec. 755", "Dec."), ("May. 3", "May")]
)
def test_only_a_short_month_takes_the_stop_behind_it(text, month):
    assert next(text[q.start : q.end] for q in quantities(text) if q.kind == "month") == month
