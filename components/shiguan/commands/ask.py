"""`shiguan ask`, `chat`, `search`, `timeline` and `conversations`."""

import argparse
import asyncio
import secrets
import sys
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from typing import Any

from shiguan.commands.answer_view import AnswerView, print_passages
from shiguan.commands.options import (
    open_library,
    open_runner,
    print_error,
    print_json,
    print_line,
    print_result,
    question_options,
    refuse_to_replace,
    tenant,
    typed_question,
)
from shiguan.commands.terminal import place_line
from shiguan.conversations import ConversationStore, check_conversation_id
from shiguan.engine.conversations import export_markdown, head_of, shown_conversation
from shiguan.engine.loading import load_stores
from shiguan.engine.options import read_options
from shiguan.engine.pipeline_run import checked_question
from shiguan.engine.runner import Runner
from shiguan.engine.timeline import matched, time_words
from shiguan.engine.timeline import timeline as list_times
from shiguan.errors import AnswerError, RefusedError
from shiguan.resources import write_json


def ask(options: argparse.Namespace) -> int:
    question = typed_question(options)
    checked_question(question)
    more = {"conversation_id": options.conversation, "budget": options.budget}
    asked = {"tenant_id": tenant(options), "explain": options.explain, **question_options(options, **more)}
    with open_runner(options, keep_receipt=_writing(options), keep_prompts=True) as runner:
        # Closing the runner waits for a summary of the conversation, so the answer is printed first.
        if options.json:
            print_json(runner.ask(question, **asked))
        else:
            asyncio.run(_show(runner, question, asked))
    return 0


async def _show(runner: Runner, question: str, asked: dict[str, Any]) -> None:
    with AnswerView(question) as view:
        async with aclosing(runner.stream(question, **asked)) as events:
            async for event in events:
                if event.error is not None:
                    raise event.error
                view.show(event.name, event.data)


def chat(options: argparse.Namespace) -> int:
    conversation = options.conversation or f"chat-{secrets.token_hex(4)}"
    check_conversation_id(conversation)
    if not options.json:
        print_line(
            f"Conversation {conversation}. quit or Ctrl-D ends it; `--conversation {conversation}` continues it."
        )
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
                print_error(str(error), as_json=options.json)
    return 0


def _next_question(*, prompt: bool) -> str | None:
    try:
        line = input("> " if prompt and sys.stdin.isatty() else "").strip()
    except EOFError:
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
        checked_question(question)
        with open_runner(options, outputs=["documents"]) as runner:
            asked = read_options({"when": options.when, "sources": options.source, "top_k": 50}).given()
            found, _ = runner.search(question, tenant_id=tenant(options), **asked)
        children = matched(found)
    known = {"when": options.when, "sources": options.source, "children": children}
    times = list_times(open_library(options), tenant_id=tenant(options), **known)
    lines = [f"{time_words(line)}\n  {' '.join(line['text'].split())}\n  {place_line(line)}" for line in times["lines"]]
    if times["count"] > len(lines):
        lines.append(f"These are the first {len(lines)} of {times['count']:,}; narrow them with --when or a question.")
    print_result(options, times, *lines)
    return 0


def search(options: argparse.Namespace) -> int:
    question = typed_question(options)
    checked_question(question)
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
        print_json({"query": question, "mode": options.mode, "results": results, "warnings": warnings})
    else:
        print_passages(question, documents, warnings)
    return 0


def list_conversations(options: argparse.Namespace) -> int:
    with _store(options) as store:
        found = [head_of(conversation) for conversation in store.conversations(tenant(options))]
    lines = [
        f"{head['id']}  {head['turns']} turn{'' if head['turns'] == 1 else 's'}  {head['title']}" for head in found
    ]
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
    store = load_stores(options.deployment, conversations=True, data_dir=options.data_dir).get("conversations")
    if store is None:
        raise RefusedError(f"The deployment `{options.deployment}` keeps no conversations.")
    try:
        yield store
    finally:
        store.close()


def _no_conversation(name: str) -> RefusedError:
    return RefusedError(f"There is no conversation `{name}`. `shiguan conversations list` shows them.")
