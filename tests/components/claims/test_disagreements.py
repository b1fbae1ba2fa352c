"""What two quotations say differently, and what only looks so."""

import pytest
from bench.quality.disagreements import HALVES, Judge, Maker
from haystack import Document

from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.claims.citations import disagreements_of
from shiguan.claims.disagreements import disagreements

DIFFER = [
    ("date", "The old mill at Thornby was built in 1712.", "In 1718 Hugh Tarrant built the old mill at Thornby.", "1712", "1718"),
    ("number", "The garrison of Astrey numbered 300 men.", "General Vale held Astrey with a garrison of 450 men.", "300", "450"),
    ("name", "The old mill at Thornby was built by Edith Harrow.", "Simon Askew built the old mill at Thornby.", "Edith Harrow", "Simon Askew"),
    ("date", "郭怀义生于天宝十四载。", "郭怀义生于757年。", "天宝十四", "757"),
    ("number", "Guo Huaiyi besieged Baisha with a garrison of 3,000 men.", "郭怀义以守军五千人围白沙。", "3,000", "五千"),
    ("date", "Edith Harrow was born on 3 May 1712.", "Edith Harrow was born on 5 June 1718.", "1712", "1718"),
    ("date", "Astrey was founded in 120 BC.", "In 120 AD Astrey was founded.", "120", "120"),
    ("number", "清河县有户一千二百。", "清河县共计三千户。", "一千二百", "三千"),
    ("number", "宋景文年七十二卒。", "宋景文卒，年六十五。", "七十二", "六十五"),
    ("number", "太平守军有三千人。", "太平守军有五千人。", "三千", "五千"),
    ("name", "宋景文葬于永宁。", "宋景文葬于安乐。", "永宁", "安乐"),
    ("name", "兰溪古桥由张伟明修建。", "刘承德修建了兰溪古桥。", "张伟明", "刘承德"),
    ("name", "The old bridge at Wuyang was built by Cui Wenbo.", "武阳古桥由许昭先修建。", "Cui Wenbo", "许昭先"),
    ("number", "《白沙志》六卷孔衍撰。", "《白沙志》十四卷孔衍撰。", "六", "十四"),
    ("name", "Guo Huaiyi was buried in Yongning.", "郭怀义葬于清河。", "Yongning", "清河"),
]  # fmt: skip
ALIKE = [
    ("郭怀义生于天宝十四载。", "郭怀义生于755年。"),
    ("郭怀义生于天寶十四載。", "郭怀义生于天宝十四载。"),
    ("The wall of Astrey is 5 kilometres long.", "The wall of Astrey is 3.1 miles long."),
    ("The garrison of Astrey numbered 312 men.", "The garrison of Astrey numbered more than 300 men."),
    ("The garrison of Astrey numbered 312 men.", "The garrison of Astrey had 40 horses."),
    ("Before the fire Astrey had 300 houses.", "After the fire Astrey had 40 houses."),
    ("In 1700 Astrey had 300 houses.", "In 1750 Astrey had 450 houses."),
    ("Edith Harrow was born in Astrey.", "Simon Askew was born in Astrey."),
    ("Edith Harrow visited Astrey.", "Edith Harrow visited Thornby."),
    ("Zhang Weiming built the bridge of Qinghe.", "The bridge of Qinghe was built by Chang Wei-ming."),
    ("The siege of Astrey lasted 30 days.", "The siege of Thornby lasted 40 days."),
    ("Line 8 ends at Astrey.", "Line 9 ends at Astrey."),
    ("1. Open the Astrey form.", "2. Open the Astrey form."),
    ("Carrick Hill has a post office with ZIP code 72478.", "Oxmoor has a post office with ZIP code 24934."),
    ("Astrey held 28 Summer Games.", "Astrey held the 2020 Summer Games."),
    ("Edith Harrow visited Astrey in 1902.", "Edith Harrow visited Astrey in 1907."),
    ("Edith Harrow left Astrey in April 1712.", "Edith Harrow left Astrey on 5 June."),
    ("The census of Astrey in 1800 counted 400 houses.", "The census of Astrey in 1850 counted 900 houses."),
    ("宋景文长子生于1702年。", "宋景文次子生于1710年。"),
    ("龙泉寺东塔高四十五米。", "龙泉寺西塔高六十米。"),
    ("三年，代张伯仪为荆南节度使。", "六年十二月，出为荆南节度使。"),
    ("八月丁未，如东都。", "四月己未，如东都。"),
    ("大历三年，检校左仆射。", "宝历元年，就迁检校左仆射。"),
    ("永徽六年卒，赠礼部尚书。", "贞元十二年九月卒，赠礼部尚书。"),
    ("武德四年，平萧铣，领龙平、开江二县。", "武德四年，平萧铣，领苍梧、豪静、开江三县。"),
    ("东北至当州六十里，东至悉州八十里。", "南至广州四百里，东至潮州五百里。"),
    ("滑州刺史王轨奴杀轨，诣建德降。", "窦建德共州县令唐纲杀刺史，以州来降。"),
    ("高祖文皇帝上之下开皇十三年", "高祖文皇帝上之下开皇十九年春，正月，癸酉，赦天下。"),
    ("Emperor Taizong was born in 598.", "皇帝玄宗生于685年。"),
    ("General Guo Ziyi died in 781.", "将军李光弼死于764年。"),
    (
        "The building was listed on the Register of Astrey in 1902.",
        "The building was listed on the Register of Astrey in 1907.",
    ),
    ("In 1902 it was listed on the Register of Astrey.", "In 1907 it was listed on the Register of Astrey."),
    (
        "The 1900 Astrey Census reported that Thornby had a population of 4,665.",
        "The population was 2,304 at the 1900 census.",
    ),
    (
        "Astrey Shores State Park\n7101 State Route #3Thornby, NY 13142",
        "Sandy Astrey State Park\n3387 County Route 15Thornby, NY 13142",
    ),
    (
        "Built by Edith Harrow, the mill opened as Thornby Mill # 1 in 1903.",
        "Built by Edith Harrow, the mill opened as Thornby Mill # 2 in 1903.",
    ),
    ("Published in Astrey 2014-02-05 at 2:14PM PT.", "Published in Astrey 2014-02-05 at 1:35PM PT."),
    ("《说苑》三十卷刘向撰。", "贶依刘向《说苑》撰《续说苑》一十卷以献。"),
    ("Astrey has 8 mills.", "At the time Astrey had 21 mills."),
    ("* Thornby: a farm with 2 mills.", "* Thornby: a farm with 1 mill."),
    ("《南史》八十卷李延寿撰。", "《北史》一百卷李延寿撰。"),
    ("又六十卷干宝撰，刘协注。", "《司徒仪注》五卷干宝撰。"),
    ("神龙二年，清河置象山县。", "贞观四年，清河置丹山县。"),
    ("武德四年，省兰溪入清河。", "武德七年，省兰溪县并入清河。"),
    (
        "八月，京城霖雨，米贵，令出太仓米十万石，减价粜与贫人。",
        "是秋，京城霖雨，物价暴贵，令出太仓米一百万石，开十场贱粜以济贫民。",
    ),
    ("高丽兵披靡，大军乘之，高丽兵大溃，斩首二万馀级。", "进至积利城下，高丽兵万馀人出战，海岸击破之，斩首二千级。"),
    ("起昭阳大渊献，尽阏逢困敦七月，凡一年有奇。", "起上章涒滩，尽昭阳大渊献，凡四年。"),
    ("天授元年，封夏官尚书。", "长寿元年正月戊辰，夏官尚书杨执柔同凤阁鸾台平章事。"),
    ("Tesla was granted patents for a transmitter in 1900.", "特斯拉于1943年1月7日去世。"),
]


@pytest.mark.parametrize(("kind", "one", "other", "mine", "theirs"), DIFFER)
def test_what_differs_is_found_with_its_places(kind, one, other, mine, theirs):
    texts = (f"It rained. {one}", other)
    found = disagreements(texts)
    assert [(each.kind, each.values) for each in found] == [(kind, (mine, theirs))]
    assert [(each.kind, each.values) for each in disagreements((other, one))] == [(kind, (theirs, mine))]
    for account, value in zip(found[0].accounts, (mine, theirs), strict=True):
        text = texts[account.quotation]
        assert text[slice(*account.value)] == value
        assert account.sentence[0] <= account.value[0] < account.value[1] <= account.sentence[1]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_only_looks_different_is_not_found(one, other):
    assert disagreements((one, other)) == []


def test_entries_about_different_things_are_not_compared():
    texts = (
        "The Millford line. Trains stop at 8 stations between Astrey and Thornby.",
        "The Wenlow line. Trains stop at 12 stations between Astrey and Thornby.",
    )
    assert disagreements(texts)
    assert disagreements(texts, ("Millford", "Wenlow")) == []


@pytest.mark.parametrize(
    "text", ["", "\x00" * 5000, "1" * 5000, "年" * 5000, "In 1" * 800, "A" * 399 + "1.", "\ud800 built 3."]
)
def test_hostile_quotations_are_read_to_their_end(text):
    assert disagreements((text, text + "x", "Edith Harrow was born in 1700.")) == []


@pytest.mark.parametrize("half", HALVES)
def test_the_seeded_pairs_stay_as_they_are_measured(half):
    pairs = list(Maker(half).pairs())
    assert (sum(pair.disagrees for pair in pairs), len(pairs)) == (100, 300)
    slice_ = pairs[::3]
    hits = [bool(disagreements(pair.texts)) for pair in slice_]
    found = [hit for pair, hit in zip(slice_, hits, strict=True) if pair.disagrees]
    false = [hit for pair, hit in zip(slice_, hits, strict=True) if not pair.disagrees]
    assert sum(found) >= 0.7 * len(found)
    assert sum(false) <= 0.02 * len(false)


@pytest.mark.parametrize("half", HALVES)
def test_a_judge_who_is_always_right_leaves_what_is_true(half):
    slice_ = list(Maker(half).pairs())[::6]
    for asked_anyway in (False, True):
        hits = [Judge(1.0, asked_anyway).reports(pair) for pair in slice_]
        found = [hit for pair, hit in zip(slice_, hits, strict=True) if pair.disagrees]
        assert sum(found) >= 0.7 * len(found)
        assert not any(hit for pair, hit in zip(slice_, hits, strict=True) if not pair.disagrees)


def passages(*texts):
    return [
        Document(
            id=f"p{number}", content=text, score=1.0 / number,
            meta={"source": f"{number}.epub", "title": f"Book {number}", "section": ["One"], "number": number, "language": "en",
                  "work": {"edition": f"{number}. ed."}, "cut": [7, 7 + len(text)]},
        )
        for number, text in enumerate(texts, start=1)
    ]  # fmt: skip


SENTENCES = "The old mill at Thornby was built in 1712.", "In 1718 Hugh Tarrant built the old mill at Thornby."


@pytest.mark.parametrize(
    "replies",
    [[], ["The old mill at Thornby was built in 1712 [1]. In 1718 Hugh Tarrant built the old mill at Thornby [2]."]],
)
def test_an_answer_names_both_accounts_with_edition_and_place(replies):
    documents = passages(*SENTENCES)
    answer = CitationExtractor().run(
        replies=replies, documents=documents, query="When was the old mill at Thornby built?"
    )["answers"][0]
    (found,) = answer.meta["disagreements"]
    assert (found["kind"], set(found["values"])) == ("date", {"1712", "1718"})
    for place, value in zip(found["places"], found["values"], strict=True):
        document = documents[place["number"] - 1]
        assert place["quote"] == document.content
        assert (place["start"], place["end"]) == (7, 7 + len(document.content))
        assert document.content[place["value"][0] - 7 : place["value"][1] - 7] == value
        assert (place["source"], place["edition"], place["section"]) == (
            document.meta["source"],
            document.meta["work"]["edition"],
            ["One"],
        )


def test_an_answer_whose_sources_agree_names_none():
    documents = passages(SENTENCES[0], SENTENCES[1].replace("1718", "1712"))
    answer = CitationExtractor().run(replies=[], documents=documents, query="When was the old mill built?")["answers"][
        0
    ]
    assert answer.meta["disagreements"] == []


def test_of_three_accounts_two_pairs_are_shown():
    documents = passages(*SENTENCES, "In 1725 the old mill at Thornby was built.")
    cited = [
        {"number": n, "parent_id": d.id, "title": "", "start": 7, "end": 7 + len(d.content), "quote": d.content}
        for n, d in enumerate(documents, start=1)
    ]
    found = disagreements_of(cited, documents)
    assert [[place["number"] for place in one["places"]] for one in found] == [[1, 2], [1, 3]]


def test_of_accounts_that_agree_one_is_shown():
    documents = passages(
        *SENTENCES, "In 1725 the old mill at Thornby was built.", "1718: the old mill at Thornby was built."
    )
    cited = [
        {"number": n, "parent_id": d.id, "title": "", "start": 7, "end": 7 + len(d.content), "quote": d.content}
        for n, d in enumerate(documents, start=1)
    ]
    found = disagreements_of(cited, documents)
    assert [[place["number"] for place in one["places"]] for one in found] == [[1, 2], [1, 3]]


def test_a_quotation_that_repeats_another_but_for_a_date_is_shown():
    one = "The old mill at Thornby was built in 1712 by Hugh Tarrant, who had come from Wenlow with his three sons."
    for other, quoted in ((one.replace("1712", "1718"), 2), (one, 1)):
        documents = passages(one, other)
        answer = CitationExtractor().run(
            replies=[], documents=documents, query="When was the old mill at Thornby built?"
        )["answers"][0]
        assert (len(answer.meta["citations"]), len(answer.meta["disagreements"])) == (quoted, quoted - 1)
