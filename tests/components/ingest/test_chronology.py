import json
from dataclasses import replace

from haystack import Document

from shiguan.ingest.chronology import with_times

ANNAL = [
    "【齐纪 建元元年正月（甲辰）】\n以江州刺史萧嶷为都督。", "府州仪物，务存俭约。",
    "二月，丙子，邵陵殇王友卒。辛巳，魏主如代郡温泉。", "夏，四月，壬申朔，进齐公爵为王。", "是岁，天下大水。",
    "二年春正月戊戌朔，大赦。", "闰月，辛巳，遣使。", "永明元年正月，改元。",
]  # fmt: skip


def _children(texts, **meta):
    return [
        Document(id=str(at), content=text, meta={"parent_id": f"p{at}", "file_id": "f", "title": "t", **meta})
        for at, text in enumerate(texts)
    ]


def _when(child):
    return [(one["as"], one["from"], one.get("month"), one["how"]) for one in child.meta.get("when", [])]


def test_in_an_annal_a_year_and_a_month_hold_until_the_next():
    times = [_when(child) for child in with_times(_children(ANNAL), [])]
    assert times[0] == [("齐纪 建元元年正月甲辰", 479, 1, "written")]
    assert times[1] == [("齐纪 建元元年正月", 479, 1, "carried")]
    assert [one[1:3] for one in times[2]] == [(479, 2)]
    assert times[3][0][1:3] == (479, 4)
    assert times[4] == [("齐纪 建元元年", 479, None, "carried")]
    assert times[5][0] == ("建元二年春正月戊戌", 480, 1, "written")
    assert times[6][0][1:3] == (480, 9)
    assert times[7] == [("永明元年正月", 483, 1, "written")]
    # A chapter does not carry into the next.
    second = _children(["天下太平。"], section=["other"])
    assert _when(with_times([*_children(ANNAL), *second], [])[-1]) == []


def test_parents_span_the_times_of_their_children():
    children = [replace(child, meta={**child.meta, "parent_id": "p"}) for child in _children(ANNAL)]
    parent = Document(id="p", content="")
    with_times(children, [parent])
    assert (parent.meta["when_from"], parent.meta["when_to"]) == (479, 483)


def test_a_month_that_runs_backwards_ends_what_is_known():
    # The year that began with this month was not read: no year is better than a wrong one.
    texts = [*ANNAL[:4], "三月，庚子，卒。", "五月，甲子，卒。", "六月，甲子，雨。"]
    times = [_when(child) for child in with_times(_children(texts), [])]
    assert times[3]
    assert times[4:] == [[], [], []]


def test_a_new_era_is_proclaimed_within_a_sentence():
    texts = [
        "天宝十五载六月甲午，帝幸蜀。", "乙未，次马嵬。", "七月辛酉，至灵武。", "甲子，即位，下诏改元曰至德，大赦。",
        "丁卯，遣使。", "二载春正月，庆绪杀禄山。",
    ]  # fmt: skip
    times = [_when(child) for child in with_times(_children(texts), [])]
    assert times[4][0][1] == 756
    assert times[5][0][1:] == (757, 1, "written")


def test_lives_are_no_annals_and_have_the_dates_that_they_name():
    texts = [
        "李靖，本名药师，雍州三原人也。父诠，隋赵郡守。靖姿貌瑰伟，少有文武材略。",
        "武德三年，从讨王世充，以功授开府。轻骑至金州，遇蛮贼数万。",
        "靖与瑗设谋击之，多所克获。既至硖州，阻萧铣。高祖怒其迟留。",
        "贞观四年，靖进击定襄，破之。太宗大悦。乃下诏曰：可。",
        "靖弟客师，官至将军。以战功累封丹阳郡公。性好驰猎。",
    ]
    times = [_when(child) for child in with_times(_children(texts), [])]
    assert times == [[], [("武德三年", 620, None, "written")], [], [("贞观四年", 630, None, "written")], []]


def test_ids_change_with_the_dates_and_with_nothing_else():
    undated = _children(["天下太平。"])
    assert [child.id for child in with_times(undated, [])] == ["0"]
    once, again = with_times(_children(ANNAL), []), with_times(_children(ANNAL), [])
    assert [child.id for child in once] == [child.id for child in again]
    assert len({child.id for child in once}) == len(ANNAL)
    assert json.loads(json.dumps(once[0].meta)) == once[0].meta


def test_hostile_texts_of_dates_take_no_time():
    texts = ["元年" * 20_000, "【" * 20_000, "春" * 20_000, "1-" * 20_000, "甲子" * 20_000, "十" * 20_000]
    assert len(with_times(_children(texts), [])) == len(texts)
