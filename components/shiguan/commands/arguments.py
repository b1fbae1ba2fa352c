"""Parsers of the commands of `shiguan`, from the table beside this file."""

import argparse
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

QUESTION_OPTIONS = tuple(
    "rewrite_method wordings retrieval scope confidence_threshold temperature max_tokens task profile references "
    "citation_format source_characters without_search language instructions persona when".split()
)
QUESTION_LISTS = {"source": "sources", "section": "sections"}


def read_commands() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))


def add_commands(parser: argparse.ArgumentParser, chosen: str | None) -> None:
    """Add all commands, and the arguments of those whose name begins with the word that was chosen, or of all."""
    table = read_commands()
    names = {name.partition(" ")[0] for name in table["commands"]}
    top = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    groups = {"": top}
    for name, command in table["commands"].items():
        group, _, own_name = name.rpartition(" ")
        if group not in groups:
            about = table["groups"][group]
            parent = top.add_parser(group, help=about, description=_sentence(about))
            groups[group] = parent.add_subparsers(title="commands", metavar="COMMAND", required=True)
        sub = groups[group].add_parser(own_name, help=command["help"], description=_sentence(command["help"]))
        if chosen not in names or name.partition(" ")[0] == chosen:
            sub.set_defaults(command=command["run"], extra=command.get("extra", ""), **command.get("defaults", {}))
            sub.add_argument("--json", action="store_true", help="print JSON for programs instead of text for people")
            _add_arguments(sub, command["arguments"], table["shared"])
            if "one_of" in command:
                _add_arguments(sub.add_mutually_exclusive_group(required=True), command["one_of"], table["shared"])


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _add_arguments(parser: Any, arguments: list[Any], shared: dict[str, list[Any]]) -> None:
    for argument in arguments:
        if argument == "options of the question":
            _add_question_options(parser.add_argument_group(argument, "docs/options.md says more of each"))
        elif isinstance(argument, str):
            _add_arguments(parser, shared[argument], shared)
        else:
            keywords = dict(argument)
            names = keywords.pop("name")
            if "variable" in keywords:
                keywords["default"] = os.environ.get(keywords.pop("variable"), "").strip() or keywords["default"]
            if "type" in keywords:
                keywords["type"] = _TYPES[keywords["type"]]
            parser.add_argument(*([names] if isinstance(names, str) else names), **keywords)


def _add_question_options(group: Any) -> None:
    for name in QUESTION_OPTIONS:
        group.add_argument(f"--{name.replace('_', '-')}", metavar="VALUE")
    for name in QUESTION_LISTS:
        group.add_argument(f"--{name}", action="append", metavar="NAME", help=f"read only this {name}; may be repeated")


def describe(parser: argparse.ArgumentParser) -> None:
    """Add values and descriptions to the options of a question, which only help needs."""
    actions = [action for action in parser._actions if action.dest in ("top_k", *QUESTION_OPTIONS)]
    if actions:
        from shiguan.engine.options import AskOptions, allowed_values
    for action in actions:
        values = allowed_values(action.dest)
        named = values if isinstance(values, str) else ", ".join(values)
        action.help = f"{named}. {AskOptions.model_fields[action.dest].description}".replace("%", "%%")
        action.choices = None if isinstance(values, str) else values


def mode_or_file(text: str) -> str | Path:
    return Path(text) if text.endswith((".yml", ".yaml")) else text


def _path(text: str) -> Path:
    if not text:  # an unset variable of the shell, which would mean the current folder
        raise argparse.ArgumentTypeError("expected a path, got ''")
    return Path(text)


def _budget(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in text.split(","):
        unit, _, value = part.strip().partition("=")
        if unit in found:
            raise argparse.ArgumentTypeError(f"{unit} is given twice")
        try:
            found[unit] = int(value) if unit == "calls" else float(value)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected UNIT=NUMBER, got {part.strip()!r}") from None
    return found


_MOST_DIGITS = 18


def _whole_number(low: int, high: int | None = None) -> Callable[[str], int]:
    """Make a parser of whole numbers within limits."""

    def read(text: str) -> int:
        if not text.isdecimal() or len(text) > _MOST_DIGITS or not low <= int(text) <= (high or int(text)):
            raise argparse.ArgumentTypeError(f"must be {low} {f'to {high}' if high else 'or more'}, got {text}")
        return int(text)

    return read


_TYPES: dict[str, Callable[[str], Any]] = {
    "path": _path,
    "positive": _whole_number(1),
    "top_k": _whole_number(1, 50),
    "port": _whole_number(0, 65535),
    "budget": _budget,
    "mode_or_file": mode_or_file,
}
