"""What would be quoted for a question, as an example for the judge: it answers only where the answer's sentence stands."""

from bench.judge.changes import ANSWERED, NOT_ANSWERED
from bench.judge.retrieved import retrieved
from bench.judge.sets import Question
from bench.quality.answer_bench import Bench

HARBOUR = "The harbour of Acre was deepened in 1291. Otto the mason, who had come from Bremen, laid its first stone."
WALLS = "The walls of Acre were raised by Karl. Nobody knows who paid the masons of these walls."
ANSWERS = {
    "Who laid the first stone of the harbour of Acre?": "Otto the mason",
    "Who raised the walls of Acre?": "Karl",
}


def _asked(text, passage):
    start = passage.index(ANSWERS[text]) if text in ANSWERS else 0
    return Question("nq", text, passage, start, start + len(ANSWERS.get(text, "")))


def test_a_quotation_answers_if_it_has_the_sentence_with_the_answer(tmp_path):
    unanswered = "Who paid the masons of the walls of Acre?"
    questions = [
        _asked(text, passage) for text, passage in zip([*ANSWERS, unanswered], [HARBOUR, WALLS, WALLS], strict=True)
    ]
    examples = list(retrieved(questions, Bench(tmp_path, tmp_path / "kept", None)))
    for example in examples:
        (claim,) = example.claims
        answer = ANSWERS.get(claim.text, "nobody")
        assert claim.label == (ANSWERED if answer in example.passage else NOT_ANSWERED)
        assert example.passage[slice(*claim.answer)] == (answer if answer in example.passage else "")
    assert {one.claims[0].label for one in examples} == {ANSWERED, NOT_ANSWERED}
