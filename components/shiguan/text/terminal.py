"""The door of the terminal: what reaches it has colours of ours and no control of anybody else's."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

# Bidirectional overrides turn what a person reads around; half surrogates cannot be written.
_SILENT = "\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
_CONTROL = re.compile(
    # Strings with an end (OSC, which can write the clipboard, DCS, SOS, PM, APC), CSI, other escapes, what is left.
    "(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\\\|\x9c)"
    "|(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|\x1b[ -/]*[0-~]?"
    f"|[{_SILENT}]"
)
_UNSAFE_IN_JSON = re.compile(f"[{_SILENT}\ud800-\udfff]")


def printable(text: str) -> str:
    """Leave out of a text what would steer a terminal; line breaks and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    """Make a name or title one line, so that it cannot pass for the line after it."""
    return " ".join(printable(text.replace("\r", "\n").replace("\x85", "\n")).split())


def printable_json(text: str) -> str:
    """Write what would steer a terminal as JSON's escapes, so that a program reads what was there."""
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def console_for_people(*, stderr: bool = False, width: int = 100) -> "Console":
    """Open a console whose texts are printable: in colours on a terminal, plain and of one width elsewhere."""
    from rich.console import Console  # noqa: PLC0415  # `shiguan --help` shall not wait for it

    class PrintableConsole(Console):
        """Lines, tables and bars, whatever puts texts into them."""

        def render(self, renderable: "RenderableType", options: "ConsoleOptions | None" = None) -> "Iterable[Segment]":
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=printable(segment.text))

    # Made anew each time: tests and pipes change where standard output leads.
    console = PrintableConsole(stderr=stderr, highlight=False, soft_wrap=False)
    if not console.is_terminal:
        # Whoever reads a pipe wraps by itself.
        console = PrintableConsole(stderr=stderr, highlight=False, width=width, no_color=True)
    return console
