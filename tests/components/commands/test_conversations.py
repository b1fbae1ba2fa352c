"""`shiguan ask --conversation`, `chat` and `conversations`."""

import json

QUESTION, FOLLOW_UP = "Who proposed the two-tax reform?", "And when was it collected?"


def test_a_conversation_goes_on_from_one_command_to_the_next(shiguan):
    for question in (QUESTION, FOLLOW_UP):
        code, out, _ = shiguan("ask", question, "--conversation", "c1", "--json")
        assert code == 0
        assert json.loads(out)["conversation_id"] == "c1"
    _, out, _ = shiguan("conversations", "list")
    assert f"c1  2 turns  {QUESTION}" in out
    _, out, _ = shiguan("conversations", "export", "c1")
    assert out.startswith(f"# {QUESTION}\n\n## 1. {QUESTION}\n")
    _, out, _ = shiguan("conversations", "export", "c1", "--json")
    assert [turn["source"] for turn in json.loads(out)["turns"]] == ["database", "both"]


def test_a_chat_answers_line_by_line_until_it_ends(shiguan):
    code, out, _ = shiguan("chat", "--json", typed=f"{QUESTION}\n\n{FOLLOW_UP}\n")
    answers = [json.loads(line) for line in out.splitlines()]
    assert (code, [answer["query"] for answer in answers]) == (0, [QUESTION, FOLLOW_UP])
    assert answers[0]["conversation_id"] == answers[1]["conversation_id"]
    assert answers[1]["documents"][0]["source"] == "tax.txt"


def test_a_question_that_is_refused_does_not_end_the_chat(shiguan):
    code, out, err = shiguan("chat", typed=f"{'x' * 2001}\n{QUESTION}\n")
    assert (code, "Yang Yan" in out) == (0, True)
    assert "The question has 2,001 characters" in err


def test_another_tenants_conversation_is_none(shiguan):
    shiguan("ask", QUESTION, "--conversation", "c2", "--json")
    for command in ("export", "delete"):
        code, _, err = shiguan("conversations", command, "c2", tenant="b")
        assert (code, "There is no conversation `c2`" in err) == (2, True)
    assert shiguan("conversations", "delete", "c2")[1] == "Deleted c2.\n"
    assert shiguan("conversations", "delete", "c2")[0] == 2
