"""The one checker: what it says of a claim and of each mark, and that every mode, the stream and the evaluation agree."""

import gzip
import json
import re

import pytest
from haystack import Document
from haystack.dataclasses import ChatMessage
from hypothesis import given
from hypothesis import strategies as st

from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.claims import checker as checker_module
from shiguan.claims.answer_check import AnswerCheck
from shiguan.claims.checker import ClaimChecker
from shiguan.claims.citations import cite_claim
from shiguan.claims.claims import split_claims
from shiguan.evaluation.scoring import score_citations
from shiguan.grading.hallucination_grader import HallucinationGrader

EN = (
    "In the winter of 755 An Lushan rose in Fanyang. He had 150,000 men under him. Guo Ziyi did not join the rising. "
    "The court fled to Chengdu in the following summer. Grain prices in the capital rose fourfold."
)
SALT = "The Salt Commission was set up in 758. It sold salt to licensed merchants."
HORSES = "The rising was financed by horse traders."
ZH = "天寶十四載十一月，安祿山反於范陽，眾十五萬。郭子儀，華州鄭縣人也。玄宗幸蜀，次馬嵬驛。史思明不從其命。"
SIEGE = "至德二載冬，張巡守睢陽，城中糧盡。史思明不肯降。"
PASSAGES = {1: EN, 2: SALT, 3: ZH, 4: SIEGE, 5: HORSES}
YES, PART, NO, AGAINST = "supported", "partial", "unsupported", "contradicted"

# A claim with its marks, its verdict, and what the passage of each mark says to it. A claim without a mark that a
# passage supports is given that passage's.
TABLE = [
    # word for word
    ("In the winter of 755 An Lushan rose in Fanyang [1].", YES, {1: YES}),
    ("Guo Ziyi did not join the rising [1].", YES, {1: YES}),
    ("It sold salt to licensed merchants.", YES, {2: YES}),
    ("天寶十四載十一月，安祿山反於范陽，眾十五萬。[3]", YES, {3: YES}),
    ("郭子儀，華州鄭縣人也。", YES, {3: YES}),
    # in other words, another order, another script
    ("An Lushan rose in Fanyang in 755 [1].", YES, {1: YES}),
    ("He had a hundred and fifty thousand men under him [1].", YES, {1: YES}),
    ("Grain prices rose fourfold in the capital.", PART, {1: PART}),
    ("The court rode to Chengdu in the following summer [1].", PART, {1: PART}),
    ("天宝十四载十一月，安禄山反于范阳，众十五万。[3]", YES, {3: YES}),
    ("郭子仪是华州郑县人。[3]", YES, {3: YES}),
    ("史思明宁死不肯降。[4]", PART, {4: PART}),
    ("755年，安禄山反于范阳。[3]", YES, {3: YES}),
    # numbers
    ("He had 200,000 men under him [1].", AGAINST, {1: AGAINST}),
    ("The 12 horse traders financed the rising [5].", NO, {5: NO}),
    # dates
    ("An Lushan rose in Fanyang in 756 [1].", AGAINST, {1: AGAINST}),
    ("The Salt Commission was set up in 768 [2].", AGAINST, {2: AGAINST}),
    ("756年，安禄山反于范阳。[3]", AGAINST, {3: AGAINST}),
    ("天宝十三载十一月，安禄山反于范阳，众十五万。[3]", AGAINST, {3: AGAINST}),
    ("天宝十四载十二月，安禄山反于范阳。[3]", AGAINST, {3: AGAINST}),
    # seasons
    ("In the summer of 755 An Lushan rose in Fanyang [1].", AGAINST, {1: AGAINST}),
    ("An Lushan rose in Fanyang in the summer of 755 [1].", AGAINST, {1: AGAINST}),
    ("至德二载夏，张巡守睢阳，城中粮尽。[4]", AGAINST, {4: AGAINST}),
    # names
    ("Li Guangbi did not join the rising [1].", AGAINST, {1: AGAINST}),
    ("The court fled to Luoyang in the following summer [1].", AGAINST, {1: AGAINST}),
    ("李光弼，華州鄭縣人也。[3]", AGAINST, {3: AGAINST}),
    # negation
    ("Guo Ziyi joined the rising [1].", AGAINST, {1: AGAINST}),
    ("He did not have 150,000 men under him [1].", AGAINST, {1: AGAINST}),
    ("史思明从其命。[3]", AGAINST, {3: AGAINST}),
    ("史思明肯降。[4]", AGAINST, {4: AGAINST}),
    ("史思明不肯降。[4]", YES, {4: YES}),
    ("No, An Lushan rose in Fanyang in 755 [1].", YES, {1: YES}),
    # opposites
    ("Grain prices in the capital fell fourfold [1].", AGAINST, {1: AGAINST}),
    ("The court fled to Chengdu in the following winter [1].", AGAINST, {1: AGAINST}),
    # other matters
    ("Whales are mammals [1].", NO, {1: NO}),
    ("The price of tea fell in the far south.", NO, {}),
    ("鲸鱼是哺乳动物。[3]", NO, {3: NO}),
    ("李白醉酒后落水身亡，葬在采石矶。", NO, {}),
    # wrong marks: the claim is true, the mark is not
    ("The Salt Commission was set up in 758 [1].", YES, {1: NO}),
    ("In the winter of 755 An Lushan rose in Fanyang [2].", YES, {2: NO}),
    ("史思明不肯降。[3]", YES, {3: PART}),
    ("He had 150,000 men under him [1][2].", YES, {1: YES, 2: NO}),
]

# What is shown where it is not the marks that support the claim by themselves.
SHOWN = {
    "The Salt Commission was set up in 758 [1].": {2: YES},
    "Grain prices rose fourfold in the capital.": {1: PART},
    "The court rode to Chengdu in the following summer [1].": {1: PART},
    "史思明宁死不肯降。[4]": {4: PART},
    "In the winter of 755 An Lushan rose in Fanyang [2].": {1: YES},
    "史思明不肯降。[3]": {4: YES},
}


def documents(passages=None):
    return [Document(content=text, meta={"number": at}) for at, text in (passages or PASSAGES).items()]


def cited(answer, *, passages=None, **graded):
    """Cite an answer, graded by `HallucinationGrader` or not."""
    reply = ChatMessage.from_assistant(answer, meta=graded)
    (found,) = CitationExtractor().run([reply], documents(passages))["answers"]
    return found.meta


def graded(answer):
    return HallucinationGrader(on_unsupported="mark").run([ChatMessage.from_assistant(answer)], documents())["verdicts"]


def streamed(answer):
    stream = AnswerCheck(documents())
    for letter in answer:
        stream.add(letter)
    stream.close()
    return stream.finished()


@pytest.mark.parametrize(("text", "verdict", "marks"), TABLE)
def test_all_modes_agree_on_the_claim_and_on_each_mark(text, verdict, marks):
    checker = ClaimChecker(PASSAGES)
    assert [one.support.verdict for one in checker.check(split_claims(text))] == [verdict]
    verdicts, stream = graded(text), streamed(text)
    simple, precise = cited(text), cited(text, verdicts=verdicts)
    told = {"grader": verdicts, "simple": simple["claims"], "precise": precise["claims"], "stream": stream}
    for name, claims in told.items():
        assert [one["verdict"] for one in claims] == [verdict], name
    (claim,) = split_claims(text).claims
    relations = {number: checker.relation(claim.text, number).verdict for number in marks}
    assert relations == marks
    shown = SHOWN.get(text) or {number: one for number, one in marks.items() if one == YES}
    for name, found in (("simple", simple), ("stream", stream[0])):
        assert {one["number"]: one["verdict"] for one in found["citations"]} == shown, name
    # Where the grader names this passage, its verdict is about all of them.
    assert [one["number"] for one in precise["citations"]] == list(shown)
    assert score_citations(text, PASSAGES).recalled == bool(claim.numbers and YES in marks.values())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "An Lushan rose in Fanyang, and the rising was financed by horse traders [1][5].",
            "An Lushan rose in Fanyang [1], and the rising was financed by horse traders [5].",
        ),
        ("郭子仪是华州郑县人，史思明不肯降。[3][4]", "郭子仪是华州郑县人[3]，史思明不肯降。[4]"),
    ],
)
def test_clauses_that_different_passages_support_are_claims_of_their_own(text, shown):
    (found,) = CitationExtractor().run([ChatMessage.from_assistant(text)], documents())["answers"]
    assert found.data == shown
    assert [one["verdict"] for one in found.meta["claims"]] == [YES, YES]
    assert [one["numbers"] for one in streamed(text)] == [one["numbers"] for one in found.meta["claims"]]


@pytest.mark.parametrize(("text", "verdict", "marks"), TABLE[::3])
def test_a_verdict_does_not_depend_on_the_rest_of_the_answer(text, verdict, marks):
    answer = f"Whales sing in the sea at night. {text} The Salt Commission was set up in 758 [2]."
    found = cited(answer)
    assert found["claims"][1]["verdict"] == verdict
    checked = ClaimChecker(PASSAGES).check(split_claims(answer))
    assert [one.support.verdict for one in checked] == [one["verdict"] for one in found["claims"]]


def test_a_graders_verdict_counts_and_a_mark_of_another_passage_goes():
    verdict = {"text": "The commander turned upon the dynasty.", "verdict": YES, "score": 0.9}
    verdict |= {"reason": "a judge said so", "number": 1, "support": {"start": 0, "end": 47}}
    found = cited("The commander turned upon the dynasty [1][2].", verdicts=[verdict])
    assert [(one["verdict"], one["score"], one["reason"]) for one in found["claims"]] == [(YES, 0.9, "a judge said so")]
    assert [(one["number"], one["verdict"]) for one in found["citations"]] == [(1, YES)]
    assert [(one["kind"], one["was"], one["numbers"]) for one in found["changes"]] == [("dropped", [1, 2], [1])]
    assert found["citations"][0]["quote"] == "In the winter of 755 An Lushan rose in Fanyang."


def test_a_graded_claim_without_a_mark_gets_that_of_its_passage_and_a_refused_one_loses_its_own():
    for text, verdict, numbers in (
        ("The commander turned.", YES, [1]),
        ("The commander turned.", NO, []),
        ("He had 150,000 men under him [1].", NO, []),
    ):
        found = {
            "text": text.replace(" [1]", ""),
            "verdict": verdict,
            "score": 0.9,
            "reason": "",
            "number": 1,
            "support": None,
        }
        assert [one["number"] for one in cited(text, verdicts=[found])["citations"]] == numbers


def test_what_states_nothing_has_no_verdict_and_no_mark():
    answer = "It sold salt to licensed merchants [2].\n\nThe sources do not name his mother [1]."
    question = "Who bought the salt, and who was his mother?"
    (found,) = CitationExtractor().run([ChatMessage.from_assistant(answer)], documents(), question)["answers"]
    assert found.data == answer.replace(" [1]", "")
    assert [one["text"] for one in found.meta["claims"]] == ["It sold salt to licensed merchants [2]."]
    assert [one["number"] for one in found.meta["citations"]] == [2]


def test_a_claim_in_another_language_is_compared_by_its_numbers_names_and_words():
    def verdicts(text):
        return [one["verdict"] for one in cited(text, passages={1: EN})["claims"]]

    assert verdicts("安禄山于755年冬天在范阳起义。[1]") == [PART]
    assert verdicts("安禄山于759年冬天在范阳起义。[1]") == [NO]
    assert verdicts("史思明于755年冬天起义。[1]") == [NO]
    assert verdicts("总之，李白在755年烧毁了洛阳。[1]") == [NO]


# A sentence with what the passages say and what they do not: the clauses, with their verdicts and marks.
CLAUSES = [
    ("天宝十四载十一月，安禄山反于范阳，众二十万。[3]", [("天宝十四载十一月，安禄山反于范阳", YES, [3]), ("众二十万", NO, [])]),
    ("张巡守睢阳，至德二载夏，城中粮尽。[4]", [("张巡守睢阳", YES, [4]), ("至德二载夏，城中粮尽。", AGAINST, [])]),
    ("The Salt Commission was set up in 758; Li Bai drowned in the river [2].",
     [("The Salt Commission was set up in 758", YES, [2]), ("Li Bai drowned in the river", NO, [])]),
    ("It sold salt to licensed merchants — and to the moon people of Lisbon [2].",
     [("It sold salt to licensed merchants", YES, [2]), ("and to the moon people of Lisbon", NO, [])]),
    ("Here is what else I found: the governor murdered his wife in 1850. [1]",
     [("the governor murdered his wife in 1850.", NO, [])]),
    ("| Guo Ziyi did not join the rising | Li Bai drowned |",
     [("Guo Ziyi did not join the rising", YES, [1]), ("Li Bai drowned", NO, [])]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CLAUSES)
def test_each_clause_has_its_own_verdict_in_every_mode_and_in_the_stream(text, expected):
    def told(claims):
        return [(re.split(r" ?[⚠\[]", one["text"])[0], one["verdict"]) for one in claims]

    simple = cited(text)["claims"]
    assert told(simple) == [(clause.rstrip("。."), verdict) for clause, verdict, _ in expected]
    assert [one["numbers"] for one in simple] == [numbers for _, _, numbers in expected]
    assert [one["verdict"] for one in graded(text)] == [verdict for _, verdict, _ in expected]
    assert told(streamed(text)) == told(simple)


@pytest.mark.parametrize(
    "sentence",
    ["It is well known that kings are seasoned with oil of lamps.", "并由评审团自行决定特别奖的内容与名称。"],
)
def test_a_sentence_that_a_passage_has_with_its_opening_is_supported(sentence):
    assert [one["verdict"] for one in cited(sentence, passages={1: f"{sentence} {SALT}"})["claims"]] == [YES]


def test_the_span_is_the_whole_sentence_or_sentences():
    (citation,) = cited("Grain prices rose fourfold [1].")["citations"]
    assert citation["quote"] == "Grain prices in the capital rose fourfold."
    (citation,) = cited("An Lushan rose in Fanyang with 150,000 men [1].")["citations"]
    assert citation["quote"] == EN[: EN.index(" Guo")]


@given(st.text(), st.text() | st.text(alphabet="ab cd.。史安祿山十一23 不not"))
def test_any_claim_and_passage_give_a_valid_span(claim, passage):
    found = ClaimChecker({1: passage}).relation(claim, 1)
    assert 0 <= found.start <= found.end <= len(passage)
    assert 0.0 <= found.score <= 1.0
    assert 0.0 <= found.similarity <= 1.0 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_untouched_evidence_is_supported_and_a_changed_number_is_not(public_data, language):
    with gzip.open(public_data / "evidence_expmrc" / f"{language}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]

    def is_supported(claim, source):
        return all(one.support.verdict == YES for one in ClaimChecker({1: source}).check(split_claims(claim)))

    alarms = [not is_supported(row["evidences"][0]["text"], row["source"]) for row in rows]
    assert sum(alarms) <= 0.05 * len(rows)
    changed = []
    for row in rows:
        claim = row["evidences"][0]["text"]
        digits = [at for at, character in enumerate(claim) if character in "12345678"]
        for at in digits[:1]:
            other = claim[:at] + str(int(claim[at]) + 1) + claim[at + 1 :]
            changed.append(not is_supported(other, row["source"]))
    assert len(changed) > 50
    assert sum(changed) >= 0.95 * len(changed)


@pytest.mark.parametrize("date", ["16 Dec 755", "Dec 16, 755", "16 December 755", "December 16, 755"])
@pytest.mark.parametrize("stored", ["16 Dec 755", "16 December 755"])
def test_a_month_in_short_is_the_same_month(date, stored):
    checker = ClaimChecker({1: f"He rose at Fanyang on {stored}."})
    assert checker.relation(f"He rose at Fanyang on {date}.", 1).verdict == "supported"
    other = date.replace("December", "November").replace("Dec", "Nov")
    assert checker.relation(f"He rose at Fanyang on {other}.", 1).verdict in ("contradicted", "unsupported")


def test_a_word_in_emphasis_that_labels_a_sentence_is_part_of_it():
    checker = ClaimChecker({1: "Yin Ziqi came against them with 130,000 men. They held the town."})
    answer = "*Enemy:* Yin Ziqi came against them with 130,000 men. **Fate**: They held the town."
    assert [claim.text for claim in checker.split(answer).claims] == answer.replace(". ", ".\0").split("\0")


def test_a_gap_that_a_passage_has_is_a_quotation():
    parts = split_claims("The sources do not say so.")
    assert ClaimChecker(PASSAGES).says_nothing(parts)
    assert not ClaimChecker({1: "He asked. The sources do not say so. He left."}).says_nothing(parts)


def test_a_gap_that_a_passage_admits_in_other_words_is_a_statement_about_it():
    checker = ClaimChecker({1: "这种鹦鹉来自群岛，可能属于单属种的鹦鹉的分类仍然不明。"})
    assert [c.support.verdict for c in checker.check(checker.split("属于单属种的鹦鹉的分类仍然不明。"))] == ["partial"]


def test_a_claim_is_no_better_than_the_passage_that_it_cites():
    (claim,) = split_claims("Horse traders financed the rising when grain prices rose [5].").claims
    checker = ClaimChecker(PASSAGES)
    cited = cite_claim(claim, checker, {number: Document(content=text) for number, text in PASSAGES.items()})
    ((_, own),) = cited.found
    assert cited.support.score == own.score < checker.verdict(claim, checker.stated(claim)).score


def test_a_sentence_that_never_ends_is_not_looked_for():
    long = "He had 150,000 men under him and " * 61
    passages = {1: f"{long}he won.", 2: f"{long[:1900]}he won."}
    checked = [ClaimChecker(passages).check(split_claims(f"{text}he won.")) for text in (long, long[:1900])]
    assert [found.support.verdict for (found,) in checked] == [NO, YES]


def test_of_an_endless_answer_the_last_sentences_stay_whole(monkeypatch):
    monkeypatch.setattr(checker_module, "_MOST_CLAUSES", 5)
    sentences = [f"他在范陽第{at}次起兵，郭子儀不從他的命令，史思明第{at}次不肯降。" for at in range(4)]
    claims = ClaimChecker(PASSAGES).split("".join(sentences)).claims
    whole = [claim.text for claim in claims if claim.text in sentences]
    assert whole == sentences[2:]


@pytest.mark.parametrize(
    ("claim", "passage", "verdict", "reason"),
    [
        ("Otto Hale fled to Rome.", "Only Otto Hale fled to Rome.", PART, "“Only” before it"),
        ("英国签署了这份协议。", "只有英国签署了这份协议。", PART, "“只有” before it"),
        ("Soldiers ever reached the town.", "No soldiers ever reached the town.", AGAINST, "only one of the two"),
        ("攻下了整座都城。", "他几乎攻下了整座都城。", AGAINST, "only one of the two"),
    ],
)
def test_what_is_so_of_one_alone_is_no_denial_of_it_and_what_is_denied_is(claim, passage, verdict, reason):
    (checked,) = ClaimChecker({1: passage}).check(split_claims(claim))
    assert checked.support.verdict == verdict
    assert reason in checked.support.reason
