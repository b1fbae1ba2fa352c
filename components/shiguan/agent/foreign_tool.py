"""Offers a Haystack tool to the model, such as one of an MCP server."""

import json
from typing import Any

from haystack import Document
from haystack.tools import Tool

from shiguan.agent.tools import AgentTool, ToolError, defined_only, found_outside
from shiguan.llm.source_blocks import neutral_attribute

_LONGEST_DESCRIPTION, _LONGEST_SCHEMA = 500, 4_000


class ForeignTool(AgentTool):
    """
    A Haystack tool among those of `ToolAgent`; its result becomes a passage from outside.

    Its description is shortened and made harmless before a model reads it. Arguments are checked by its server alone: a
    schema from outside may name addresses to fetch, or patterns that never finish.
    """

    def __init__(self, tool: Tool) -> None:
        self.tool_name = tool.name
        self.tool = tool
        self.address = _address_of(tool)

    def definition(self, language: str) -> Tool:  # noqa: ARG002  # a server has only one language
        """Ask the server for the arguments of its tool; the description is the file's."""
        if hasattr(self.tool, "warm_up"):  # in Haystack 3 only tools that need it have it
            self.tool.warm_up()
        length = len(json.dumps(self.tool.parameters))
        if length > _LONGEST_SCHEMA:
            raise ToolError(f"its arguments are described in {length:,} characters, more than {_LONGEST_SCHEMA:,}")
        described = neutral_attribute(self.tool.description)[:_LONGEST_DESCRIPTION]
        return Tool(self.tool_name, described, self.tool.parameters, function=defined_only)

    def problem(self, arguments: dict[str, Any], definition: Tool) -> str | None:  # noqa: ARG002
        """Leave the arguments to the server."""
        return None

    def run(self, **arguments: Any) -> dict[str, list[Document]]:
        """
        Call the tool.

        :param arguments: As in its own definition.
        :returns: `documents`, one with the text of the result; none if that is empty.
        """
        try:
            text = _text_of(self.tool.invoke(**arguments)).strip()
        except Exception as error:  # the client may raise anything
            behind = error.__cause__ or error
            reason = f"`{self.tool_name}` failed at its server ({type(behind).__name__})"
            raise ToolError(reason, passing=isinstance(behind, TimeoutError | ConnectionError)) from error
        return {"documents": [found_outside(self.tool_name, text, title="", address=self.address)] if text else []}


def _address_of(tool: Tool) -> str:
    """Return the address of a tool's server, which `MCPTool` writes and has no attribute for."""
    try:
        return str(tool.to_dict()["data"]["server_info"]["url"] or "")
    except Exception:  # no server, or a tool that cannot be written
        return ""


def _text_of(result: Any) -> str:
    """Return the texts of an MCP result, or any other result as it is."""
    try:
        parts = json.loads(result)["content"]
        return "\n".join(part["text"] for part in parts if part.get("type") == "text")
    except (AttributeError, KeyError, TypeError, ValueError):
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
