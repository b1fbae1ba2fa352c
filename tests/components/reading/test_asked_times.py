import pytest

from shiguan.errors import RefusedError
from shiguan.reading.question import date_weights, read_question, years_between


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("755", (755, 755)), ("755..763", (755, 763)), ("25..57", (25, 57)), ("140 BC..87 BC", (-139, -86)),
        ("公元前140年..公元前87年", (-139, -86)), ("前140..公元前87", (-139, -86)),
        ("公元755..７６３", (755, 763)), ("1 BC..AD 1", (0, 1)), ("天宝十四载..广德元年", (755, 763)),
        ("齐建元元年", (479, 479)), ("八世纪", (701, 800)), ("the 1970s", (1970, 1979)),
    ],
)  # fmt: skip
def test_years_of_a_filter(text, years):
    assert years_between(text) == years


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("763..755", "it runs backwards, from 763 to 755"), ("天宝十四载..763", "its ends are of two calendars"),
        ("天宝十六载", "天寶 has 15 years and no year 16"),
        ("建元元年", "`建元元年` may be 140 BC, 343, 479; write the dynasty before it"),
        ("-139", "`-139` may be two different years"), ("1900-02-30", "February 1900 has no day 30"),
        ("0", "there is no year 0"), ("755..760..763", "it is not a year or two"), ("755..", "it is not a year or two"),
        ("yesterday", "`yesterday` is not one date"), ("", "it is not a year or two"),
    ],
)  # fmt: skip
def test_what_is_no_time_is_refused_with_its_fault(text, fault):
    with pytest.raises(RefusedError) as error:
        years_between(text)
    assert fault in str(error.value)
    assert "Expected a year or two" in str(error.value)


@pytest.mark.parametrize("question", ["安禄山在何处起兵？", "天宝十六载发生了什么？"])
def test_a_question_without_a_time_that_exists_does_not_ask_for_one_alone(question):
    assert not read_question(question).times.alone


def test_pairs_tell_one_reign_date_from_another_where_nothing_else_is_asked():
    weights = date_weights(read_question("建元元年正月记载了什么？").times)
    assert {term: weights[term] for term in ("建", "元", "建元", "元元", "元年", "年正", "正月")} == {
        "建": 0.3, "元": 0.3, "建元": 2.0, "元元": 2.0, "元年": 2.0, "年正": 2.0, "正月": 2.0,
    }  # fmt: skip
    assert date_weights(read_question("建元元年正月萧嶷任何职？").times) == {}
    assert date_weights(read_question("What happened in 755?").times) == {}


ALONE = [
    "《资治通鉴·齐纪》在建元元年正月记载了什么？", "天宝十四载发生了什么事？", "What happened in the year 755?",
    "《资治通鉴》在晋世祖武皇帝泰始二年二月记载了什么？", "晋世祖武皇帝泰始二年二月发生了什么？",
    "晋武帝泰始二年二月有哪些大事？", "泰始二年二月，史书写了些什么？", "《资治通鉴》泰始二年二月有何记载？",
    "请告诉我泰始二年二月的事。", "泰始二年二月都发生过哪些事情？", "关于泰始二年二月，书中有什么内容？",
    "书里在泰始二年二月这一条下写了什么？", "晋泰始二年二月有什么事？", "泰始二年二月条", "泰始二年二月的记录",
    "泰始二年二月", "泰始二年二月？", "唐玄宗天宝十四载十一月发生了什么大事？", "公元755年发生了什么？",
    "755年11月有哪些重要事件？", "What happened in 755?", "What does the chronicle record for 755?",
    "Which events does the book report for the year 755?", "What took place in November 755?",
    "Tell me what happened in 755.", "What is said about the year 755?", "What does the Zizhi Tongjian say about 755?",
    "Which entries fall in 泰始二年二月?", "唐高祖神尧大圣大光孝皇帝武德元年五月记载了什么？",
    "汉世宗孝武皇帝建元元年发生了什么？", "清圣祖仁皇帝康熙六年有何记载？", "在泰始二年的二月，史官记下了哪些事？",
    "泰始二年二月所记何事？", "那本书说泰始二年二月怎么了？", "哪些事情发生在泰始二年二月？",
    "What was going on in 755?", "In 755, what happened?", "東晉孝武帝太元八年十月，史書記載了哪些事？",
    "《通鑑》怎樣記述太元八年十月？",
]  # fmt: skip
WITH_SUBJECT = [
    "泰始二年二月安禄山做了什么？", "Who was emperor in 755?", "天宝十四载十一月谁起兵？", "755年洛阳发生了什么？",
    "天宝十四载长安有多少人？", "What did Guo Ziyi do in 755?", "What happened to Yang Guozhong in 756?",
    "What happened at Tongguan in 756?", "Which battles took place in 755?", "贞观三年玄奘去了哪里？",
    "贞观三年有哪些日食？", "What did the emperor say in 755?", "建中四年朝廷发生了什么变化？",
    "How did the war begin in 755?", "元和十四年的佛骨事件是怎么回事？", "How many books were burnt in 1258?",
    "贞元二年谁写了这本书？", "What was the main source of revenue in 780?", "泰始二年二月，司马炎下诏的内容是什么？",
]  # fmt: skip


@pytest.mark.parametrize("question", ALONE)
def test_a_question_may_ask_for_a_date_in_many_ways(question):
    assert read_question(question).times.alone


@pytest.mark.parametrize("question", WITH_SUBJECT)
def test_a_question_with_a_subject_does_not_ask_for_a_date_alone(question):
    assert read_question(question).times.times
    assert not read_question(question).times.alone
