"""Makes text safe for the terminal: it may have our colours, but no control sequences from elsewhere."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

# Bidirectional overrides reverse what a person reads; lone surrogates cannot be encoded.
_SILENT = "\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
_CONTROL = re.compile(
    # Terminated strings (OSC, which can write the clipboard, DCS, SOS, PM, APC), CSI, other escapes, other controls.
    "(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\\\|\x9c)"
    "|(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|\x1b[ -/]*[0-~]?"
    f"|[{_SILENT}]"
)
_UNSAFE_IN_JSON = re.compile(f"[{_SILENT}\ud800-\udfff]")


def printable(text: str) -> str:
    """Remove control characters from a text; line breaks and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    """Write a name or title in one line, so that it cannot pose as a further line of output."""
    return " ".join(printable(text.replace("\r", "\n").replace("\x85", "\n")).split())


def printable_json(text: str) -> str:
    """Write control characters as JSON escapes, so that a program still reads the original text."""
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def console_for_people(*, stderr: bool = False, width: int = 100) -> "Console":
    """Create a console that prints only printable text: coloured on a terminal, plain and of fixed width elsewhere."""
    from rich.console import Console  # noqa: PLC0415  # `shiguan --help` must not wait for it

    class PrintableConsole(Console):
        """Makes all text printable, in lines, tables and bars."""

        def render(self, renderable: "RenderableType", options: "ConsoleOptions | None" = None) -> "Iterable[Segment]":
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=printable(segment.text))

        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704  # what Rich is handling: it would end the process with 1

    # Created each time: tests and pipes redirect standard output.
    console = PrintableConsole(stderr=stderr, highlight=False, soft_wrap=False)
    if not console.is_terminal:
        # The reader of a pipe wraps lines itself.
        console = PrintableConsole(stderr=stderr, highlight=False, width=width, no_color=True)
    return console
