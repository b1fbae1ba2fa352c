"""A conversation: what is kept of it, what can be typed besides questions, and what stops an answer but not it."""

import io
import json
import os
import signal
import threading

import pytest
from tests.doubles.small_library import TENANT

from shiguan.cli import main
from shiguan.commands.ask import _HINT

QUESTION = "Who proposed the two-tax reform?"


def test_ctrl_c_stops_an_answer_and_keeps_the_conversation(shiguan, endpoint):
    endpoint.default = "Yang Yan proposed the two-tax reform in 780 [1]."

    over = threading.Event()

    def interrupted(_):
        os.kill(os.getpid(), signal.SIGINT)
        over.wait(60)  # or it might be there before the main thread has heard of the signal
        return "Never shown [1]."

    endpoint.rule("first question", interrupted)
    # A shell starts what runs in its background with Ctrl-C ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code, out, err = shiguan("chat", typed=f"Is this the first question about the reform?\n{QUESTION}\n/quit\n")
    finally:
        over.set()
        signal.signal(signal.SIGINT, before)
    assert (code, "the conversation continues" in err, "Never shown" in out) == (0, True, False)
    assert "Yang Yan proposed the two-tax reform in 780 [1]." in out


def test_the_commands_of_a_chat_are_listed_and_answered(shiguan):
    code, out, _ = shiguan("chat", "--conversation", "c9", typed="/help\n/sources\n/new\n/full\n/full\n")
    assert code == 0
    commands = ("/sources", "/new", "/quit", "Ctrl-C")
    for told in (*commands, "--conversation c9", "tax.txt", "Conversation chat-", "whole", "in short"):
        assert told in out


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])  # as locales have it
def test_a_line_in_another_encoding_is_refused_and_the_conversation_goes_on(data_dir, capsys, monkeypatch, errors):
    typed = "安禄山，哪一年起兵？\n".encode("gb18030") + f"{QUESTION}\n".encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed), encoding="utf-8", errors=errors))
    assert main(["chat", "--json", "--tenant", TENANT, "--data-dir", str(data_dir)]) == 0
    refused, answered = map(json.loads, capsys.readouterr().out.splitlines())
    assert "The question is not in UTF-8" in refused["error"]
    assert answered["query"] == QUESTION


@pytest.mark.parametrize("end", ["quit", "exit", "/quit", "/exit", " Quit "])
def test_a_chat_ends_at_the_word_that_people_type_and_what_programs_read_are_answers_alone(shiguan, end):
    code, out, err = shiguan("chat", "--json", typed=f"/help\n\n{end}\n{QUESTION}\n")
    assert (code, out, "/sources" in err) == (0, "", True)


def test_an_empty_line_gets_a_hint_and_what_is_no_command_is_named(shiguan):
    _, out, err = shiguan("chat", typed="\n   \n/mode\n")
    assert (out.count(_HINT), "There is no `/mode`; /help lists" in err) == (2, True)


FOLLOW_UP = "And when was it collected?"


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


def test_a_chat_answers_line_by_line_until_it_ends_whatever_is_refused(shiguan):
    code, out, _ = shiguan("chat", "--json", typed=f"{QUESTION}\n{'x' * 2001}\n{FOLLOW_UP}\n")
    first, refused, second = (json.loads(line) for line in out.splitlines())
    assert (code, first["query"], second["query"]) == (0, QUESTION, FOLLOW_UP)
    assert "The question has 2,001 characters" in refused["error"]
    assert first["conversation_id"] == second["conversation_id"]
    assert second["documents"][0]["source"] == "tax.txt"


def test_another_tenants_conversation_is_none(shiguan):
    shiguan("ask", QUESTION, "--conversation", "c2", "--json")
    for command in ("export", "delete"):
        code, _, err = shiguan("conversations", command, "c2", tenant="b")
        assert (code, "There is no conversation `c2`" in err) == (2, True)
    assert shiguan("conversations", "delete", "c2")[1] == "Deleted c2.\n"
    assert shiguan("conversations", "delete", "c2")[0] == 2
