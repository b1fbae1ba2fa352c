import pytest

from shiguan.errors import RefusedError
from shiguan.text.asked_times import asked_times, date_weights, years_between


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("755", (755, 755)),
        ("755..763", (755, 763)),
        ("25..57", (25, 57)),
        ("140 BC..87 BC", (-139, -86)),
        ("公元前140年..公元前87年", (-139, -86)),
        ("1 BC..AD 1", (0, 1)),
        ("天宝十四载..广德元年", (755, 763)),
        ("齐建元元年", (479, 479)),
        ("八世纪", (701, 800)),
        ("the 1970s", (1970, 1979)),
    ],
)
def test_years_of_a_filter(text, years):
    assert years_between(text) == years


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("763..755", "it runs backwards, from 763 to 755"),
        ("天宝十四载..763", "its ends are of two calendars"),
        ("天宝十六载", "天寶 has 15 years and no year 16"),
        ("建元元年", "`建元元年` may be 140 BC, 343, 479; write the dynasty before it"),
        ("-139", "`-139` may be two different years"),
        ("1900-02-30", "February 1900 has no day 30"),
        ("0", "there is no year 0"),
        ("755..760..763", "it is not a year or two"),
        ("755..", "it is not a year or two"),
        ("yesterday", "`yesterday` is not one date"),
        ("", "it is not a year or two"),
    ],
)
def test_what_is_no_time_is_refused_with_its_fault(text, fault):
    with pytest.raises(RefusedError) as error:
        years_between(text)
    assert fault in str(error.value)
    assert "Expected a year or two" in str(error.value)


@pytest.mark.parametrize(
    ("question", "alone"),
    [
        ("《资治通鉴·齐纪》在建元元年正月记载了什么？", True),
        ("天宝十四载发生了什么事？", True),
        ("What happened in the year 755?", True),
        ("天宝十四载安禄山在何处起兵？", False),
        ("What happened to An Lushan in 755?", False),
        ("安禄山在何处起兵？", False),
        ("天宝十六载发生了什么？", False),
    ],
)
def test_whether_a_time_is_all_that_is_asked(question, alone):
    assert asked_times(question).alone is alone


def test_pairs_tell_one_reign_date_from_another_where_nothing_else_is_asked():
    weights = date_weights("建元元年正月记载了什么？")
    assert {term: weights[term] for term in ("建", "元", "建元", "元元", "元年", "年正", "正月")} == {
        "建": 0.3, "元": 0.3, "建元": 2.0, "元元": 2.0, "元年": 2.0, "年正": 2.0, "正月": 2.0,
    }  # fmt: skip
    assert date_weights("建元元年正月萧嶷任何职？") == {}
    assert date_weights("What happened in 755?") == {}
