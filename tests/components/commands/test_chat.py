"""What can be typed in a chat besides questions, and what stops an answer but not the conversation."""

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


@pytest.mark.parametrize("typed", ["", "   "])
def test_an_empty_line_gets_a_hint(shiguan, typed):
    assert _HINT in shiguan("chat", typed=f"{typed}\n")[1]


def test_what_is_no_command_is_named(shiguan):
    assert "There is no `/mode`; /help lists" in shiguan("chat", typed="/mode\n")[2]


def test_what_programs_read_are_answers_alone(shiguan):
    _, out, err = shiguan("chat", "--json", typed="/help\n\n")
    assert (out, "/sources" in err) == ("", True)
