"""Which sentences of an answer need a source, and which answers only say that there is none."""

import re
from pathlib import Path

import pytest

from shiguan.claims.checker import ClaimChecker
from shiguan.claims.claim_kinds import claim_kind, is_not_found, stated_part
from shiguan.llm.prompts import not_found_sentence
from shiguan.resources import read_table


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("An Lushan rose in 755.", "statement"),
        ("The emperor could not decide.", "statement"),
        ("皇帝无法判断此事的真伪。", "statement"),
        ("安禄山没有回京。", "statement"),
        ("He had no information about the enemy's plans.", "statement"),
        ("I do not have that information.", "silence"),
        ("The sources do not say when he was born.", "silence"),
        ("There is no mention of a third son in the sources.", "silence"),
        ("资料没有提及他的母亲。", "silence"),
        ("無法確定其生年。", "silence"),
        ("抱歉，我不知道。", "silence"),
        ("Would you like to know more?", "question"),
        ("还想了解什么？", "question"),
        ("Feel free to ask further questions.", "talk"),
        ("It is best to consult a lawyer.", "talk"),
        ("以下是主要原因。", "talk"),
    ],
)
def test_each_sentence_has_its_kind(sentence, kind):
    assert claim_kind(sentence) == kind


@pytest.mark.parametrize(
    ("sentence", "stated"),
    [
        ("An Lushan rose in 755.", ["An Lushan rose in 755."]),
        ("The sources do not say when he was born.", []),
        ("The sources do not name the day, but An Lushan flew to Mars.", ["An Lushan flew to Mars."]),
        ("资料没有提及日期，但安禄山飞往月球。", ["安禄山飞往月球。"]),
        ("The rates vary from year to year, so it is best to consult a lawyer.", ["The rates vary from year to year"]),
    ],
)
def test_only_the_clause_that_admits_a_gap_needs_no_source(sentence, stated):
    checker = ClaimChecker({}, question="When was he born, and should I ask a lawyer?")
    found = [checker.stated(claim) for claim in checker.split(sentence).claims]
    assert [one for one in found if one] == stated


@pytest.mark.parametrize(
    ("sentence", "stated"),
    [
        ("In short, he rose in 755.", "he rose in 755."),
        ("According to the sources, he rose in 755.", "he rose in 755."),
        ("The passage says that he rose in 755.", "he rose in 755."),
        ("He rose in 755, as the source says.", "He rose in 755."),
        ("总之，他在755年起兵。", "他在755年起兵。"),
        ("资料指出，他在755年起兵。", "他在755年起兵。"),
        ("Overall the harvest was poor.", "the harvest was poor."),
    ],
)
def test_what_stands_before_or_behind_a_statement_is_left_out(sentence, stated):
    assert stated_part(sentence).rstrip(".。") == stated.rstrip(".。")


@pytest.mark.parametrize("mode", ["simple", "advanced", "precise"])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("frame", ["{}", "“{}”", "**{}**", "{} [1]", "{}[1][2]", "【1】{}", "  {}\n", "{}!!", "> {}"])
def test_the_sentence_is_recognised_however_it_is_wrapped(mode, language, frame):
    assert is_not_found(frame.format(not_found_sentence(mode, language)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "The sources answer this question.",
        "安祿山反。",
        "The sources do not answer this question, but he rose in 755.",
    ],
)
def test_other_texts_are_answers(text):
    assert not is_not_found(text)


def test_traditional_characters_make_no_difference():
    assert is_not_found("所給資料中沒有這個問題的答案。")


@pytest.fixture(scope="module")
def refusals():
    return read_table(Path(__file__).parents[2] / "data/refusals.yml")


@pytest.mark.parametrize(("part", "least"), [("seen", 1.0), ("unseen", 0.97)])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_refusals_are_recognised_in_a_models_own_words(refusals, part, least, language):
    replies = refusals["refusals"][part][language]
    missed = [reply for reply in replies if not is_not_found(reply)]
    assert len(missed) <= (1 - least) * len(replies), missed


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("marks", ["with marks", "without"])
def test_answers_in_the_words_of_a_refusal_stay_answers(refusals, language, marks):
    answers = refusals["answers"][language]
    if marks == "without":
        answers = [re.sub(r" ?\[\d\]", "", answer) for answer in answers]
    assert [answer for answer in answers if is_not_found(answer)] == []


@pytest.mark.parametrize(
    "reply",
    [
        "The passages discuss the siege [1] but do not mention the horses.",
        "The sources do not state his age. He was born in 703.",
        "资料没有写他的籍贯。他的家族来自柳城。",
    ],
)
def test_what_is_cited_or_stated_beside_a_gap_is_an_answer(reply):
    assert not is_not_found(reply)
