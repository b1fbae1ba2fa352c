"""The command line: parses arguments, calls the library and a runner, prints. Heavy imports stay in the commands."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiguan import __version__
from shiguan.errors import ConfigurationError, RefusedError, ShiguanError, StoreFormatError, StoreLockedError

if TYPE_CHECKING:
    from haystack import Document

    from shiguan.runner import Runner

_REFUSALS = (RefusedError, ConfigurationError, StoreLockedError, StoreFormatError)


def main(arguments: list[str] | None = None) -> int:
    """
    Run one command.

    :param arguments: The arguments after the program's name; None for the process's own.
    :returns: The exit code: 0 done, 1 failed, 2 refused or misused, 130 stopped by the keyboard.
    """
    options = _parser().parse_args(arguments)
    _quiet_libraries()
    try:
        return int(options.command(options))
    except ShiguanError as error:
        _report(str(error), as_json=options.json)
        return 2 if isinstance(error, _REFUSALS) else 1
    except KeyboardInterrupt:
        _report("Stopped. What was finished is kept; run the same command again to go on.", as_json=options.json)
        return 130
    except BrokenPipeError:
        # Whoever read us has heard enough; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("SHIGUAN_LOG_LEVEL", "").upper() == "DEBUG":
            raise
        _report(
            f"Something went wrong that Shiguan did not foresee: {type(error).__name__}: {error}. Set "
            "SHIGUAN_LOG_LEVEL=DEBUG and run again to see where, and report it.",
            as_json=options.json,
        )
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="shiguan",
        description="Ask books and documents; every sentence of an answer names the passage that supports it.",
        epilog="Start with: shiguan ingest BOOK.epub, then: shiguan ask 'your question'",
    )
    parser.add_argument("--version", action="version", version=f"shiguan {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, command: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        sub.set_defaults(command=command)
        sub.add_argument("--json", action="store_true", help="print JSON for programs instead of text for people")
        sub.add_argument("--deployment", default="embedded", help="a folder of pipelines/ (default: embedded)")
        if name != "modes":
            sub.add_argument("--tenant", default="default", help="whose library (default: default)")
            sub.add_argument(
                "--data-dir",
                type=Path,
                help="where the library is (default: $SHIGUAN_DATA_DIR, else the user's data folder)",
            )
        return sub

    ingest = add("ingest", _ingest, "put files and folders into the library")
    ingest.add_argument(
        "paths", nargs="+", metavar="PATH", help="EPUB, PDF, DOCX, HTML, Markdown, text, JSONL or a folder"
    )

    ask = add("ask", _ask, "answer a question from the library")
    ask.add_argument("question")
    ask.add_argument("--explain", action="store_true", help="show what each stage did")
    ask.add_argument(
        "--history", type=Path, metavar="FILE", help='JSON list of {"role", "content"}: the turns before the question'
    )

    search = add("search", _search, "find passages without answering")
    search.add_argument("question", nargs="?")
    search.add_argument(
        "--queries", type=Path, metavar="FILE", help='JSONL (.gz too) of {"id", "text"}: one result line each'
    )

    for sub, count in ((ask, 5), (search, 10)):
        sub.add_argument("--mode", default="simple", help="simple, advanced or precise (default: simple)")
        sub.add_argument("--top-k", type=_positive, default=count, help=f"how many passages at most (default: {count})")

    add("sources", _sources, "list what is in the library")
    add("delete", _delete, "take a source out of the library").add_argument(
        "source", metavar="SOURCE", help="its name as `shiguan sources` shows it"
    )
    add("modes", _modes, "list deployments and modes, and what each costs")
    return parser


def _positive(text: str) -> int:
    value = int(text) if text.lstrip("-").isdigit() else 0
    if not 1 <= value <= 50:
        raise argparse.ArgumentTypeError(f"must be 1 to 50, got {text}")
    return value


def _ingest(options: argparse.Namespace) -> int:
    from shiguan.library import Library, find_files
    from shiguan.terminal import IngestProgress, print_ingest_summary

    started = time.perf_counter()
    files, others = find_files(options.paths)
    library = Library(options.deployment, data_dir=options.data_dir)
    with IngestProgress(files, show=not options.json) as progress:
        results = []
        for result in library.ingest(files, tenant_id=_tenant(options), progress=progress.callback):
            results.append(result)
            progress.advance(result)
    summary = {
        "sources": sum(result.sources for result in results),
        "parents": sum(result.parents for result in results),
        "children": sum(result.children for result in results),
        "new": sum(result.new for result in results),
        "removed": sum(result.removed for result in results),
        "skipped": [entry for result in results for entry in result.skipped],
        "warnings": [text for result in results for text in result.warnings],
        "other_files": dict(others),
        "seconds": round(time.perf_counter() - started, 2),
    }
    if options.json:
        _print_json(summary)
    else:
        print_ingest_summary(summary)
    # A file that gave nothing is a failure; a few bad rows of a file that went in are not.
    return 1 if any(result.skipped and not result.sources for result in results) else 0


def _ask(options: argparse.Namespace) -> int:
    from shiguan.runner import checked_question
    from shiguan.terminal import print_answer

    checked_question(options.question)
    history = _read_history(options.history) if options.history else None
    with _runner(options) as runner:
        answer = runner.ask(
            options.question,
            tenant_id=_tenant(options),
            top_k=options.top_k,
            history=history,
            explain=options.explain,
        )
    if options.json:
        _print_json(answer)
    else:
        print_answer(answer)
    return 0


def _search(options: argparse.Namespace) -> int:
    if (options.question is None) == (options.queries is None):
        raise RefusedError("`search` takes either a question or `--queries FILE`. Give one of them.")
    if options.queries is not None:
        return _search_file(options)
    from shiguan.runner import checked_question
    from shiguan.terminal import print_passages

    checked_question(options.question)
    with _runner(options, retrieval_only=True) as runner:
        documents, warnings = runner.search(options.question, tenant_id=_tenant(options), top_k=options.top_k)
    if options.json:
        results = [
            {**_hit(document), "source": document.meta.get("source"), "section": document.meta.get("section", []),
             "anchor": document.meta.get("anchor"), "text": document.content}
            for document in documents
        ]  # fmt: skip
        _print_json({"query": options.question, "mode": options.mode, "results": results, "warnings": warnings})
    else:
        print_passages(options.question, documents, warnings)
    return 0


def _search_file(options: argparse.Namespace) -> int:
    from shiguan.terminal import track

    queries = list(_read_queries(options.queries))
    with _runner(options, retrieval_only=True) as runner:
        for query_id, text in track(queries, "Searching"):
            documents, _ = runner.search(text, tenant_id=_tenant(options), top_k=options.top_k)
            _print_json({"query_id": query_id, "results": [_hit(document) for document in documents]})
    return 0


def _hit(document: "Document") -> dict[str, Any]:
    meta = document.meta
    return {
        "id": document.id,
        "record_id": meta.get("record_id"),
        "score": document.score,
        "start": meta.get("start"),
        "end": meta.get("end"),
    }


def _read_history(path: Path) -> list[Any]:
    try:
        turns = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise RefusedError(f"{path} cannot be read as JSON: {error}. Correct the path or the file.") from error
    if not isinstance(turns, list):
        raise RefusedError(f'{path} is no list of turns. Expected [{{"role": "user", "content": "..."}}, ...].')
    return turns


def _read_queries(path: Path) -> Iterator[tuple[str, str]]:
    import gzip

    if not path.is_file():
        raise RefusedError(f"{path} does not exist. Check the path of `--queries`.")
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                row = json.loads(line)
                if not isinstance(row, dict) or "id" not in row or not str(row.get("text") or "").strip():
                    raise RefusedError(f'{path}, line {number}: expected {{"id": ..., "text": ...}}. Correct the line.')
                yield str(row["id"]), str(row["text"])
    except (ValueError, OSError, EOFError) as error:
        raise RefusedError(f"{path} cannot be read as JSONL: {error}. Correct the file.") from error


def _sources(options: argparse.Namespace) -> int:
    from shiguan.library import Library
    from shiguan.terminal import print_sources

    sources = Library(options.deployment, data_dir=options.data_dir).sources(tenant_id=_tenant(options))
    if options.json:
        _print_json({"sources": sources})
    else:
        print_sources(sources)
    return 0


def _delete(options: argparse.Namespace) -> int:
    from shiguan.library import Library

    library = Library(options.deployment, data_dir=options.data_dir)
    deleted = library.delete(options.source, tenant_id=_tenant(options))
    if not deleted:
        raise RefusedError(
            f"There is no source `{options.source}` in the library. `shiguan sources` lists what there is."
        )
    if options.json:
        _print_json({"source": options.source, "deleted": deleted})
    else:
        _say(f"Took {options.source} out of the library: {deleted:,} passage{'' if deleted == 1 else 's'}.")
    return 0


def _modes(options: argparse.Namespace) -> int:
    from shiguan.loading import describe_mode, list_modes
    from shiguan.terminal import print_modes

    modes = {
        deployment: {mode: describe_mode(deployment, mode) for mode in names}
        for deployment, names in list_modes().items()
    }
    if options.json:
        _print_json({"deployments": modes})
    else:
        print_modes(modes)
    return 0


def _runner(options: argparse.Namespace, *, retrieval_only: bool = False) -> "Runner":
    from shiguan.library import Library
    from shiguan.runner import Runner

    library = Library(options.deployment, data_dir=options.data_dir)
    if not library.count(tenant_id=_tenant(options)):
        raise RefusedError(
            f"The tenant `{_tenant(options)}` has nothing in this library. Put something in with "
            "`shiguan ingest PATH`, or check `--tenant` and `--data-dir`."
        )
    return Runner(options.deployment, options.mode, data_dir=options.data_dir, retrieval_only=retrieval_only)


def _tenant(options: argparse.Namespace) -> str:
    tenant = str(options.tenant).strip()
    if not tenant:
        raise RefusedError("`--tenant` is empty. Name whose library this is, or leave it out for `default`.")
    return tenant


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
    import logging

    level = os.environ.get("SHIGUAN_LOG_LEVEL", "ERROR").upper()
    logging.basicConfig(level=logging.getLevelNamesMapping().get(level, logging.ERROR), stream=sys.stderr)


def _report(message: str, *, as_json: bool) -> None:
    if as_json:
        _print_json({"error": message})
    print(f"shiguan: {message}", file=sys.stderr)  # noqa: T201


def _print_json(value: dict[str, Any]) -> None:
    _say(json.dumps(value, ensure_ascii=False))


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
