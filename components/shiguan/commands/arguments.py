"""The commands of `shiguan` with their arguments, and the function that runs each."""

import argparse
from collections.abc import Callable
from pathlib import Path

GROUPS = {
    "conversations": "list, export and delete conversations",
    "feedback": "judge an answer, and read the judgements",
    "keys": "manage the API keys of the server",
    "stores": "prepare and inspect the servers of a deployment, and copy a library to them",
    "eval": "measure retrieval and answers, and compare two runs",
}
"""The groups of commands of two words, and what they do."""

QUESTION_OPTIONS = tuple(
    "rewrite_method wordings retrieval scope confidence_threshold temperature max_tokens task profile references "
    "citation_format source_characters language instructions persona when".split()
)
QUESTION_LISTS = {"source": "sources", "section": "sections"}
CLUSTER = "elasticsearch_qdrant"

_HISTORY = 'JSON list of {"role", "content"}: the turns before the question'
DATA_DIR = "where the library is (default: $SHIGUAN_DATA_DIR, else the user's data folder)"

PROMPTS = "your own prompts, each in place of the shipped file of its name (default: $SHIGUAN_PROMPTS_DIR)"

_PLAIN = {"deployment": False, "library": False}

Add = Callable[..., argparse.ArgumentParser]
"""
Adds a command by its name, its function as `file.function` and a help text; `deployment` and `library` add their
options, `extra` names the extra of the package that it needs.
"""


def declare(add: Add) -> None:
    """Declare all commands, in the order of `shiguan --help`."""
    parser = add("ingest", "library.ingest", "add files and folders to the library")
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="EPUB, PDF, DOCX, HTML, Markdown, text, JSONL or a folder"
    )
    parser.add_argument(
        "--resume",
        "--upgrade",  # after a change of the embedder all vectors are missing: the same work
        action="store_true",
        help="make vectors that are missing, or were made by another model; takes no files",
    )
    add("sources", "library.sources", "list what is in the library")
    parser = add("delete", "library.delete", "remove a source from the library")
    parser.add_argument("source", metavar="SOURCE", help="its name as `shiguan sources` shows it")

    parser = add("ask", "ask.ask", "answer a question from the library")
    _question(parser)
    parser.add_argument("--explain", action="store_true", help="show what each stage did")
    parser.add_argument("--history", type=Path, metavar="FILE", help=_HISTORY)
    parser.add_argument(
        "--conversation",
        metavar="ID",
        help="the conversation to continue; it is kept, see `shiguan conversations`",
    )
    parser.add_argument("--receipt", type=Path, metavar="FILE", help="write a record of how the answer came about")
    _question_options(parser, budget=True)
    parser = add("chat", "ask.chat", "ask questions in one conversation")
    parser.add_argument("--conversation", metavar="ID", help="the conversation to continue (default: a new one)")
    _question_options(parser, budget=True)
    parser = add("search", "ask.search", "find passages without answering")
    _question(parser, optional=True)
    parser.add_argument(
        "--queries", type=Path, metavar="FILE", help='JSONL (.gz too) of {"id", "text"}: one result line each'
    )
    _question_options(parser)
    parser = add("timeline", "ask.timeline", "list what the library says by year")
    _question(parser, optional=True)
    parser.add_argument("--when", metavar="YEARS", help="such as 755..763 or 140 BC (default: all)")
    parser.add_argument("--source", action="append", metavar="NAME", help="read only this source; may be repeated")
    parser.set_defaults(mode="simple")
    parser = add("verify", "verify.verify", "check the quotations and sentences of a text against the library")
    parser.add_argument("file", nargs="?", metavar="FILE", help="text, Markdown or DOCX; - reads standard input")
    parser.add_argument("--quote", metavar="TEXT", help="one quotation")
    text = 'JSONL (.gz too) of {"id", "text", "source"?}: one result line each'
    parser.add_argument("--quotes", type=Path, metavar="FILE", help=text)
    parser.add_argument("--report", type=Path, metavar="NAME", help="write NAME.html, NAME.md and NAME.docx")
    parser.set_defaults(mode="simple")
    add("conversations list", "ask.list_conversations", "list the conversations of a tenant")
    for command, text in (
        ("export", "print a conversation as Markdown, or with --json as JSON"),
        ("delete", "remove a conversation with its summaries"),
    ):
        parser = add(f"conversations {command}", f"ask.{command}_conversation", text)
        parser.add_argument("id", metavar="ID", help="as `conversations list` shows")

    parser = add("modes", "models.modes", "list deployments and modes, and what each costs", extra="serve")
    text = "how the methods of each mode have done: answers, refusals, mean time and confidence, from kept receipts"
    parser.add_argument("--statistics", dest="command", action="store_const", const="review.statistics", help=text)
    parser = add("models", "models.models", "list the models of a deployment, or fetch their weights", library=False)
    parser.add_argument("action", nargs="?", choices=["fetch"], help="fetch: download missing weights")

    _declare_server(add)
    parser = add("check", "check.check", "check pipeline files: allowed types, no code, tenants kept apart", **_PLAIN)
    parser.add_argument(
        "pipelines",
        nargs="*",
        metavar="FILE",
        help="a YAML file, a mode such as embedded/simple, or a deployment (default: all that ship with Shiguan)",
    )
    parser.add_argument(
        "--allow-type",
        action="append",
        default=[],
        metavar="PREFIX",
        help="a package, module or class to allow beyond the list, such as mycompany.retrievers",
    )
    _declare_stores(add)

    _declare_review(add)
    _declare_eval(add)


def _declare_review(add: Add) -> None:
    parser = add("why", "review.why", "show where the passage that you expected was lost")
    _question(parser)
    parser.add_argument(
        "--expected", required=True, metavar="TEXT", help="words of the passage that should have been used, or its id"
    )
    parser.add_argument("--history", type=Path, metavar="FILE", help=_HISTORY)
    _mode_options(parser)
    parser = add("replay", "review.replay", "check whether the passages behind an answer are still in the library")
    parser.add_argument("receipt", type=Path, metavar="FILE", help="what `shiguan ask --receipt FILE` wrote")
    parser.add_argument("--prompt", action="store_true", help="print the prompt that the answer was written from")
    parser = add(
        "locate", "notes.locate", "find what an answer cites again, in a file that was edited or in the library"
    )
    parser.add_argument("receipt", type=Path, metavar="RECEIPT", help="what `shiguan ask --receipt FILE` wrote")
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help="the edited file (default: the library)")
    parser = add("export", "notes.export", "write an answer with its sources for a bibliography or a word processor")
    parser.add_argument("receipt", type=Path, metavar="RECEIPT", help="what `shiguan ask --receipt FILE` wrote")
    forms = ("csl", "bibtex", "ris", "markdown", "html", "docx", "annotations")
    parser.add_argument("--form", choices=forms, default="markdown", help="what to write (default: markdown)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where to (default: print it)")
    text = "what the files do not say of the sources (default: sources.yml in the data folder)"
    parser.add_argument("--sources", type=Path, metavar="FILE", help=text)
    text = "record what is right or wrong about an answer, and print it"
    parser = add("feedback give", "review.give", text, deployment=False, extra="serve")
    parser.add_argument(
        "receipt", metavar="RECEIPT", help="the id in an answer's metadata, or a file of `ask --receipt`"
    )
    parser.add_argument("kind", metavar="KIND", help="right, wrong, wrong_citation or missing")
    parser.add_argument("--note", default="", help="in your own words, kept as one line")
    text = "delete the judgements on one answer, or old ones, and print how many"
    parser = add("feedback delete", "review.forget", text, deployment=False, extra="serve")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--receipt", metavar="ID", help="the id in an answer's metadata")
    which.add_argument("--older-than", type=_positive, metavar="DAYS", help="all that are older")
    text = "print the judgements, the newest first, a line of JSON each"
    add("feedback export", "review.export", text, deployment=False, extra="serve")


def _declare_server(add: Add) -> None:
    parser = add("serve", "serve.serve", "answer questions over HTTP", **_PLAIN, extra="serve")
    parser.add_argument("--deployment", help="a folder of pipelines/ (default: $SHIGUAN_DEPLOYMENT, else embedded)")
    parser.add_argument("--data-dir", type=Path, help="where the library is (default: $SHIGUAN_DATA_DIR)")
    parser.add_argument("--prompts", type=Path, metavar="DIR", help=PROMPTS)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--open", action="store_true", help="open the page in the browser as soon as it is ready")
    parser.add_argument(
        "--port", type=_whole_number(0, 65535), default=1416, help="the port, 0 for a free one (default: 1416)"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes on one port, if the stores are servers")
    text = "offer the library as tools to programs over MCP, on stdin and stdout"
    add("mcp", "mcp.mcp", text, extra="mcp")

    for command, function, text in (
        ("add", "add_key", "make a key for a tenant"),
        ("list", "list_keys", "list the keys by their ids; the keys themselves are not kept"),
        ("revoke", "revoke_key", "revoke a key"),
    ):
        parser = add(f"keys {command}", f"serve.{function}", text, **_PLAIN, extra="serve")
        if command == "revoke":
            parser.add_argument("id", metavar="ID", help="as `keys list` shows")
        if command == "add":
            parser.add_argument("--tenant", default="", help="whose library it opens; not for the role metrics")
            parser.add_argument(
                "--role", choices=("read", "write", "metrics"), required=True,
                help="read asks and lists, write also uploads and deletes, metrics reads /metrics and nothing else",
            )  # fmt: skip
            parser.add_argument("--name", default="", help="a note for people")
            parser.add_argument(
                "--days", type=_positive, metavar="N", help="for how many days it is valid (default: for good)"
            )
            parser.add_argument(
                "--print-hash",
                action="store_true",
                help="write no file: print the entry for SHIGUAN_API_KEYS beside the key",
            )


def _declare_stores(add: Add) -> None:
    for command, text in (
        ("init", "create the indexes and the collection of a deployment, if they do not exist yet"),
        ("status", "show the state of the servers of a deployment, and their problems"),
    ):
        parser = add(f"stores {command}", f"stores.{command}", text, **_PLAIN)
        parser.add_argument("--deployment", default=CLUSTER, help=f"a folder of pipelines/ (default: {CLUSTER})")
    text = "copy the whole library of one deployment to another"
    parser = add("stores copy", "stores.copy", text, **_PLAIN)
    parser.add_argument("--from", dest="source", default="embedded", help="what to copy (default: embedded)")
    parser.add_argument("--to", dest="target", default=CLUSTER, help=f"the target (default: {CLUSTER})")
    parser.add_argument("--data-dir", type=Path, help=DATA_DIR.replace("the library", "the embedded library"))


def _declare_eval(add: Add) -> None:
    parser = add("eval retrieval", "eval.retrieval", "measure how well a mode finds passages", library=False)
    _set_options(parser, required=True)
    _eval_mode_option(parser)
    _run_options(parser, library=True)
    parser = add("eval answers", "eval.answers", "measure how well a mode answers a golden set")
    shape = '{"id", "question", "answers"?, "gold"?: [{"quote"}], "answerable"?, "history"?, "type"?}'
    parser.add_argument("--golden", type=Path, required=True, metavar="FILE", help=f"JSONL of {shape}")
    text = "ask a library of only these files (default: the tenant's own library)"
    parser.add_argument("--corpus", type=Path, nargs="+", default=[], metavar="FILE", help=text)
    _eval_mode_option(parser)
    _run_options(parser)
    parser.add_argument(
        "--judge", action="store_true", help="also let a language model judge, with Haystack's evaluators"
    )
    parser = add("eval golden", "eval.golden", "make questions with known answers from the library")
    parser.add_argument("--count", type=_positive, default=50, metavar="N", help="how many questions (default: 50)")
    parser.add_argument(
        "--output", type=Path, default=Path(".data") / "golden", metavar="DIR",
        help="where golden.jsonl and review.jsonl go (default: .data/golden); run again to go on",
    )  # fmt: skip

    parser = add("eval compare", "eval.compare", "compare two runs on the same questions", library=False)
    for name in "ab":
        parser.add_argument(
            name, metavar=name.upper(), help="a results.json or its folder; or a mode or pipeline file, which is run"
        )
    text = "two folders of prompts, with which A and B are run"
    parser.add_argument("--prompts", type=Path, nargs=2, metavar=("DIR_A", "DIR_B"), help=text)
    text = "compare answers to these questions instead of rankings, from a library of `--corpus`"
    parser.add_argument("--golden", type=Path, metavar="FILE", help=text)
    _set_options(parser, required=False)
    _run_options(parser, library=True)
    parser.add_argument(
        "--gate",
        action="append",
        default=[],
        metavar="METRIC[=TOLERANCE]",
        help="exit 1 where this got worse by more (repeatable; default: the standard gates; none: no gate)",
    )


def _question(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    text = "in words of its own or in quotation marks; - reads it from standard input"
    parser.add_argument("question", nargs="*" if optional else "+", metavar="QUESTION", help=text)


def _mode_options(parser: argparse.ArgumentParser) -> None:
    text = "simple, advanced, precise, agent, or another that `shiguan modes` lists (default: simple)"
    parser.add_argument("--mode", default="simple", help=text)
    parser.add_argument("--top-k", type=_whole_number(1, 50), metavar="N")


def _question_options(parser: argparse.ArgumentParser, *, budget: bool = False) -> None:
    _mode_options(parser)
    group = parser.add_argument_group("options of the question", "docs/options.md says more of each")
    for name in QUESTION_OPTIONS:
        group.add_argument(f"--{name.replace('_', '-')}", metavar="VALUE")
    for name in QUESTION_LISTS:
        group.add_argument(f"--{name}", action="append", metavar="NAME", help=f"read only this {name}; may be repeated")
    if budget:
        parser.add_argument(
            "--budget",
            type=_budget,
            metavar="UNIT=N,...",
            help="what a question may spend, such as calls=2,seconds=20; steps are left out for it",
        )


def describe(parser: argparse.ArgumentParser) -> None:
    """Add values and descriptions to the options of a question, which only help and completion need."""
    actions = [action for action in parser._actions if action.dest in ("top_k", *QUESTION_OPTIONS)]
    if actions:
        from shiguan.engine.options import AskOptions, allowed_values
    for action in actions:
        values = allowed_values(action.dest)
        named = values if isinstance(values, str) else ", ".join(values)
        action.help = f"{named}. {AskOptions.model_fields[action.dest].description}".replace("%", "%%")
        action.choices = None if isinstance(values, str) else values


def _set_options(parser: argparse.ArgumentParser, *, required: bool) -> None:
    for name, text in (
        ("corpus", 'JSONL (.gz too) of {"id", "title", "text"}: what is searched'),
        ("queries", 'JSONL of {"id", "text", "gold"?}: what is asked'),
        ("qrels", 'JSONL of {"query_id", "doc_id", "score"}: what is right'),
    ):
        parser.add_argument(f"--{name}", type=Path, required=required, metavar="FILE", help=text)
    parser.add_argument(
        "--gold-field", default="gold", metavar="NAME", help="the field that marks an answer's place (default: gold)"
    )
    parser.add_argument("--limit", type=_positive, metavar="N", help="only N questions, spread evenly over the file")
    parser.add_argument(
        "--skip-unjudged",
        action="store_true",
        help="leave out questions without a relevant document, instead of stopping",
    )
    parser.add_argument("--no-context", action="store_true", help="score the ranking alone")


def _eval_mode_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mode",
        type=mode_or_file,
        default="simple",
        help="simple, advanced, precise, or a pipeline file of your own (default: simple)",
    )


def _run_options(parser: argparse.ArgumentParser, *, library: bool = False) -> None:
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="the run's folder (default: below .data/eval); run again to go on"
    )
    if library:
        text = "where the corpus is ingested (default: beside the run's folder)"
        parser.add_argument("--data-dir", type=Path, metavar="DIR", help=text)


def mode_or_file(text: str) -> str | Path:
    return Path(text) if text.endswith((".yml", ".yaml")) else text


def _budget(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in text.split(","):
        unit, _, value = part.strip().partition("=")
        try:
            found[unit] = int(value) if unit == "calls" else float(value)
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected UNIT=NUMBER, got {part.strip()!r}") from None
    return found


def _whole_number(low: int, high: int | None = None) -> Callable[[str], int]:
    """Make a parser of whole numbers within limits."""

    def read(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= (high or int(text)):
            raise argparse.ArgumentTypeError(f"must be {low} {f'to {high}' if high else 'or more'}, got {text}")
        return int(text)

    return read


_positive = _whole_number(1)
