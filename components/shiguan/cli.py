"""The command line: parses arguments, calls the library and a runner, prints. Heavy imports stay in the commands."""

import argparse
import errno
import gc
import logging
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from shiguan import __version__
from shiguan.commands.arguments import add_commands, describe
from shiguan.commands.options import print_error
from shiguan.errors import ConfigurationError, RefusedError, ShiguanError, SourceError
from shiguan.text.terminal import printable

# What the person has to change before it can work; whatever else went wrong ends with 1.
_REFUSALS = (RefusedError, ConfigurationError, SourceError)

# What becomes of bytes of another encoding on a command line.
_HALVES = re.compile("[\ud800-\udfff]")
_LONG_WORD = re.compile(r"(\S{80})\S+")
# From 0 to 1; `--topk` and `--top-k` have 0.92.
_NEAR = 0.75
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def main(arguments: list[str] | None = None) -> int:
    _open_missing_streams()
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser(arguments).parse_args(arguments)
    try:
        _quiet_libraries()
        return _run(options)
    except ShiguanError as error:
        print_error(str(error), as_json=options.json)
        return 2 if isinstance(error, _REFUSALS) else 1
    except KeyboardInterrupt:
        print_error("Stopped. Completed work is saved; run the same command again to continue.", as_json=options.json)
        return 130
    except BrokenPipeError:
        return 0  # the reader has closed the pipe
    except Exception as error:
        if os.environ.get("SHIGUAN_LOG_LEVEL", "").strip().upper() == "DEBUG":
            raise
        print_error(_described(error), as_json=options.json)
        return 1
    finally:
        _let_go_of_output()


def _described(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename} cannot be used: {error.strerror}. Check the path, its permissions and the disk."
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "There is no space left on the disk of the output or of the library. Free space, and run again."
    return (
        f"Unexpected error: {type(error).__name__}: {error}. Set SHIGUAN_LOG_LEVEL=DEBUG and run again to see where, "
        "and report it."
    )


def _open_missing_streams() -> None:
    """Lead a standard stream that the caller closed nowhere; else the next file that is opened would get its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def _let_go_of_output() -> None:
    """Drop what cannot be written; Python would complain again when it flushes at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(options: argparse.Namespace) -> int:
    """Run the function that a command names; what its file imports need not be installed for the other commands."""
    for name in ("tenant", "source", "expected"):
        given = getattr(options, name, None)
        if _HALVES.search("".join(given or "")):
            raise RefusedError(f"`{name}` is not in UTF-8, as all that a library holds is. Write it in UTF-8.")
    file, function = options.command.split(".")
    # Imported objects stay; collecting garbage among them took a fifth of a question's time.
    gc.disable()
    try:
        command = getattr(import_module(f"shiguan.commands.{file}"), function)
    except ModuleNotFoundError as error:
        from shiguan.resources import install_command  # noqa: PLC0415  # `shiguan --help` must not wait for it

        raise ConfigurationError(
            f"`shiguan {file}` needs `{error.name}`, which is not installed. Install it with: "
            f"{install_command(options.extra) if options.extra else f'{sys.executable} -m pip install {error.name}'}"
        ) from error
    finally:
        gc.freeze()
        gc.enable()
    if getattr(options, "prompts", None) is not None:
        os.environ["SHIGUAN_PROMPTS_DIR"] = str(options.prompts)
    return int(command(options))


class _Parser(argparse.ArgumentParser):
    """Prints errors in short and without control characters, and adds the values of options to the help."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse what a command does not take where its options are known, and name the one that is nearest."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            from difflib import get_close_matches  # noqa: PLC0415  # of no use to a right command

            options = re.findall(r"--?[a-z][\w-]*", self.format_usage())
            near = get_close_matches(unknown[0].partition("=")[0], options, 1, _NEAR)
            hint = f". Did you mean {near[0]}?" if near else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        super().error(_LONG_WORD.sub(r"\1...", message))

    def format_help(self) -> str:
        describe(self)
        return super().format_help()

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(printable(message), file)


def _parser(arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="shiguan",
        description="Ask books and documents; every sentence of an answer names the passage that supports it.",
        epilog="Start with: shiguan ingest BOOK.epub, then: shiguan ask your question. Exit codes: 0 done, 1 failed or "
        "nothing was found, 2 the command has to be corrected, 130 stopped by Ctrl-C.",
    )
    parser.add_argument("--version", action="version", version=f"shiguan {__version__}")
    add_commands(parser, arguments[0] if arguments else None)
    return parser


def _quiet_libraries() -> None:
    """Keep other libraries' progress bars, notices and usage reports out of what a person reads."""
    for name, value in (
        ("HAYSTACK_TELEMETRY_ENABLED", "False"),
        ("HF_HUB_DISABLE_PROGRESS_BARS", "1"),
        ("HF_HUB_DISABLE_TELEMETRY", "1"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("TRANSFORMERS_VERBOSITY", "error"),
    ):
        os.environ.setdefault(name, value)
    level = os.environ.get("SHIGUAN_LOG_LEVEL", "").strip() or "ERROR"
    if level.upper() not in _LEVELS:
        raise ConfigurationError(f"SHIGUAN_LOG_LEVEL is `{level}`. Expected one of {', '.join(_LEVELS)}. Correct it.")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(logging.BASIC_FORMAT))
    logging.basicConfig(level=level.upper(), handlers=[handler])


class _Formatter(logging.Formatter):
    """Writes lines of the log that cannot steer a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


if __name__ == "__main__":
    sys.exit(main())
