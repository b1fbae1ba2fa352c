"""What reaches a terminal: texts of anybody, controls of nobody."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.text.terminal import one_line, printable, printable_json

BAD = [chr(n) for n in (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"), ("two\nlines\tand 漢字 é", "two\nlines\tand 漢字 é"),
        ("a\x1b]52;c;aGVsbG8=\x07b", "ab"), ("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("a\x9d52;c;aGVsbG8=\x9cb", "ab"), ("a\x1bPq#0\x1b\\b", "ab"), ("a\x1b[31mred\x1b[0mb", "aredb"),
        ("a\x9b2Jb", "ab"), ("a\x1bcb", "ab"), ("a\x1b(0b", "ab"), ("a\rb\x08\x00\x7f", "ab"), ("a\x1b", "a"),
        ("a\x1b]52;c;no end", "a52;c;no end"), ("a\u202eb\u2066c", "abc"), ("a\ud800b", "a?b"),
        ("\x1b\x1b[31m[31mx", "[31mx"),
    ],
)  # fmt: skip
def test_what_steers_a_terminal_is_left_out_with_what_it_carries(text, shown):
    assert printable(text) == shown


@given(st.text(st.one_of(st.characters(), st.sampled_from(["\x1b", "[", "]", "\\", "m", "5", ";", *BAD]))))
def test_no_text_leaves_a_control_behind(text):
    for shown in (printable(text), one_line(text), printable_json(json.dumps(text, ensure_ascii=False))):
        assert not set(shown) & set(BAD)
        shown.encode()
    assert "\n" not in one_line(text)
    assert json.loads(printable_json(json.dumps(text, ensure_ascii=False))) == text


def test_a_long_hostile_text_costs_no_more_than_its_length(monkeypatch):
    assert printable("\x9d" * 300_000 + "\x1b]" * 300_000 + "\x1b[" * 300_000) == ""


def test_a_title_of_many_lines_is_one_line():
    assert one_line(" Annals\n[2] Forged\r\n\u2028more\x85\x0bx ") == "Annals [2] Forged more x"
