import pytest

from shiguan.query.language_router import LanguageRouter


def test_a_question_in_a_known_language_goes_to_the_embedder():
    assert LanguageRouter(languages=["en"]).run(query="Who was Guo Ziyi?") == {
        "language": "en",
        "text": "Who was Guo Ziyi?",
        "warnings": [],
    }


def test_a_question_in_another_language_does_not_and_the_answer_says_so():
    result = LanguageRouter(languages=["en"]).run(query="安祿山何時起兵？")
    assert result == {
        "language": "zh",
        "warnings": ["The embedder knows en, the question is in zh: passages were found by their words (BM25) alone."],
    }


def test_an_embedder_without_stated_languages_gets_every_question():
    result = LanguageRouter().run(query="安祿山何時起兵？")
    assert (result["language"], result["text"], result["warnings"]) == ("zh", "安祿山何時起兵？", [])


def test_an_empty_list_of_languages_is_refused():
    with pytest.raises(ValueError, match="`languages` must name at least one language"):
        LanguageRouter(languages=[])


def test_the_language_asked_for_does_not_change_what_the_embedder_gets():
    router = LanguageRouter(languages=["en"])
    assert router.run(query="Who was Guo Ziyi?", language="zh") == {
        "language": "zh",
        "text": "Who was Guo Ziyi?",
        "warnings": [],
    }
    asked = router.run(query="誰是郭子儀？", language="en")
    assert asked["language"] == "en"
    assert "text" not in asked
