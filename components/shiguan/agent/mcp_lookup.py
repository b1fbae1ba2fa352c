"""Offers one tool of an MCP server to the model."""

import json
from typing import Any

from haystack import Document, component
from haystack.lazy_imports import LazyImport
from haystack.tools import Tool
from haystack.utils import Secret

from shiguan.agent.tools import AgentTool, ToolError, foreign_tool, found_outside

with LazyImport('Run `pip install "shiguan[agent]"`') as mcp_import:
    from haystack_integrations.tools.mcp import MCPTool, StreamableHttpServerInfo

_SECONDS = 9


@component
class MCPLookup(AgentTool):
    """
    Lets the model call one tool of an MCP server, which the pipeline names with its address.

    Haystack's `MCPTool` speaks to the server, over HTTP alone: a pipeline file starts no program. What the server says
    of its tool is shortened and made harmless before a model reads it, and its results are passages from outside.
    """

    def __init__(self, url: str, *, tool_name: str, token: Secret | None = None) -> None:
        """
        Name the server and its tool.

        :param url: The server's address, such as `https://example.org/mcp`.
        :param tool_name: The tool, as the server calls it.
        :param token: Sent as a bearer token; None for none.
        """
        self.url = url
        self.tool_name = tool_name
        self.token = token
        self._tool: Any = None

    def definition(self, language: str) -> Tool:  # noqa: ARG002  # a server has one language
        """Ask the server what its tool does and takes."""
        tool = self._connected()
        return foreign_tool(self.tool_name, tool.description, tool.parameters)

    @component.output_types(documents=list[Document])
    def run(self, **arguments: Any) -> dict[str, list[Document]]:
        """
        Call the tool.

        :param arguments: What the server's own definition asks for.
        :returns: `documents`, one with all texts of the result; none if there are none.
        :raises ToolError: If the server or its tool fails.
        """
        try:
            result = json.loads(self._connected().function(**arguments))
            texts = [part["text"] for part in result["content"] if part.get("type") == "text"]
        except Exception as error:  # the client's own kinds, and whatever a server sends that is no result
            self._tool = None  # a session that broke is not used again
            lost = isinstance(error, TimeoutError | ConnectionError)
            reason = f"`{self.tool_name}` failed at the MCP server ({type(error).__name__})"
            raise ToolError(reason, passing=lost) from error
        text = "\n".join(texts).strip()
        return {"documents": [found_outside(self.tool_name, text, title="", address=self.url)] if text else []}

    def _connected(self) -> Any:
        if self._tool is None:
            mcp_import.check()
            server = StreamableHttpServerInfo(url=self.url, token=self.token, timeout=_SECONDS, max_retries=0)
            # Connected later it would not have the server's description.
            self._tool = MCPTool(
                self.tool_name,
                server,
                connection_timeout=_SECONDS,
                invocation_timeout=_SECONDS,
                eager_connect=True,
            )
        return self._tool
