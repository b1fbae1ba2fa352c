"""Cuts into the tools of the mode `agent`: what it may call, what that may read, and who says whose it is."""

from collections.abc import Iterator
from typing import Any

from tests.security.mutant_parts import FILTER_RETRIEVER, WRITER, Change, add, connect, filter_retriever, stores_of

LIBRARY = "shiguan.agent.library_search.LibrarySearch"
READER = "shiguan.agent.passage_reader.PassageReader"
WINDOW = "haystack.components.retrievers.sentence_window_retriever.SentenceWindowRetriever"
MCP = "haystack_integrations.tools.mcp.mcp_tool"
MERGING = "haystack.components.retrievers.auto_merging_retriever.AutoMergingRetriever"

FOREIGN: dict[str, dict[str, Any]] = {
    "a component of the file's as a tool": {
        "type": "haystack.tools.component_tool.ComponentTool",
        "data": {"component": {"type": FILTER_RETRIEVER, "init_parameters": {}}, "name": "everything"},
    },
    "a component as a tool, by parameters": {
        "type": "haystack.tools.component_tool.ComponentTool",
        "init_parameters": {"component": {"type": FILTER_RETRIEVER, "init_parameters": {}}},
    },
    "a pipeline as a tool": {"type": "haystack.tools.pipeline_tool.PipelineTool", "init_parameters": {}},
    "a function as a tool": {"type": "haystack.tools.tool.Tool", "data": {"function": "os.system", "name": "run"}},
    "a function as a tool, by parameters": {
        "type": "haystack.tools.tool.Tool",
        "init_parameters": {"function": "os.system", "name": "run", "description": "", "parameters": {}},
    },
    "a set of tools": {"type": "haystack.tools.toolset.Toolset", "init_parameters": {"tools": ["os.system"]}},
    "a tool set that is searched": {
        "type": "haystack.tools.searchable_toolset.SearchableToolset",
        "init_parameters": {"catalog": ["os.system"]},
    },
    "a program that speaks MCP": {
        "type": "haystack_integrations.tools.mcp.mcp_tool.MCPTool",
        "data": {
            "name": "run",
            "server_info": {"type": "haystack_integrations.tools.mcp.mcp_tool.StdioServerInfo", "command": "sh"},
        },
    },
    "a program that speaks MCP, by parameters": {
        "type": "haystack_integrations.tools.mcp.mcp_tool.MCPTool",
        "init_parameters": {
            "name": "run",
            "server_info": {"type": "haystack_integrations.tools.mcp.mcp_tool.StdioServerInfo", "command": "sh"},
        },
    },
    "all tools of an MCP server": {
        "type": "haystack_integrations.tools.mcp.mcp_toolset.MCPToolset",
        "init_parameters": {"server_info": {"type": "haystack_integrations.tools.mcp.mcp_tool.StdioServerInfo"}},
    },
    "an agent": {"type": "haystack.components.agents.agent.Agent", "init_parameters": {"tools": ["os.system"]}},
    "a runner of tools": {
        "type": "haystack.components.tools.tool_invoker.ToolInvoker",
        "init_parameters": {"tools": ["os.system"]},
    },
    "a connector": {
        "type": "haystack.components.connectors.openapi.OpenAPIConnector",
        "init_parameters": {"openapi_spec": "https://example.org/spec.json"},
    },
    "a fetcher of any address": {
        "type": "haystack.components.fetchers.link_content.LinkContentFetcher",
        "init_parameters": {},
    },
    "a search of the web": {
        "type": "haystack.components.websearch.searchapi.SearchApiWebSearch",
        "init_parameters": {},
    },
    "the engine itself": {"type": "shiguan.engine.runner.Runner", "init_parameters": {"mode": "simple"}},
    "a module that is no component": {"type": "subprocess.Popen", "init_parameters": {"args": "sh"}},
}
"""What no tool may be, by what it is."""


def agent_mutants(data: dict[str, Any]) -> Iterator[Change]:
    """Each is refused before anything of it runs."""
    for kind, spec in FOREIGN.items():
        for number, name in enumerate(("the search", "the reader")):
            yield f"{kind} stands for {name}", lambda d, at=number, spec=spec: _tools(d).__setitem__(at, spec)
        yield f"{kind} is one tool more", lambda d, spec=spec: _tools(d).append(spec)
        yield f"{kind} stands for the agent", lambda d, spec=spec: d["components"].update(agent=spec)
        yield f"{kind} is a component", lambda d, spec=spec: add(d, "more", spec)
        if "init_parameters" in spec:
            yield (
                f"{kind} stands for the model",
                lambda d, spec=spec: _agent(d).update(chat_generator=spec),
            )
            yield (
                f"{kind} finds for the search",
                lambda d, spec=spec: _search(d).update(retriever=spec),
            )
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
        yield f"an MCP server is sent {name}", lambda d, name=name: _tools(d).append(mcp_tool(token=_variable(name)))
        headers = {"X-Key": _variable(name)}
        yield f"an MCP server is sent {name} as a header", lambda d, h=headers: _tools(d).append(mcp_tool(headers=h))
    for kind in ("StdioServerInfo", "SSEServerInfo"):
        other = f"{MCP}.{kind}"
        yield f"an MCP server is reached by {kind}", lambda d, type_=other: _tools(d).append(mcp_tool(type=type_))
    for key in ("outputs_to_string", "outputs_to_state"):
        handler = {"x": {"source": "x", "handler": "os.system"}}
        yield (
            f"a result of an MCP server goes through {key}",
            lambda d, key=key, handler=handler: _tools(d).append(mcp_tool(more={key: handler})),
        )
    yield "an MCP server's class is foreign", lambda d: _tools(d).append(mcp_tool(type="os.system"))


def mcp_tool(*, more: dict[str, Any] | None = None, **server: Any) -> dict[str, Any]:
    """A tool of an MCP server, as Haystack writes it."""
    info = {"type": f"{MCP}.StreamableHttpServerInfo", "url": "https://example.org/mcp", **server}
    return {"type": f"{MCP}.MCPTool", "data": {"name": "maps", "server_info": info, **(more or {})}}


def _variable(name: str) -> dict[str, Any]:
    return {"type": "env_var", "env_vars": [name], "strict": True}


def _reading_tools(data: dict[str, Any]) -> Iterator[Change]:
    for number, store in enumerate(
        store for store in stores_of(data["components"]) if "conversation" not in store["type"]
    ):
        for kind in (WINDOW, MERGING):
            short = kind.rpartition(".")[2]
            spec = {"type": kind, "init_parameters": {"document_store": store}}
            yield f"{short} of store {number} is a tool", lambda d, spec=spec: _tools(d).append(spec)
            yield (
                f"{short} of store {number} is the search",
                lambda d, spec=spec: _search(d).update(retriever=spec),
            )
            for place in ("bm25_retriever", "embedding_retriever", "parent_fetcher"):
                yield (
                    f"{short} of store {number} is the {place} of the search",
                    lambda d, spec=spec, place=place: _search(d)["retriever"]["init_parameters"].update({place: spec}),
                )
            yield (
                f"{short} of store {number} is the model",
                lambda d, spec=spec: _agent(d).update(chat_generator=spec),
            )
        writer = {"type": WRITER, "init_parameters": {"document_store": store}}
        yield f"a writer to store {number} is a tool", lambda d, spec=writer: _tools(d).append(spec)
        reader = {"type": READER, "init_parameters": {"document_store": store}}
        yield (
            f"a reader of store {number} stands outside without filters",
            lambda d, spec=reader: add(d, "aside", spec, inputs={"number": ["aside.number"]}),
        )
        yield (
            f"store {number} is read whole into the agent",
            lambda d, store=store: add(
                d, "everything", filter_retriever(store), edges=[("everything.documents", "agent.documents")]
            ),
        )
        yield (
            f"a generator's tools hold store {number}",
            lambda d, store=store: _agent(d)["chat_generator"]["init_parameters"].update(
                tools=[filter_retriever(store)]
            ),
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
