"""Finds the notes that a book's reader inserted into a text, so that the text can be compared without them."""

import re

_BRACKET = re.compile(r"\[(?:脚注：|Note: )?|\]")


def note_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Find the notes that stand in a text as `[Note: …]` or `[脚注：…]`, brackets in them included; in order."""
    if "[Note: " not in text and "[脚注：" not in text:
        return ()
    open_brackets: list[tuple[int, bool]] = []
    spans: list[tuple[int, int]] = []
    for match in _BRACKET.finditer(text):
        if match[0] != "]":
            open_brackets.append((match.start(), len(match[0]) > 1))
        elif open_brackets:
            start, is_note = open_brackets.pop()
            if is_note:
                while spans and spans[-1][0] > start:
                    spans.pop()
                spans.append((start, match.end()))
    return tuple(spans)
