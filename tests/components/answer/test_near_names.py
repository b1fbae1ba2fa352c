"""Which name is offered for one that no passage has."""

import pytest

from shiguan.answer.answerability_gate import AnswerabilityGate
from shiguan.answer.near_names import near_names

EN = "Call me Ishmael. Some years ago Queequeg and Captain Ahab sailed."
ZH = "安祿山反於范陽，郭子儀收長安。"


@pytest.mark.parametrize(
    ("question", "passage", "offered"),
    [
        ("Who was Ismael?", EN, [("Ismael", "Ishmael")]),
        ("What did Quequeg and Ahab do?", EN, [("Quequeg", "Queequeg")]),
        ("Who was Ishmael?", EN, []),
        ("What is Ishmael's ship?", EN, []),
        ("Who was Napoleon?", EN, []),
        ("安路山是谁？", ZH, [("安路山", "安禄山")]),
        ("安禄山是谁？", ZH, []),
        ("李林甫是谁？", ZH, []),
        ("安禄山以后谁收复长安？", ZH, []),
        ("Who was the African chief?", "He went to Africa.", []),
        ("", EN, []),
        ("Who was Ismael?", "", []),
    ],
)
def test_the_nearest_name_is_offered(question, passage, offered):
    said = [f"No passage has “{name}”. Did you mean “{other}”?" for name, other in offered]
    assert near_names(question, [passage]) == said


def test_the_gate_warns_whether_it_answers_or_not():
    from haystack import Document

    document = Document(id="p", content=EN, meta={"number": 1})
    for quote in (True, False):
        told = AnswerabilityGate(quote=quote).run("<c>", documents=[document], query="Who was Ismael?")
        assert told["warnings"] == ["No passage has “Ismael”. Did you mean “Ishmael”?"]
