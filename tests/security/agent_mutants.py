"""Cuts into the tools of the mode `agent`: what it may call, what that may read, and who says whose it is."""

from collections.abc import Iterator
from typing import Any

from tests.security.mutant_parts import (
    FILTER_RETRIEVER,
    WINDOW,
    WRITER,
    Change,
    add,
    adding,
    connect,
    filter_retriever,
    library_stores,
    part,
)

WIKIPEDIA = "shiguan.agent.wikipedia_search.WikipediaSearch"
LIBRARY = "shiguan.agent.library_search.LibrarySearch"
MCP = "haystack_integrations.tools.mcp.mcp_tool"


def _with_data(type_: str, **data: Any) -> dict[str, Any]:
    return {"type": type_, "data": data}


_HTTP = {"type": f"{MCP}.StreamableHttpServerInfo", "url": "https://example.org/mcp"}
_SHELL = {"type": f"{MCP}.StdioServerInfo", "command": "sh"}
FOREIGN: dict[str, dict[str, Any]] = {
    "a component of the file's as a tool": _with_data(
        "haystack.tools.component_tool.ComponentTool", component=part(FILTER_RETRIEVER), name="everything"
    ),
    "a component as a tool, by parameters": part(
        "haystack.tools.component_tool.ComponentTool", component=part(FILTER_RETRIEVER)
    ),
    "a pipeline as a tool": part("haystack.tools.pipeline_tool.PipelineTool"),
    "a function as a tool": _with_data("haystack.tools.tool.Tool", function="os.system", name="run"),
    "a function as a tool, by parameters": part(
        "haystack.tools.tool.Tool", function="os.system", name="run", description="", parameters={}
    ),
    "a set of tools": part("haystack.tools.toolset.Toolset", tools=["os.system"]),
    "a tool set that is searched": part("haystack.tools.searchable_toolset.SearchableToolset", catalog=["os.system"]),
    "a tool of an MCP server": _with_data(f"{MCP}.MCPTool", name="run", server_info=_HTTP),
    "a program that speaks MCP": _with_data(f"{MCP}.MCPTool", name="run", server_info=_SHELL),
    "a program that speaks MCP, by parameters": part(f"{MCP}.MCPTool", name="run", server_info=_SHELL),
    "all tools of an MCP server": part(
        "haystack_integrations.tools.mcp.mcp_toolset.MCPToolset", server_info={"type": f"{MCP}.StdioServerInfo"}
    ),
    "an agent": part("haystack.components.agents.agent.Agent", tools=["os.system"]),
    "a runner of tools": part("haystack.components.tools.tool_invoker.ToolInvoker", tools=["os.system"]),
    "a connector": part(
        "haystack.components.connectors.openapi.OpenAPIConnector", openapi_spec="https://example.org/spec.json"
    ),
    "a fetcher of any address": part("haystack.components.fetchers.link_content.LinkContentFetcher"),
    "a search of the web": part("haystack.components.websearch.searchapi.SearchApiWebSearch"),
    "the engine itself": part("shiguan.engine.runner.Runner", mode="simple"),
    "a module that is no component": part("subprocess.Popen", args="sh"),
}
"""What no tool may be, by what it is."""


def agent_mutants(data: dict[str, Any]) -> Iterator[Change]:
    """Each is refused before anything of it runs."""
    for kind, spec in FOREIGN.items():
        yield f"{kind} is one tool more", lambda d, spec=spec: _tools(d).append(spec)
        yield f"{kind} stands for the agent", lambda d, spec=spec: d["components"].update(agent=spec)
        yield f"{kind} is a component", adding("more", spec)
        if "init_parameters" in spec:
            yield f"{kind} stands for the model", lambda d, spec=spec: _agent(d).update(chat_generator=spec)
            yield f"{kind} finds for the search", lambda d, spec=spec: _search(d).update(retriever=spec)
    yield from _named_tools()
    yield from _reading_tools(data)
    yield from _reached_tools()


def _named_tools() -> Iterator[Change]:
    for value in ("os.system", ["os.system"], {"type": LIBRARY}, [[{"type": LIBRARY}]], [{"function": "os.system"}]):
        yield f"the tools are {value}", lambda d, value=value: _agent(d).update(tools=value)
    for key in ("toolset", "hooks", "tool_callback", "tool_parsing_function", "handler"):
        yield f"the agent has a `{key}`", lambda d, key=key: _agent(d).update({key: "os.system"})
        yield f"a tool has a `{key}`", lambda d, key=key: _tools(d)[1]["init_parameters"].update({key: "os.system"})
    for name in ("PATH", "PGPASS", "SHIGUAN_API_KEYS", "SHIGUAN_METRICS_KEY"):
        sent = part(WIKIPEDIA, url=_variable(name))
        yield f"a tool's service is sent {name}", lambda d, sent=sent: _tools(d).append(sent)


def _variable(name: str) -> dict[str, Any]:
    return {"type": "env_var", "env_vars": [name], "strict": True}


def _reading_tools(data: dict[str, Any]) -> Iterator[Change]:
    for number, store in enumerate(library_stores(data)):
        spec = part(WINDOW, document_store=store)
        yield f"neighbours of store {number} are a tool", lambda d, spec=spec: _tools(d).append(spec)
        yield f"neighbours of store {number} are the model", lambda d, spec=spec: _agent(d).update(chat_generator=spec)
        writer, everything = part(WRITER, document_store=store), filter_retriever(store)
        yield f"a writer to store {number} is a tool", lambda d, spec=writer: _tools(d).append(spec)
        whole = adding("everything", everything, edges=[("everything.documents", "agent.documents")])
        yield f"store {number} is read whole into the agent", whole
        yield (
            f"a generator's tools hold store {number}",
            lambda d, tool=everything: _agent(d)["chat_generator"]["init_parameters"].update(tools=[tool]),
        )
    yield "there are two agents, one without filters", _second_agent


def _second_agent(d: dict[str, Any]) -> None:
    edges = [("prompt_builder.prompt", "second.messages"), ("context_builder.documents", "second.documents")]
    add(d, "second", d["components"]["agent"], edges=edges, outputs={"more": "second.replies"})


def _reached_tools() -> Iterator[Change]:
    yield "a caller sets the model's parameters", lambda d: d["inputs"].update(more=["agent.generation_kwargs"])
    yield "a caller names a function", lambda d: d["inputs"].update(more=["agent.streaming_callback"])
    yield "a caller filters what tools read", lambda d: d["inputs"]["filters"].append("agent.filters")
    yield "the question filters what tools read", lambda d: d["inputs"]["query"].append("agent.filters")
    yield "what was found filters what tools read", lambda d: connect(d, "parent_fetcher.documents", "agent.filters")


def _agent(d: dict[str, Any]) -> dict[str, Any]:
    parameters: dict[str, Any] = d["components"]["agent"]["init_parameters"]
    return parameters


def _search(d: dict[str, Any]) -> dict[str, Any]:
    parameters: dict[str, Any] = _tools(d)[0]["init_parameters"]
    return parameters


def _tools(d: dict[str, Any]) -> list[Any]:
    tools: list[Any] = _agent(d)["tools"]
    return tools
