"""What two quotations say differently, and what only looks so."""

import pytest
from bench.quality.disagreements import HALVES, Maker
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
]


@pytest.mark.parametrize(("kind", "one", "other", "mine", "theirs"), DIFFER)
def test_what_differs_is_found_with_its_places(kind, one, other, mine, theirs):
    texts = (f"It rained. {one}", other)
    found = disagreements(texts)
    assert [(each.kind, each.values) for each in found] == [(kind, (mine, theirs))]
    for account, value in zip(found[0].accounts, (mine, theirs), strict=True):
        text = texts[account.quotation]
        assert text[slice(*account.value)] == value
        assert account.sentence[0] <= account.value[0] < account.value[1] <= account.sentence[1]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_only_looks_different_is_not_found(one, other):
    assert disagreements((one, other)) == []


def test_the_order_of_the_quotations_does_not_matter():
    for kind, one, other, mine, theirs in DIFFER:
        assert [(each.kind, each.values) for each in disagreements((other, one))] == [(kind, (theirs, mine))]


def test_entries_about_different_things_are_not_compared():
    texts = (
        "The Millford line. It has 8 stations between Astrey and Thornby.",
        "The Wenlow line. It has 12 stations between Astrey and Thornby.",
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


def test_a_quotation_that_repeats_another_but_for_a_date_is_shown():
    one = "The old mill at Thornby was built in 1712 by Hugh Tarrant, who had come from Wenlow with his three sons."
    for other, quoted in ((one.replace("1712", "1718"), 2), (one, 1)):
        documents = passages(one, other)
        answer = CitationExtractor().run(
            replies=[], documents=documents, query="When was the old mill at Thornby built?"
        )["answers"][0]
        assert (len(answer.meta["citations"]), len(answer.meta["disagreements"])) == (quoted, quoted - 1)
