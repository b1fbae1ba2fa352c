"""
Put the sample book into a library of its own and ask it questions in every mode: `make demo`.

Every line that begins with `$` is a command that can be typed as it stands.
"""

import shlex
import sys
from pathlib import Path

from build_book import build_book

from shiguan.cli import main

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = Path(".data") / "demo"
# The book does not answer this one: `shiguan ask` says so, and ends with 1.
UNANSWERED = "What did the An Lushan rebellion cost in modern dollars?"
QUESTIONS = (
    ("simple", "元和國計簿總計天下有多少方鎮？"),
    ("simple", "How many people did the census of 755 count?"),
    ("simple", UNANSWERED),
    ("advanced", "Why did the emperor flee to Fengtian in 783?"),
    ("precise", "Who held Suiyang in 757?"),
)


def run(*arguments: str) -> int:
    """Show a command and run it."""
    typed = (f'"{argument}"' if " " in argument or not argument.isascii() else argument for argument in arguments)
    print(f"\n$ shiguan {' '.join(typed)}\n", flush=True)
    return main(list(arguments))


def demo() -> int:
    """Build the book, ingest it, ask; the first command with an unexpected exit code ends the demo with it."""
    book = build_book().relative_to(ROOT)
    place = ("--data-dir", str(LIBRARY))
    commands = [
        ("ingest", str(book), *place),
        *(("ask", question, "--mode", mode, *place) for mode, question in QUESTIONS),
    ]
    for command in commands:
        code = run(*command)
        if code != (UNANSWERED in command):
            return code or 1
    print("\nThese two lines make `shiguan` a command of this shell and the sample book its library; then ask:\n")
    print(f"    source {shlex.quote(str(Path(sys.prefix) / 'bin' / 'activate'))}")
    print(f"    export SHIGUAN_DATA_DIR={shlex.quote(str(ROOT / LIBRARY))}")
    print("    shiguan ask who was Guo Ziyi")
    return 0


if __name__ == "__main__":
    sys.exit(demo())
