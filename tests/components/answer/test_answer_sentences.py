import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.answer.answer_sentences import FEATURES, WEIGHTS, answerability, candidates
from shiguan.llm.source_blocks import SourceBlock
from shiguan.text.han import fold_han

NOTED = "Guo Ziyi crossed the river[Note: The river is the Wei. See the Annals.] with ten horsemen. He returned."


def best(question, *texts):
    return max(candidates(question, [SourceBlock(at, text) for at, text in enumerate(texts, 1)]), key=lambda c: c.score)


def test_each_weight_has_its_feature():
    assert len(FEATURES) == len(WEIGHTS)
    assert all(len(found.features) == len(FEATURES) for found in candidates("Who crossed?", [SourceBlock(1, NOTED)]))


def test_a_note_is_left_out_of_its_sentence_and_read_by_itself():
    found = [candidate.text for candidate in candidates("Who crossed the river?", [SourceBlock(1, NOTED)])]
    assert found == [
        "Guo Ziyi crossed the river with ten horsemen.",
        "He returned.",
        "The river is the Wei.",
        "See the Annals.",
    ]


def test_offsets_are_those_of_the_source():
    for candidate in candidates("Which river?", [SourceBlock(1, NOTED)]):
        assert NOTED[candidate.start : candidate.end].startswith(candidate.text[:10])


def test_a_sentence_that_introduces_wins_over_one_that_mentions():
    mentions = "Queequeg and the captain and Queequeg's friend slept."
    assert best("Who is Queequeg?", mentions, "The crew sang. Queequeg was a native of Rokovoko.").text.startswith(
        "Queequeg was"
    )
    assert (
        best("郭子仪是谁？", "上召郭子儀還朝，郭子儀辭。", "是歲大旱。郭子儀，華州鄭縣人。").text
        == "郭子儀，華州鄭縣人。"
    )


@pytest.mark.parametrize(
    ("question", "text"),
    [("Who invented the telephone?", "They invented a new lance."), ("谁发明了蒸汽机？", "王叔發明舊義。")],
)
def test_half_of_a_short_question_is_not_enough(question, text):
    sources = [SourceBlock(1, text)]
    assert answerability(question, sources, candidates(question, sources)[0]) == -math.inf


def test_a_name_that_no_source_has_costs():
    sources = [SourceBlock(1, "The governor of the western province sold all the salt to merchants in spring.")]
    with_name, without = (
        "When was salt of the province sold to merchants by Liu Yan?",
        "When was salt of the province sold to merchants?",
    )
    first, second = (
        answerability(question, sources, candidates(question, sources)[0]) for question in (with_name, without)
    )
    assert first < second - 2


def test_folding_keeps_the_length():
    assert fold_han("安祿山 rose 於范陽。") == "安禄山 rose 于范阳。"


@given(st.text(), st.text() | st.text(alphabet="[Note脚注：: ]ab。. "))
def test_any_question_and_text_give_valid_candidates(question, text):
    for candidate in candidates(question, [SourceBlock(1, text)]):
        assert 0 <= candidate.start < candidate.end <= len(text)
        assert math.isfinite(candidate.score)
        assert 0 <= candidate.together <= 1 + 1e-9
