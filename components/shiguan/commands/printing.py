"""How commands print: text for people, JSON for programs."""

import json
from typing import Any


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on one line."""
    say(json.dumps(value, ensure_ascii=False))


def say(text: str) -> None:
    """Print one line at once, also where the output is a pipe."""
    print(text, flush=True)  # noqa: T201
