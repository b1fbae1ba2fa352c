"""`shiguan conversations`: list, show, export and delete what was asked under an id."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from shiguan.commands import AddCommand
from shiguan.commands.options import say, tell, tenant
from shiguan.errors import RefusedError
from shiguan.resources import data_folder

if TYPE_CHECKING:
    from shiguan.conversations import ConversationStore


def register(add: AddCommand) -> None:
    add("conversations list", _list, "list the conversations of a tenant")
    for name, command, text in (
        ("conversations export", _export, "print a conversation as Markdown, or with --json as JSON"),
        ("conversations delete", _delete, "remove a conversation with its summaries"),
    ):
        add(name, command, text).add_argument("id", metavar="ID", help="as `conversations list` shows")


def _list(options: argparse.Namespace) -> int:
    from shiguan.conversations import head_of

    with _store(options) as store:
        found = [head_of(one) for one in store.conversations(tenant(options))]
    lines = [f"{one['id']}  {one['turns']} turn{'' if one['turns'] == 1 else 's'}  {one['title']}" for one in found]
    tell(options, {"conversations": found}, *(lines or ["There are no conversations. `shiguan chat` begins one."]))
    return 0


def _export(options: argparse.Namespace) -> int:
    from shiguan.conversations import export_json, export_markdown

    with _store(options) as store:
        conversation = store.find(tenant(options), options.id)
        if conversation is None:
            raise _none(options.id)
        turns = store.turns(tenant(options), options.id)
    say((export_json if options.json else export_markdown)(conversation, turns).rstrip())
    return 0


def _delete(options: argparse.Namespace) -> int:
    from shiguan.llm.reply_cache import TenantCache

    with _store(options) as store:
        if not store.delete(tenant(options), options.id):
            raise _none(options.id)
    TenantCache(data_folder(options.data_dir), tenant(options)).clear()  # its summaries may stand there
    tell(options, {"id": options.id, "deleted": True}, f"Deleted {options.id}.")
    return 0


@contextmanager
def _store(options: argparse.Namespace) -> "Iterator[ConversationStore]":
    from shiguan.engine.conversations import open_conversations

    conversations = open_conversations(options.deployment, data_dir=options.data_dir)
    if conversations is None:
        raise RefusedError(f"The deployment `{options.deployment}` keeps no conversations: it has no `memory.yml`.")
    try:
        yield conversations.store
    finally:
        conversations.close()


def _none(name: str) -> RefusedError:
    return RefusedError(f"There is no conversation `{name}`. `shiguan conversations list` shows them.")
