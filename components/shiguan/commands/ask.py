"""`shiguan ask`, `chat`, `search`, `timeline` and `conversations`."""

import argparse
import asyncio
import io
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from typing import Any

from shiguan.commands.answer_view import AnswerView, print_passages
from shiguan.commands.options import (
    NOT_UTF8,
    open_library,
    open_runner,
    print_error,
    print_json,
    print_line,
    print_result,
    question_options,
    refuse_missing_folder,
    refuse_to_replace,
    tenant,
    typed_question,
)
from shiguan.commands.terminal import counted, place_line, source_lines
from shiguan.conversations import ConversationStore, check_conversation_id
from shiguan.engine.conversations import export_markdown, head_of, shown_conversation
from shiguan.engine.loading import load_stores
from shiguan.engine.options import read_options
from shiguan.engine.runner import Runner
from shiguan.engine.timeline import SEARCH, matched, time_words
from shiguan.engine.timeline import timeline as list_times
from shiguan.errors import AnswerError, RefusedError
from shiguan.resources import write_json

_UNANSWERED = ("not_found", "refused")
_WHOLE = 20_000
"""How much of a passage `--full` shows, in characters."""
_HINT = "Type a question about your books; /help lists what else can be typed."
_HELP = """\
/sources  list what is in the library
/full     show whole passages, or the quoted sentences alone
/new      begin a new conversation
/quit     end it; so does Ctrl-D. `shiguan chat --conversation {conversation}` continues it
Ctrl-C    stop an answer"""


def ask(options: argparse.Namespace) -> int:
    question = typed_question(options)
    more = {"conversation_id": options.conversation, "budget": options.budget}
    asked = {"tenant_id": tenant(options), "explain": options.explain, **question_options(options, **more)}
    with open_runner(options, keep_receipt=_writing(options), keep_prompts=True) as runner:
        # Closing the runner waits for a summary of the conversation, so the answer is printed first.
        if options.json:
            answer = runner.ask(question, **asked)
            print_json(answer)
        else:
            answer = asyncio.run(_show(runner, question, asked, full=options.full))
    return 1 if answer["status"] in _UNANSWERED else 0


async def _show(runner: Runner, question: str, asked: dict[str, Any], *, full: bool) -> dict[str, Any]:
    """Show an answer while it is made, and return it."""
    if full:
        asked = {**asked, "source_characters": _WHOLE}
    answer: dict[str, Any] = {}
    with AnswerView(question, full=full) as view:
        async with aclosing(runner.stream(question, **asked)) as events:
            async for event in events:
                if event.error is not None:
                    raise event.error
                view.show(event.name, event.data)
                answer = event.data
    return answer


def chat(options: argparse.Namespace) -> int:
    conversation = options.conversation or f"chat-{secrets.token_hex(4)}"
    check_conversation_id(conversation)
    more = {"conversation_id": conversation, "budget": options.budget}
    asked = {"tenant_id": tenant(options), **question_options(options, **more)}
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # a strict one would lose the lines behind a wrong byte
    with open_runner(options) as runner, asyncio.Runner() as loop:
        if not options.json:
            print_line(f"Conversation {conversation}. /help lists what can be typed besides questions.")
        while (question := _next_question(prompt=not options.json)) is not None:
            command = question.lower()
            if not question or command == "/help":
                print_line(_HELP.format(conversation=conversation) if question else _HINT, error=options.json)
            elif command == "/sources":
                found = open_library(options).sources(tenant_id=tenant(options))
                print_result(options, {"sources": found}, *source_lines(found))
            elif command == "/full":
                options.full = not options.full
                print_line(f"Passages are shown {'in full' if options.full else 'in short'}.", error=options.json)
            elif command == "/new":
                conversation = f"chat-{secrets.token_hex(4)}"
                asked["conversation_id"] = conversation
                print_line(f"Conversation {conversation}.", error=options.json)
            elif re.fullmatch("/[a-z]+", command):
                print_error(f"There is no `{command}`; /help lists what there is.", as_json=options.json)
            elif re.search("[\ud800-\udfff]", question):
                print_error(NOT_UTF8, as_json=options.json)
            else:
                _answer_in_chat(options, runner, loop, question, asked)
    return 0


def _answer_in_chat(
    options: argparse.Namespace, runner: Runner, loop: asyncio.Runner, question: str, asked: dict[str, Any]
) -> None:
    try:
        if options.json:
            print_json(runner.ask(question, **asked))
        else:
            loop.run(_show(runner, question, asked, full=options.full))
    except KeyboardInterrupt:
        print_error("This answer was stopped and is not kept; the conversation continues.", as_json=options.json)
    except (RefusedError, AnswerError) as error:
        print_error(str(error), as_json=options.json)


def _next_question(*, prompt: bool) -> str | None:
    """Read a line; None at the end, or where the person ends the conversation."""
    try:
        line = input("> " if prompt and sys.stdin.isatty() else "").strip()
    except (EOFError, KeyboardInterrupt):
        return None
    return None if line.lower().removeprefix("/") in ("quit", "exit") else line


def _writing(options: argparse.Namespace) -> Any:
    if options.receipt is None:
        return None
    refuse_to_replace(options, options.receipt)
    path = options.receipt.resolve()
    return lambda receipt: write_json(path, receipt.model_dump(mode="json"))


def timeline(options: argparse.Namespace) -> int:
    children = None
    if options.question:
        question = typed_question(options)
        with open_runner(options, outputs=["documents"]) as runner:
            asked = read_options({"when": options.when, "sources": options.source, **SEARCH}).given()
            found, _ = runner.search(question, tenant_id=tenant(options), **asked)
        children = matched(question, found)
    known = {"when": options.when, "sources": options.source, "children": children}
    times = list_times(open_library(options), tenant_id=tenant(options), **known)
    lines = ["\n  ".join([time_words(line), *_dated_lines(line), place_line(line)]) for line in times["lines"]]
    if times["count"] > len(lines):
        lines.append(f"These are the first {len(lines)} of {times['count']:,}; narrow them with --when or a question.")
    print_result(options, times, *(lines or ["Nothing that was asked for has a date in the library."]))
    return 0 if lines else 1


def _dated_lines(line: dict[str, Any]) -> list[str]:
    """Return the lines of a dated text; of a table only the rows with the date."""
    lines = [" ".join(each.split()) for each in line["text"].splitlines() if each.strip()]
    return [row for row in lines if " | " in row and line["as"] in row] or lines


def search(options: argparse.Namespace) -> int:
    question = typed_question(options)
    asked = question_options(options)
    with open_runner(options, outputs=["documents"]) as runner:
        documents, warnings = runner.search(question, tenant_id=tenant(options), **asked)
    if options.json:
        results = [
            {
                "id": document.id,
                "score": document.score,
                **{name: document.meta.get(name) for name in ("record_id", "start", "end", "source", "anchor")},
                "section": document.meta.get("section", []),
                "text": document.content,
            }
            for document in documents
        ]
        print_json({"query": question, "mode": str(options.mode), "results": results, "warnings": warnings})
    else:
        print_passages(question, documents, warnings)
    return 0 if documents else 1


def list_conversations(options: argparse.Namespace) -> int:
    with _store(options) as store:
        found = [head_of(conversation) for conversation in store.conversations(tenant(options))]
    lines = [f"{head['id']}  {counted(head['turns'], 'turn')}  {head['title']}" for head in found]
    print_result(
        options, {"conversations": found}, *(lines or ["There are no conversations. `shiguan chat` begins one."])
    )
    return 0


def export_conversation(options: argparse.Namespace) -> int:
    with _store(options) as store:
        conversation = store.find(tenant(options), options.id)
        if conversation is None:
            raise _no_conversation(options.id)
        turns = store.turns(tenant(options), options.id)
    print_result(options, shown_conversation(conversation, turns), export_markdown(conversation, turns).rstrip())
    return 0


def delete_conversation(options: argparse.Namespace) -> int:
    with _store(options) as store:
        if not store.delete(tenant(options), options.id):
            raise _no_conversation(options.id)
    print_result(options, {"id": options.id, "deleted": True}, f"Deleted {options.id}.")
    return 0


@contextmanager
def _store(options: argparse.Namespace) -> Iterator[ConversationStore]:
    refuse_missing_folder(options, options.data_dir)
    store = load_stores(options.deployment, conversations=True, data_dir=options.data_dir).get("conversations")
    if store is None:
        raise RefusedError(f"The deployment `{options.deployment}` keeps no conversations.")
    try:
        yield store
    finally:
        store.close()


def _no_conversation(name: str) -> RefusedError:
    return RefusedError(f"There is no conversation `{name}`. `shiguan conversations list` shows them.")
