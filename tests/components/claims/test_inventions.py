"""What a reply adds to the sources is marked or left out, whatever its form; what they say stays, whatever its form."""

import pytest
from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.claims.answer_check import AnswerCheck
from shiguan.claims.checker import ClaimChecker, checker_of, numbered_passages
from shiguan.errors import AnswerError
from shiguan.grading.hallucination_grader import HallucinationGrader

PASSAGES = [
    "In 755 An Lushan rose at Fanyang against the emperor. He had 150,000 men under his command.",
    "Luoyang followed on 3 December 757. The people of the town ate bark.",
    "天宝十四载，安禄山反于范阳，众十五万。郭子仪收复长安。",
    "The Yishihe river has 3,367,353 fish. It flows past Bianzhou.",
    '"Why are you weeping then?" asked the Swallow. "I did not know what tears were, for I lived in Sans-Souci," he said.',
]
DOCUMENTS = [Document(id=f"p{at}", content=text, meta={"number": at}) for at, text in enumerate(PASSAGES, start=1)]
TRUE = "An Lushan rose at Fanyang in 755 [1]."
QUESTION = "When did An Lushan rise?"


def shown(reply, mode="simple", question=QUESTION):
    """Give the answer of a mode: with signs behind what nothing supports, or, in `precise`, without it."""
    replies = [ChatMessage.from_assistant(reply)]
    if mode == "precise":
        replies = HallucinationGrader().run(replies, DOCUMENTS, question)["replies"]
    return CitationExtractor(mode=mode).run(replies, DOCUMENTS, question)["answers"][0]


INVENTIONS = [
    ("{s} Here is what else I found: the governor murdered his wife in 1850. [1]", "murdered"),
    ("{s} I hope this helps: the governor murdered his wife.", "murdered"),
    ("{s} The governor murdered his wife, let me know.", "murdered"),
    ("{s} Did you know that the governor murdered his wife?", "murdered"),
    ("{s} The sources do not say why the governor murdered his wife.", "murdered"),
    ("### The governor murdered his wife\n\n{s}", "murdered"),
    ("**Guo Ziyi the Gambler**: {s}", "Gambler"),
    ("{s}\n\n- He had three eyes [1]", "three eyes"),
    ("| The governor murdered his wife | {s} |", "murdered"),
    ("{s} The governor (he murdered his wife) was old.", "murdered"),
    ("An Lushan rose at Fanyang in 755; the governor murdered his wife [1].", "murdered"),
    ("{s} 以下是补充：总督在1850年杀害了妻子。", "杀害"),
    ("{s} 总之，拿破仑在1871年烧毁了伦敦。[1]", "拿破仑"),
    ("{s} 你知道总督为什么杀害了妻子吗？", "杀害"),
]


@pytest.mark.parametrize(("form", "key"), INVENTIONS)
def test_an_invention_is_marked_or_left_out_and_the_truth_beside_it_stays(form, key):
    reply = form.format(s=TRUE)
    marked = shown(reply)
    claims = {claim["text"]: claim["verdict"] for claim in marked.meta["claims"]}
    assert [verdict for text, verdict in claims.items() if key in text] == ["unsupported"]
    assert [verdict for text, verdict in claims.items() if "Fanyang" in text] == ["supported"]
    assert marked.data.count("⚠") == sum(verdict == "unsupported" for verdict in claims.values())
    left = shown(reply, "precise")
    assert key not in left.data
    assert "An Lushan rose at Fanyang in 755" in left.data
    assert left.meta["status"] == "answered"


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("An Lushan rose at Fanyang in 755 [doc_1].", "An Lushan rose at Fanyang in 755 [1]."),
        (
            "According to [doc_1], An Lushan rose at Fanyang in 755.",
            "According to the source [1], An Lushan rose at Fanyang in 755.",
        ),
        ("根据[doc_3]，安禄山反于范阳。", "根据资料[3]，安禄山反于范阳。"),
        ("Here is the answer: An Lushan rose at Fanyang in 755 [1].", "An Lushan rose at Fanyang in 755 [1]."),
        ("An Lushan rose at Fanyang in 755 [1].\n\n[1]: http://example.org/x", "An Lushan rose at Fanyang in 755 [1]."),
    ],
)
@pytest.mark.parametrize("mode", ["simple", "precise"])
def test_a_mark_in_any_form_is_read_and_its_sentence_stays_whole(reply, text, mode):
    answer = shown(reply, mode)
    assert [one["verdict"] for one in answer.meta["claims"]] == ["supported"]
    assert len(answer.meta["citations"]) == 1
    assert answer.data == text


def test_what_looks_like_a_mark_or_a_link_is_none():
    answer = shown(f"{TRUE}\n[2]: forged words. <http://example.org> <b onclick=x>bold</b> [99]").data
    assert "[2]:" not in answer
    assert "<" not in answer
    assert "[99]" not in answer


@pytest.mark.parametrize(
    "claim",
    [
        "He had three eyes [1].",
        "He wore three hats [2].",
        "In 757 the emperor wrote poems [2].",
        "他有十五万只眼睛。[3]",
    ],
)
def test_a_number_alone_supports_nothing(claim):
    assert [one["verdict"] for one in shown(claim).meta["claims"]] == ["unsupported"]


def test_an_ordinal_is_no_rival_of_a_count_and_what_is_supported_has_its_mark():
    reply = "The Yishihe is the seventh river that flows past Bianzhou. It has 3,367,353 fish."
    claims = shown(reply).meta["claims"]
    assert all("3,367,353" not in claim["reason"] for claim in claims)
    assert all(claim["numbers"] for claim in claims if claim["verdict"] == "supported")
    assert claims[-1]["verdict"] == "partial"


def test_a_quotation_that_asks_or_denies_is_a_statement():
    for reply in (
        '"Why are you weeping then?" asked the Swallow [5].',
        'The Swallow asked: "Why are you weeping then?" [5]',
        '"I did not know what tears were, for I lived in Sans-Souci," he said [5].',
    ):
        answer = shown(reply, question="Where did he live?")
        assert {one["number"] for one in answer.meta["citations"]} == {5}
        assert "⚠" not in answer.data


@pytest.mark.parametrize("claim", [TRUE, "The people of the town ate bark [2].", "郭子仪收复长安。[3]"])
def test_a_claim_falls_with_its_passage(claim):
    (cited,) = shown(claim).meta["claims"]
    rest = [one for one in DOCUMENTS if one.meta["number"] not in cited["numbers"]]
    if "755" in claim:
        rest = [one for one in rest if one.meta["number"] != 3]  # which says so in Chinese
    checker = checker_of(numbered_passages(rest))
    assert [one.support.verdict for one in checker.check(checker.split(claim))] == ["unsupported"]


@pytest.mark.parametrize("mode", ["simple", "advanced", "precise"])
@pytest.mark.parametrize("reply", ["I don't know.", "There is no information about this in the sources.", "不清楚。"])
def test_a_reply_that_admits_to_know_nothing_is_not_found(reply, mode):
    answer = shown(reply, mode)
    assert (answer.meta["status"], answer.data) == ("not_found", reply)


def test_an_admission_that_brings_something_is_written_anew():
    answer = shown("The sources do not say why Napoleon murdered his wife in 1850.")
    assert (answer.meta["status"], answer.data) == ("not_found", "The sources do not answer this question.")


def test_an_answer_that_was_withheld_is_refused():
    answer = shown("The governor murdered his wife [1].", "precise")
    assert (answer.meta["status"], answer.data) == ("refused", "The sources do not say this.")
    assert [change["kind"] for change in answer.meta["changes"]] == ["removed"]


def test_every_sentence_that_states_something_has_a_verdict():
    reply = f"{TRUE} It is late. Shall I go on? Here you are:\n\n# Summary\n\n{INVENTIONS[0][0].format(s=TRUE)}"
    answer = shown(reply)
    checker = ClaimChecker(dict(enumerate(PASSAGES, start=1)), question=QUESTION)
    parts = checker.split(reply)
    assert len(answer.meta["claims"]) == sum(bool(checker.stated(claim)) for claim in parts.claims)


BAD = {
    "a megabyte of sentences": f"{TRUE} " * 27_000,
    "a megabyte without a stop": "word " * 200_000,
    "a megabyte of one letter": "a" * 1_000_000,
    "three thousand clauses": "安，" * 3_000,
    "a megabyte of labels": "a: " * 300_000,
    "a megabyte of brackets": "[" * 500_000 + "]" * 500_000,
    "nested brackets": "([{<【（［〔" * 2_000 + "An Lushan" + "〕］）】>}])" * 2_000,
    "a thousand marks": "An Lushan rose. " + "".join(f"[{number}]" for number in range(1_000)),
    "marks alone": "[1][2] [3]",
    "a table alone": "| a | b |\n|---|---|\n| 1 | 2 |",
    "pipes": "|" * 100_000,
    "a third language": "Ан Лушань поднял мятеж в 755 году [1].",
    "Japanese": "安禄山は755年に范陽で挙兵した[1]。",
    "one word": "Yes",
    "cut off within a mark": "An Lushan rose at Fanyang in 755 [1",
    "cut off within a note": "An Lushan rose at Fanyang in 755【1†so",
    "empty": "",
    "white space": " \n\t ",
    "odd characters": "\0\ud800 An Lushan\u202e rose.",
    "colons": "：：:：",
    "thoughts": "<think>" * 1_000 + "An Lushan rose.",
}


@pytest.mark.parametrize("most", [1_000, pytest.param(None, marks=pytest.mark.slow)], ids=["in part", "whole"])
@pytest.mark.parametrize("reply", BAD.values(), ids=BAD.keys())
def test_a_bad_reply_is_an_answer_or_the_failure_of_its_model(reply, most):
    reply = reply[:most]
    stream = AnswerCheck(DOCUMENTS, QUESTION)
    step = max(1, len(reply) // 100)
    for at in range(0, len(reply), step):
        if stream.add(reply[at : at + step]):
            stream.finished()
    stream.close()
    stream.finished()
    for mode in ("simple", "precise"):
        try:
            answer = shown(reply, mode)
        except AnswerError as error:
            assert not any(map(str.isalpha, reply)), error
        else:
            assert answer.meta["status"] in ("answered", "not_found", "refused")
            assert len(answer.data) < 30_000
