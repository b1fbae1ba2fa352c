"""Questions to learn from: a window that holds the answer answers, another window of the passage does not."""

from random import Random

import pytest
from bench.judge.changes import ANSWERED, NOT_ANSWERED, other_word
from bench.judge.questions import asked, who
from bench.judge.retellings import questions_of
from bench.judge.sets import Question
from bench.judge.synonyms import synonyms_en, synonyms_zh

PASSAGE = "Zhang Xun held Suiyang. The siege lasted ten months. Xu Yuan was the prefect. The town had no grain."
ANSWERS = {
    "Who held Suiyang?": "Zhang Xun",
    "How long did the siege last?": "ten months",
    "Who was the prefect?": "Xu Yuan",
}


def _questions():
    for text, answer in ANSWERS.items():
        start = PASSAGE.index(answer)
        yield Question("nq", text, PASSAGE, start, start + len(answer))
    yield Question("nq", "Who built the walls?", PASSAGE, 0, 0)


def test_a_question_is_answered_by_a_window_exactly_if_the_window_has_its_answer():
    found = [(claim, example.passage) for example in asked(_questions()) for claim in example.claims]
    assert {claim.label for claim, _ in found} == {ANSWERED, NOT_ANSWERED}
    for claim, window in found:
        assert window in PASSAGE
        assert (claim.label == ANSWERED) == (ANSWERS.get(claim.text, "nowhere") in window)


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        ("张巡派南霁云去临淮求救，贺兰进明不答应。", "谁派南霁云去临淮求救？"),
        ("天下大乱。", None),
        ("张巡的部下很多。", None),
    ],
)
def test_who_does_what_a_sentence_begins_with_is_asked_for_where_it_begins_with_a_person(sentence, question):
    assert who(sentence, ["南霁云", "张巡"]) == question


def test_a_clause_is_asked_about_with_its_persons_and_with_strangers():
    text = "太宗以李靖为行军总管。"
    (asked_for, strange), *_ = questions_of(text, text, ["李靖", "太宗", "房玄龄"], Random(1))
    assert "谁任命李靖为行军总管？" in asked_for
    assert all("房玄龄" in question for question in strange)


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("The captain took his hat from the table.", "The captain took his hat from the table near the window."),
        ("他把文献交给图书馆。", "他把文献交给图书馆，然后去了医院。"),
    ],
)
def test_another_word_of_the_passage_takes_the_place_of_one_and_is_marked(sentence, passage):
    changed = other_word(sentence, passage, passage, Random(3))
    ((start, end),) = changed.wrong
    ((was, stop),) = changed.was
    assert changed.text[:start] == sentence[:was]
    assert changed.text[end:] == sentence[stop:]
    assert changed.text[start:end] in passage
    assert changed.text[start:end] not in sentence


def test_words_of_like_meaning_are_found_both_ways():
    assert "fierce" in synonyms_en()["ferocious"]
    assert "地震" in synonyms_zh()["地動"] or "地震" in synonyms_zh().get("地动", ())
    for table in (synonyms_en(), synonyms_zh()):
        assert all(word in table[other] for word, others in list(table.items())[:500] for other in others)
