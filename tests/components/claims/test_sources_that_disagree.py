"""A sentence that one source says word for word and another says with another number or name in its place."""

import pytest
from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.answer.citation_extractor import CitationExtractor

# What the first source says, what the second one says, and the words of the second that differ.
DISAGREE = {
    "year": ("The bridge at Anji was finished in 605.", "The bridge at Anji was finished in 616.", "616"),
    "height": ("The pagoda is 64 metres high.", "The pagoda is 73 metres high.", "73"),
    "number": (
        "Zhang Xun had 6,800 soldiers in Suiyang.",
        "At Suiyang the town was lost. Zhang Xun had 3,000 soldiers in Suiyang.",
        "3,000",
    ),
    "name": ("Yang Yan proposed the two-tax reform.", "Han Huang proposed the two-tax reform.", "Han Huang"),
    "year, in front": ("The salt tax was set up in 758.", "In 760 the salt tax was set up.", "760"),
    "zh year": ("赵州桥建成于公元605年。", "赵州桥建成于公元616年。", "616"),
    "zh height": ("大雁塔高64米。", "大雁塔高七十三米。", "七十三"),
    "zh number": ("张巡守睢阳，有兵六千八百人。", "张巡守睢阳，有兵三千人。", "三千"),
    "zh name": ("两税法由杨炎提出。", "两税法由刘晏提出。", "刘晏"),
    "direction": ("The mill stands north of the river.", "The mill stands south of the river.", "south"),
    "zh names": ("安禄山派史思明攻打饶阳。", "安禄山派尹子奇攻打饶阳。", "尹子奇"),
}
AGREE = {
    "another year of another event": ("Zhang Xun held Yongqiu in 756.", "Zhang Xun held Suiyang in 757."),
    "another count of another year": (
        "The census of 755 counted 52,919,309 people.",
        "The census of 764 counted 16,900,000 people.",
    ),
    "a person of the same surname": (
        "Li Guangbi held Taiyuan against Shi Siming.",
        "Li Guangjin held Taiyuan as a boy for his brother Li Guangbi.",
    ),
    "a rounded number": ("The army had 147,000 soldiers.", "The army had some 150,000 soldiers."),
    "a part and the whole": ("The wall is 40 kilometres long.", "The northern part of the wall is 12 kilometres long."),
    "another part": ("The nave is 40 metres high.", "The crossing tower is 96 metres high."),
    "denied": ("He had 40 ships.", "He did not have 60 ships."),
    "supposed": ("He had 40 ships in the harbour.", "If he had 60 ships in the harbour, he would have won."),
    "the same in another unit of writing": ("The army had 150,000 soldiers.", "The army had 150 thousand soldiers."),
    "zh another event": ("张巡于756年守雍丘。", "张巡于757年守睢阳。"),
    "zh the same surname": ("李光弼于764年去世。", "李光进于815年去世。"),
    "zh rounded": ("敌军有十四万七千人。", "敌军约有十五万人。"),
    "zh a part and the whole": ("长城长四十里。", "长城北段长十二里。"),
    "zh the same number": ("张巡有兵六千八百人。", "张巡有兵6800人。"),
}


def claims(answer, first, second, *, sources=("a.txt", "b.txt")):
    documents = [
        Document(id=source + text, content=text, meta={"number": at, "source": source})
        for at, (source, text) in enumerate(zip(sources, (first, second), strict=True), start=1)
    ]
    (found,) = CitationExtractor().run([ChatMessage.from_assistant(answer)], documents)["answers"]
    return found.meta["claims"]


@pytest.mark.parametrize(("first", "second", "differs"), DISAGREE.values(), ids=DISAGREE)
@pytest.mark.parametrize("mark", [" [1]", " [1][2]", ""], ids=["one cited", "both", "none"])
def test_another_source_that_has_something_else_there_is_shown(first, second, differs, mark):
    (claim,) = claims(first + mark, first, second)
    assert (claim["verdict"], claim["numbers"]) == ("supported", [1])
    assert (claim["against"]["number"], claim["against"]["source"]) == (2, "b.txt")
    ((start, end),) = claim["against"]["words"]
    assert second[start:end] == differs
    assert "[2]" in claim["reason"]


@pytest.mark.parametrize(("first", "second", "_"), DISAGREE.values(), ids=DISAGREE)
def test_it_is_shown_whichever_of_the_two_the_answer_follows(first, second, _):
    (claim,) = claims(f"{second.split('. ')[-1]} [2]", first, second)
    assert (claim["verdict"], claim["numbers"], claim["against"]["number"]) == ("supported", [2], 1)


@pytest.mark.parametrize(("first", "second"), AGREE.values(), ids=AGREE)
def test_what_speaks_of_something_else_is_no_disagreement(first, second):
    for answer, own in ((first, 1), (second, 2)):
        assert [one for one in claims(f"{answer} [{own}]", first, second) if "against" in one] == []


def test_two_places_of_one_source_are_not_compared():
    first, second, _ = DISAGREE["year"]
    (claim,) = claims(f"{first} [1]", first, second, sources=("a.txt", "a.txt"))
    assert "against" not in claim
