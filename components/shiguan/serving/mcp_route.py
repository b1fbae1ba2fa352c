"""/mcp: the tools of the library over streamable HTTP, behind the same keys as every other route."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from haystack import Document
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import Route

from shiguan.engine.library import Library
from shiguan.serving.authentication import current_principal
from shiguan.serving.engine import Engine, read_request
from shiguan.serving.error_replies import counted
from shiguan.serving.mcp_tools import tool_server


@asynccontextmanager
async def mcp_route(engine: Engine, library: Library) -> AsyncIterator[Route]:
    """Give the route while its tools can be called: a call is one request, let in, counted and cut off as any other."""

    async def ask(query: str, mode: str, conversation_id: str | None, tenant_id: str) -> dict[str, Any]:
        given = {"query": query, "mode": mode, "conversation_id": conversation_id, "include_sources": False}
        return await engine.ask(read_request(given), tenant_id)

    def search(query: str, top_k: int, tenant_id: str) -> tuple[list[Document], list[str]]:
        return engine.search(query, tenant_id, top_k=top_k)

    server = tool_server(
        library, engine.modes, ask, search, tenant=lambda: current_principal().tenant_id, words_of=_words_of
    )
    # Who may ask, from where and how much, is decided before a request comes here.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    server.streamable_http_app(json_response=True, stateless_http=True, transport_security=unchecked)
    async with server.session_manager.run():
        yield Route("/mcp", StreamableHTTPASGIApp(server.session_manager), methods=["POST"])


def _words_of(error: Exception) -> str:
    told = counted(error).body()["error"]
    return f"{told['message']} {told['next_step']}".strip()
