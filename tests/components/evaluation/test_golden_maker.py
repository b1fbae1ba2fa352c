"""Golden sets made with a model that answers over real HTTP."""

import json
import re

import pytest
from haystack import Document
from tests.doubles.stand_in_llm import Rule

from shiguan.errors import RefusedError
from shiguan.evaluation.golden_maker import (
    GOLDEN_FILE,
    MOST_FRUITLESS,
    PER_PASSAGE,
    REVIEW_FILE,
    judge_agreement,
    make_questions,
    read_judgements,
    read_questions,
    write_made_set,
)
from shiguan.evaluation.json_lines import read_json_lines, write_json_lines
from shiguan.evaluation.questions import read_golden_set
from shiguan.evaluation.results import RunStore
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator

PLACES = ("Suiyang", "Fanyang", "Luoyang", "Lingwu", "Xiangzhou", "Heyang", "Caizhou", "Yunzhou", "Weizhou", "Fengtian")
PARENTS = [
    Document(
        id=f"parent-{place}",
        content=f"The town of {place} was held by its garrison for {number} months, and then it fell to the rebels in the end.",
        meta={"source": "war.txt"},
    )
    for number, place in enumerate(PLACES, start=2)
]


def written(call):
    place, number = re.search(r"town of (\w+) was held by its garrison for (\d+)", call.prompt).groups()
    quote = f"The town of {place} was held by its garrison for {number} months"
    rows = [
        ("number", f"For how many months did soldiers keep {place}?", f"{number} months", quote),
        ("unanswerable", f"Which poet was born at {place} in winter?", "", ""),
        ("person", f"Who took {place}?", "the Khitan", quote),
    ]
    return {"questions": [dict(zip(("type", "question", "answer", "quote"), row, strict=True)) for row in rows]}


def judged(call):
    second = "reject" if "Lingwu" in call.prompt else "accept"
    return {"verdicts": [{"id": 1, "verdict": "accept"}, {"id": 2, "verdict": second}]}


RULES = [Rule("<questions>", judged), Rule("You write test questions", written)]


@pytest.fixture
def generator(endpoint):
    endpoint.rules = list(RULES)
    configured = ConfiguredChatGenerator(role="helper")
    configured.warm_up()
    return configured


def made_in(folder, generator, count=50, track=list):
    made = make_questions(generator, PARENTS, count, RunStore(folder, {"kind": "golden"}), track)
    write_made_set(made, folder)
    return made


def test_a_library_gives_a_set_that_can_be_measured_with(tmp_path, generator, stand_in_llm):
    made = made_in(tmp_path, generator)
    assert (len(made.accepted), len(made.rejected)) == (19, 1)
    assert made.left_out == 10  # an answer that is not in the passage
    assert (made.passages, made.llm_calls, stand_in_llm.calls) == (10, 20, 20)
    golden = read_golden_set(tmp_path / GOLDEN_FILE).questions
    assert len(golden) == 19
    assert sum(not one.answerable for one in golden) == 9
    assert all(any(one.gold[0].stands_in(parent) for parent in PARENTS) for one in golden if one.gold)


def test_a_stopped_run_goes_on_where_it_was(tmp_path, generator, stand_in_llm):
    def two(parents):
        yield from parents[:2]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made_in(tmp_path, generator, track=two)
    assert stand_in_llm.calls == 4
    made_in(tmp_path, generator)
    assert stand_in_llm.calls == 20


def test_no_more_is_asked_than_is_wanted(tmp_path, generator, stand_in_llm):
    assert len(made_in(tmp_path, generator, count=2).accepted) == stand_in_llm.calls == 2


def test_nearly_the_same_question_is_asked_once(tmp_path, generator, stand_in_llm):
    same = {"type": "fact", "question": "To whom did the town fall in the end?", "answer": "the rebels", "quote": ""}
    stand_in_llm.rules = [RULES[0], Rule("You write test questions", {"questions": [same]})]
    made = made_in(tmp_path, generator)
    assert len(made.accepted) == 1
    assert made.left_out == 29  # nine are nearly the same, two of three were never written


def test_a_model_of_no_use_is_counted_and_not_asked_for_every_passage(generator, stand_in_llm, tmp_path):
    stand_in_llm.rules, stand_in_llm.default = [], "As a language model I cannot."
    parents = [Document(id=f"p{at:03}", content=f"In {700 + at} the town was taken. " * 4) for at in range(50)]
    for run in (1, 2):  # run again, it goes on
        made = make_questions(generator, parents, 6, RunStore(tmp_path, {"kind": "golden"}), list)
        assert (made.accepted, made.rejected, made.left_out) == ([], [], run * MOST_FRUITLESS * PER_PASSAGE)
        assert stand_in_llm.calls == made.llm_calls == run * MOST_FRUITLESS


def test_a_judge_that_answers_nonsense_accepts_nothing_and_is_counted(tmp_path, generator, stand_in_llm):
    stand_in_llm.rules, stand_in_llm.default = [RULES[1]], "Fine questions!"
    made = made_in(tmp_path, generator)
    assert made.accepted == []
    assert [row["judge"] for row in made.rejected] == ["none"] * 20


def test_a_person_reviews_one_in_ten_without_seeing_the_judge(tmp_path, generator):
    made = made_in(tmp_path, generator)
    review = tmp_path / REVIEW_FILE
    rows = [row for _, row in read_json_lines(review)]
    assert len(rows) == 2
    assert all(row["person"] == "" and "judge" not in row for row in rows)
    assert judge_agreement(review, made.verdicts)["agreement"] is None
    first, second = (made.verdicts[row["id"]] for row in rows)
    rows[0]["person"], rows[1]["person"] = first, "reject" if second == "accept" else "accept"
    write_json_lines(review, rows)
    made_in(tmp_path, generator)  # a second run leaves what a person wrote
    agreement = {"reviewed": 2, "open": 0, "agreement": 0.5, "disagreements": [rows[1]["id"]]}
    assert judge_agreement(review, made.verdicts) == agreement


@pytest.mark.parametrize(("name", "person"), [("none", "accept"), ("a", "maybe")])
def test_a_broken_review_is_refused(tmp_path, name, person):
    (tmp_path / REVIEW_FILE).write_text(json.dumps({"id": name, "person": person}) + "\n")
    with pytest.raises(RefusedError, match=f"got `{name}` and `{person}`"):
        judge_agreement(tmp_path / REVIEW_FILE, {"a": "accept"})


PASSAGE = "In 758 Diwu Qi created a salt monopoly. Salt was sold at 110 cash a peck."
GOOD = {"type": "time", "question": "When did the monopoly begin?", "answer": "758", "quote": PASSAGE[:39]}


OPEN = {"type": "unanswerable", "question": "Who drank the first cup of tea?", "answer": None}


@pytest.mark.parametrize(
    ("item", "rows"),
    [
        (GOOD | {"quote": "in 758  Diwu Qi created a salt monopoly."}, [GOOD]),  # with the words of the passage
        (GOOD | {"quote": "The monopoly began early."}, [GOOD | {"quote": "758"}]),  # which give way to the answer
        (OPEN, [OPEN | {"answer": "", "quote": ""}]),
        # What cannot be right is left out.
        (GOOD | {"answer": "759"}, []), (GOOD | {"answer": ""}, []), (GOOD | {"question": "What happened in 758?"}, []),
        (GOOD | {"type": "riddle"}, []), (GOOD | {"type": "unanswerable"}, []), (GOOD | {"question": ""}, []),
        (GOOD | {"question": ["a"]}, []), ("When?", []),
    ],
)  # fmt: skip
def test_a_question_is_kept_or_left_out(item, rows):
    assert read_questions(json.dumps({"questions": [item]}), PASSAGE) == rows


@pytest.mark.parametrize("reply", ["", "I cannot.", "{}", '{"questions": []}', '{"questions": "none"}'])
def test_nonsense_has_no_questions(reply):
    assert read_questions(reply, PASSAGE) == []


@pytest.mark.parametrize(
    ("reply", "verdicts"),
    [
        ('{"verdicts": [{"id": 2, "verdict": "Reject"}, {"id": 1, "verdict": "accept"}]}', ["accept", "reject"]),
        ('{"verdicts": [{"id": 9, "verdict": "accept"}, {"id": 1, "verdict": "perhaps"}, 3]}', ["none", "none"]),
        ("no idea", ["none", "none"]),
        ('{"verdicts": "all"}', ["none", "none"]),
    ],
)
def test_a_judges_verdicts_are_read_or_missing(reply, verdicts):
    assert read_judgements(reply, 2) == verdicts
