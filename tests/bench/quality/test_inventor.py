"""The scripted readers: what they say, how it is counted, and that the check of an answer holds their bars."""

from collections import Counter
from dataclasses import replace

import pytest
from bench.quality.inventor import Tally, careless, facts_of, falls, inventions, outcome, read_script, table
from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.answer.citation_extractor import CitationExtractor

SCRIPT = read_script()


def documents():
    facts = [fact for language in ("en", "zh") for fact in facts_of(SCRIPT, language)]
    return [
        Document(content=f"{fact.sentence}\n\n{fact.gold}", meta={"number": number})
        for number, fact in enumerate(facts, start=1)
    ]


def answered(case, shown):
    number = next(one.meta["number"] for one in shown if case.fact.gold in one.content)
    reply = ChatMessage.from_assistant(case.reply(number))
    return outcome(case, CitationExtractor().run([reply], shown, case.fact.question)["answers"][0])


def test_there_are_hundreds_of_disguises_in_both_languages():
    replies = {case.reply(1) for case in inventions(SCRIPT)}
    assert len(replies) >= 300
    assert set(Counter(case.fact.language for case in inventions(SCRIPT))) == {"en", "zh"}


@pytest.mark.slow
def test_the_check_of_an_answer_holds_the_bars():
    tally, shown = Tally("simple"), documents()
    tally.invented = [answered(case, shown) for case in inventions(SCRIPT)[::5]]
    tally.careless = [answered(case, shown) for case in careless(SCRIPT)[::5]]
    assert "missed" not in table([tally])


def test_what_is_shown_without_a_sign_is_counted():
    case, shown = inventions(SCRIPT)[0], documents()
    answer = CitationExtractor().run([ChatMessage.from_assistant(case.reply(1))], shown, case.fact.question)["answers"][
        0
    ]
    assert not outcome(case, answer).shown
    unsigned = answer.data.replace(" ⚠", "").replace("⚠", "")
    found = outcome(case, replace(answer, data=unsigned, meta={**answer.meta, "claims": []}))
    assert (found.shown, found.kept) == (True, False)
    tally = Tally("precise", invented=[found])
    assert {row[0]: row[1] for row in tally.rows()}["inventions shown"] == 1.0
    assert "(missed)" in table([tally])


def test_a_claim_stands_where_another_passage_says_it_too():
    fact = facts_of(SCRIPT, "en")[0]
    claim = {"text": f"{fact.sentence} [1].", "numbers": [1]}
    passage = Document(content=fact.sentence, meta={"number": 1})
    other = Document(content="The town has a market and two wells.", meta={"number": 2})
    assert falls(claim, [passage, other], fact)

    assert not falls({"text": "The town had a market and two wells [1].", "numbers": [1]}, [passage, other], fact)
