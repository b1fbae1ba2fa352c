"""Hostile passages through the whole chain: none changes roles, numbering or the citation map."""

from functools import cache
from pathlib import Path

import pytest
import yaml
from haystack import Document
from tests.doubles.prompt_reading import parse_question, parse_sources

from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.answer.prompt_file_builder import PromptFileBuilder
from shiguan.claims.claims import find_marks
from shiguan.context.context_builder import ContextBuilder

ATTACKS = yaml.safe_load((Path(__file__).parents[2] / "data" / "adversarial_passages.yml").read_text(encoding="utf-8"))
ATTACKS["very_long_line"] *= 40
MODES = ("simple", "advanced", "precise")
QUERY = "In what year did Guo Ziyi take Chang'an back?"
FIRST = "In 757 Guo Ziyi took Chang'an back from the rebels with the help of the Uighurs."
LAST = "The salt tax was raised in the following spring by the commissioner Liu Yan."
PLAIN = "The grain boats came up the canal in the ninth month."


def documents(attack, place):
    """Three passages, the hostile one at the given place, and its text in its title, file and headings as well."""
    texts = [FIRST, LAST]
    texts.insert(place, attack)
    metas = [{"source": "tang.epub"} for _ in texts]
    metas[place] = {"source": attack, "title": attack + ".", "section": [attack, attack], "anchor": {"href": attack}}
    return [
        Document(id=f"p{at}", content=text, score=1 - at / 10, meta=meta)
        for at, (text, meta) in enumerate(zip(texts, metas, strict=True))
    ]


@cache
def context_builder(strategy):
    return ContextBuilder(6000, strategy=strategy)


@cache
def prompt_builder(mode):
    return PromptFileBuilder(prompt=mode)


def chain(mode, attack, *, place=0, strategy="truncate", **options):
    built = context_builder(strategy).run(documents(attack, place), query=QUERY)
    values = {"context": built["context"], "query": QUERY, "language": "en"}
    if mode != "simple":
        values["goal"] = options.get("goal", "")
    if mode == "precise":
        values["feedback"] = options.get("feedback", "")
    return built, prompt_builder(mode).run(**values)["prompt"]


def skeleton(messages):
    """A prompt's lines without what the sources say: where they start and end, and all that stands around them."""
    lines, inside = [], False
    for message in messages:
        lines.append(f"role {message.role.value}")
        for line in message.text.split("\n"):
            if line in ("<sources>", "</sources>"):
                inside = line == "<sources>"
                lines.append(line)
            elif not inside:
                lines.append(line)
    return lines


def by_turns(attack):
    """Every mode with one place of the hostile passage: over the attacks, all modes with all places."""
    turn = list(ATTACKS.values()).index(attack)
    return [(mode, (turn + at) % 3) for at, mode in enumerate(MODES)]


@pytest.mark.parametrize("strategy", ["truncate", "hierarchical"])
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_the_prompt_around_the_sources_stays_the_same(attack, strategy):
    for mode, place in by_turns(attack):
        built, messages = chain(mode, attack, place=place, strategy=strategy)
        assert skeleton(messages) == skeleton(chain(mode, PLAIN)[1])
        user = messages[-1].text
        blocks = parse_sources(user)
        assert [block.number for block in blocks] == [1, 2, 3]
        assert parse_question(user) == QUERY
        assert user.count("<source number=") == 3
        # What is read is as long as what is stored, so that offsets agree, and holds no mark.
        assert [len(block.text) for block in blocks] == [len(document.content) for document in built["documents"]]
        assert find_marks(blocks[place].text) == []
        assert all(len(line.splitlines()) == 1 for line in user.split("\n") if line.startswith("<source number="))


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_goal_and_feedback_do_not_help_an_attack(attack):
    """Models write both, after reading what people and passages say."""
    messages = chain("precise", PLAIN, goal=attack, feedback=attack)[1]
    user = messages[-1].text
    assert [message.role.value for message in messages] == ["system", "user"]
    assert messages[0].text == chain("precise", PLAIN)[1][0].text
    assert parse_question(user) == QUERY
    assert [block.number for block in parse_sources(user)] == [1, 2, 3]
    for tag in ("<sources>", "</sources>", "<question>", "</question>", "<feedback>", "</feedback>"):
        assert user.split("\n").count(tag) == 1
    assert len(user.split("</question>")[-1].strip().split("\n")) == 1
    assert find_marks(user.split("<feedback>")[-1]) == []


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_quotations_are_of_the_stored_passages_and_nothing_else(attack):
    for mode, place in by_turns(attack):
        built, _ = chain(mode, attack, place=place)
        extractor = CitationExtractor(mode=mode, closest_below=0)
        answer = extractor.run([], built["documents"], QUERY, confidence=0.0)["answers"][0]
        assert answer.meta["status"] == "quoted"
        assert FIRST in answer.data.replace("**", "")
        stored = {document.id: document.content for document in documents(attack, place)}
        for citation in answer.meta["citations"]:
            assert citation["parent_id"] == f"p{citation['number'] - 1}"
            assert stored[citation["parent_id"]][citation["start"] : citation["end"]] == citation["quote"]
        # What stands outside the quotations is one line of ours and one line for each place.
        outside = [line for line in answer.data.splitlines() if line and not line.startswith(">")]
        numbers = [f"[{citation['number']}]" for citation in answer.meta["citations"]]
        assert [line.partition(" ")[0] for line in outside[1:]] == numbers
