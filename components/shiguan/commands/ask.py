"""`shiguan ask`, `chat` and `search`: answer questions from the library, or find their passages without answering."""

import argparse
import asyncio
import secrets
import sys
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiguan.commands import AddCommand
from shiguan.commands.options import (
    add_budget_option,
    add_question_options,
    open_runner,
    print_json,
    question_options,
    read_history,
    say,
    tenant,
)
from shiguan.conversations import check_conversation_id
from shiguan.errors import AnswerError, RefusedError

if TYPE_CHECKING:
    from haystack import Document

    from shiguan.engine.runner import Runner


def register(add: AddCommand) -> None:
    parser = add("ask", _ask, "answer a question from the library")
    parser.add_argument("question")
    parser.add_argument("--explain", action="store_true", help="show what each stage did")
    parser.add_argument(
        "--history", type=Path, metavar="FILE", help='JSON list of {"role", "content"}: the turns before the question'
    )
    parser.add_argument(
        "--conversation",
        metavar="ID",
        help="the conversation that this goes on; it is kept, see `shiguan conversations`",
    )
    parser.add_argument("--receipt", type=Path, metavar="FILE", help="write there how the answer came about")
    add_question_options(parser)
    add_budget_option(parser)
    parser = add("chat", _chat, "ask one question after the other in one conversation")
    parser.add_argument("--conversation", metavar="ID", help="one that is to go on (default: a new one)")
    add_question_options(parser)
    add_budget_option(parser)
    parser = add("search", _search, "find passages without answering")
    parser.add_argument("question", nargs="?")
    parser.add_argument(
        "--queries", type=Path, metavar="FILE", help='JSONL (.gz too) of {"id", "text"}: one result line each'
    )
    add_question_options(parser)


def _ask(options: argparse.Namespace) -> int:
    from shiguan.engine.runner import checked_question

    checked_question(options.question)
    history = read_history(options.history) if options.history else None
    more = {"history": history, "conversation_id": options.conversation, "budget": options.budget}
    asked = {"tenant_id": tenant(options), "explain": options.explain, **question_options(options, **more)}
    with open_runner(options, keep_receipt=_writing(options.receipt)) as runner:
        # Before the runner is closed, which waits for a summary of the conversation.
        if options.json:
            print_json(runner.ask(options.question, **asked))
        else:
            asyncio.run(_show(runner, options.question, asked))
    return 0


async def _show(runner: "Runner", question: str, asked: dict[str, Any]) -> None:
    from shiguan.commands.answer_view import AnswerView

    with AnswerView(question) as view:
        async with aclosing(runner.stream(question, **asked)) as events:
            async for event in events:
                if event.error is not None:
                    raise event.error
                view.tell(event.name, event.data)


def _chat(options: argparse.Namespace) -> int:
    conversation = options.conversation or f"chat-{secrets.token_hex(4)}"
    check_conversation_id(conversation)
    if not options.json:
        say(f"Conversation {conversation}. /quit or Ctrl-D ends it; `--conversation {conversation}` goes on with it.")
    more = {"conversation_id": conversation, "budget": options.budget}
    asked = {"tenant_id": tenant(options), **question_options(options, **more)}
    with open_runner(options) as runner, asyncio.Runner() as loop:
        while (question := _next_question(prompt=not options.json)) is not None:
            if not question:
                continue
            try:
                if options.json:
                    print_json(runner.ask(question, **asked))
                else:
                    loop.run(_show(runner, question, asked))
            except (RefusedError, AnswerError) as error:
                if options.json:
                    print_json({"error": str(error)})
                say(f"shiguan: {error}", error=True)
    return 0


def _next_question(*, prompt: bool) -> str | None:
    try:
        line = input("> " if prompt and sys.stdin.isatty() else "").strip()
    except EOFError:
        return None
    return None if line == "/quit" else line


def _writing(path: Path | None) -> Any:
    if path is None:
        return None
    if not path.resolve().parent.is_dir() or (path.exists() and not path.is_file()):
        raise RefusedError(f"The receipt cannot be written to {path}. Name a file in a folder that exists.")
    from shiguan.resources import write_json

    return lambda receipt: write_json(path.resolve(), receipt.model_dump(mode="json"))


def _search(options: argparse.Namespace) -> int:
    if (options.question is None) == (options.queries is None):
        raise RefusedError("`search` takes either a question or `--queries FILE`. Give one of them.")
    if options.queries is not None:
        return _search_file(options)
    from shiguan.commands.answer_view import print_passages
    from shiguan.engine.runner import checked_question

    checked_question(options.question)
    asked = question_options(options)
    with open_runner(options, retrieval_only=True) as runner:
        documents, warnings = runner.search(options.question, tenant_id=tenant(options), **asked)
    if options.json:
        results = [
            {**_hit(document), "source": document.meta.get("source"), "section": document.meta.get("section", []),
             "anchor": document.meta.get("anchor"), "text": document.content}
            for document in documents
        ]  # fmt: skip
        print_json({"query": options.question, "mode": options.mode, "results": results, "warnings": warnings})
    else:
        print_passages(options.question, documents, warnings)
    return 0


def _search_file(options: argparse.Namespace) -> int:
    from shiguan.commands.terminal import track

    queries, asked = list(_read_queries(options.queries)), question_options(options)
    with open_runner(options, retrieval_only=True) as runner:
        for query_id, text in track(queries, "Searching"):
            documents, _ = runner.search(text, tenant_id=tenant(options), **asked)
            print_json({"query_id": query_id, "results": [_hit(document) for document in documents]})
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


def _read_queries(path: Path) -> Iterator[tuple[str, str]]:
    from shiguan.evaluation.json_lines import read_json_lines

    for number, row in read_json_lines(path):
        if "id" not in row or not str(row.get("text") or "").strip():
            raise RefusedError(f'{path}, line {number}: expected {{"id": ..., "text": ...}}. Correct the line.')
        yield str(row["id"]), str(row["text"])
