"""Questions to a bilingual library, without a model, whose closest passages are in the other language."""

import pytest
from tests.doubles.small_library import TENANT

from shiguan.engine.runner import Runner
from shiguan.text.languages import detect_language

DOUBT = {"en": "No passage clearly answers this question.", "zh": "没有哪一段确实回答了这个问题。"}


@pytest.fixture(scope="module")
def simple(sample_book):
    with Runner("embedded", "simple", data_dir=sample_book) as runner:
        yield runner


@pytest.mark.parametrize(
    ("question", "answered"),
    [
        ("Who invented the telephone?", False),
        ("谁发明了电话？", False),
        ("Who won the battle of Hastings?", False),
        ("How many strings of cash did the rich merchants of Chang'an lend?", True),
        ("盐的专卖是哪一年由谁创立的？", True),
        ("李愬雪夜入蔡州时带了多少人？", True),
    ],
)
def test_what_answers_nothing_is_not_an_answer_in_the_other_language(simple, question, answered):
    told = simple.ask(question, tenant_id=TENANT)
    language = detect_language(question)
    assert {detect_language(source["content"]) for source in told["sources"][:1]} == {"zh", "en"} - {language}
    assert told["status"] == ("quoted" if answered else "closest")
    assert told["answer"].startswith(DOUBT[language]) is not answered
