"""`shiguan mcp`: the library as tools for programs that speak the Model Context Protocol, over stdin and stdout."""

import argparse
from contextlib import closing

from shiguan.commands.options import open_library, print_line, tenant
from shiguan.engine.loading import first_mode
from shiguan.serving.engine import Engine
from shiguan.serving.mcp_tools import tool_server
from shiguan.serving.settings import ServingSettings

_DAY = 86_400.0


def mcp(options: argparse.Namespace) -> int:
    whose = tenant(options)
    passages = open_library(options).count(tenant_id=whose)
    # The caller decides how long an answer may take; nobody asks for its receipt later.
    given = {"deployment": options.deployment, "data_dir": options.data_dir}
    settings = ServingSettings(**given, request_timeout=_DAY, receipt_days=0)
    with closing(Engine(settings)) as engine:
        engine.runner(first_mode(options.deployment)).warm_up()
        server = tool_server(engine, tenant=lambda: whose)
        # Standard output belongs to the protocol.
        ready = f"The library of `{whose}` with {passages:,} passages is ready for MCP on stdin and stdout."
        print_line(ready, error=True)
        server.run("stdio")
    return 0
