"""`shiguan mcp`: the library as tools for programs that speak the Model Context Protocol, over stdin and stdout."""

import argparse
import asyncio
from contextlib import ExitStack
from functools import partial
from typing import Any

from shiguan.commands.options import print_line, tenant
from shiguan.engine.library import Library
from shiguan.engine.loading import first_mode, list_modes
from shiguan.engine.runner import Runner
from shiguan.errors import RefusedError
from shiguan.serving.long_work import LongWork
from shiguan.serving.mcp_tools import tool_server


def mcp(options: argparse.Namespace) -> int:
    whose = tenant(options)
    library = Library(options.deployment, data_dir=options.data_dir)
    passages = library.count(tenant_id=whose)
    modes = list_modes()[options.deployment]
    opened = ExitStack()

    runners: dict[str, Runner] = {}

    def runner(mode: str) -> Runner:
        if mode not in modes:
            raise RefusedError(f"There is no mode `{mode[:40]}`. Known: {', '.join(modes)}. Name one of these.")
        if mode not in runners:
            runners[mode] = opened.enter_context(Runner(options.deployment, mode, data_dir=options.data_dir))
        return runners[mode]

    async def ask(query: str, mode: str, conversation_id: str | None, tenant_id: str) -> dict[str, Any]:
        asked = await asyncio.to_thread(runner, mode)
        return await asked.ask_async(query, tenant_id=tenant_id, conversation_id=conversation_id)

    work = LongWork()

    async def verify(text: str, tenant_id: str) -> dict[str, Any]:
        return await work.run(tenant_id, "verify", partial(first.verify, text, tenant_id=tenant_id))

    with opened:
        first = runner(first_mode(options.deployment))
        first.warm_up()
        server = tool_server(library, modes, ask, first.search_async, verify, tenant=lambda: whose)
        # Standard output belongs to the protocol.
        ready = f"The library of `{whose}` with {passages:,} passages is ready for MCP on stdin and stdout."
        print_line(ready, error=True)
        server.run("stdio")
    return 0
