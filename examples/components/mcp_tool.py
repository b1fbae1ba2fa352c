"""
A tool of an MCP server for `ToolAgent`.

A tool of your own is a component on `AgentTool`: `tool_name` and `definition` are what the model reads, `run_async`
takes the arguments of its call, checked against the definition, and returns `documents`. `found_outside` makes a
passage with the tool's name and the record's address, which is cited and checked like every other.

Describe the tool yourself: what a server says about its tools, a model would read as an instruction. Copy the class
into a module of yours, allow that with `SHIGUAN_ALLOWED_TYPES`, and add it to the `tools` of `agent`.

It prints:

    ['place']
    find_map https://maps.example.org/mcp: A map of Kaifeng was carved in 1136.
"""

from haystack import Document, component
from haystack.tools import Tool
from mcp import Client
from mcp.server import MCPServer

from shiguan.agent.tools import AgentTool, ToolError, defined_only, found_outside
from shiguan.llm.calls import blocking


@component
class MapSearch(AgentTool):
    tool_name = "find_map"

    def __init__(self, url: str = "https://maps.example.org/mcp"):
        self.url = url
        self.server = url

    def definition(self, language):
        places = {"place": {"type": "string", "description": "The name of a place."}}
        schema = {"type": "object", "properties": places, "required": ["place"], "additionalProperties": False}
        return Tool(self.tool_name, "Finds maps of a place.", schema, function=defined_only)

    @component.output_types(documents=list[Document])
    async def run_async(self, place: str):
        async with Client(self.server) as client:
            result = await client.call_tool("find_map", {"place": place})
        if result.is_error:
            raise ToolError("the server of the maps reported an error")
        text = "\n".join(part.text for part in result.content if part.type == "text")
        found = found_outside(self.tool_name, text, title="", address=self.url)
        return {"documents": [found] if text else []}

    run = blocking(run_async)


server = MCPServer("maps")  # in the place of the one at `url`


@server.tool()
def find_map(place: str) -> str:
    """Find maps."""
    return f"A map of {place} was carved in 1136."


tool = MapSearch()
tool.server = server
print(list(tool.definition("en").parameters["properties"]))
for document in tool.run(place="Kaifeng")["documents"]:
    print(f"{document.meta['source']}: {document.content}")
