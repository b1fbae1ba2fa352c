import pytest

from shiguan.claims.claim_kinds import is_not_found
from shiguan.llm.prompts import not_found_sentence


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
