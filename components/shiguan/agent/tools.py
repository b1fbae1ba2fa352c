"""What a tool of the agent is, how a model is told of it, and how it asks an outside service."""

import json
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

import httpx
from charset_normalizer import from_bytes
from haystack import Document
from haystack.tools import Tool
from jsonschema import Draft202012Validator

from shiguan.llm.source_blocks import neutral_attribute
from shiguan.resources import read_table, resource_folder

_LONGEST_DESCRIPTION = 500
_SECONDS, _MOST_BYTES, _MOST_REDIRECTS = 9.0, 4_000_000, 3
_PASSING = {408, 425, 429}
# Compressed, a small answer could become a large one.
_HEADERS = {
    "User-Agent": "shiguan (an engine that answers from sources)",
    "Accept-Encoding": "identity",
}


class ToolError(Exception):
    """A tool gave nothing that could be used; `passing` if the same call may succeed a little later."""

    def __init__(self, reason: str, *, passing: bool = False) -> None:
        self.passing = passing
        super().__init__(reason)


class WrongArgumentsError(Exception):
    """A call's arguments fit the schema and still make no sense to the tool."""


class AgentTool:
    """
    A component whose `run` takes what a model says, and gives `documents`.

    `filters`, `passages` (the numbered ones so far), `retrieval` and `language` of its `run` come from the agent, never
    from the model: they are no part of the definition, and an argument that is none is refused.
    """

    tool_name = ""

    def definition(self, language: str) -> Tool:
        """Tell a model what a tool of our own does and takes, from `prompts/agent.yml`; the same bytes each time."""
        told = agent_texts()["tools"][self.tool_name]
        properties = {
            parameter: {
                "description": schema[_language(language)],
                **{key: value for key, value in schema.items() if key not in ("en", "zh")},
            }
            for parameter, schema in told["parameters"].items()
        }
        description = told["description"][_language(language)]
        return Tool(self.tool_name, description, object_schema(properties, list(properties)), function=defined_only)


def foreign_tool(name: str, told: str, parameters: dict[str, Any]) -> Tool:
    """Write the definition of a tool of somebody else: what is told of it is shortened and made harmless."""
    return Tool(name, neutral_attribute(told)[:_LONGEST_DESCRIPTION], parameters, function=defined_only)


def object_schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """Write the schema of arguments that may have these properties and no others."""
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def defined_only(**_: Any) -> Any:
    """Stand in for the function of a definition: the agent runs the component, with what a model cannot say."""
    raise NotImplementedError


def argument_problem(tool: Tool, arguments: dict[str, Any]) -> str | None:
    """Say what is wrong with a call's arguments, without repeating all of a long one."""
    error = next(Draft202012Validator({**tool.parameters, "additionalProperties": False}).iter_errors(arguments), None)
    return " ".join(error.message.split())[:200] if error is not None else None


def sentence(name: str, language: str, **values: str) -> str:
    """Give one of the agent's sentences."""
    text: str = agent_texts()["sentences"][name][_language(language)]
    return text.format(**values)


def found_outside(tool: str, text: str, *, title: str, address: str) -> Document:
    """Make a passage of what a tool found outside the library: shown as the tool's, with the record's address."""
    meta = {"source": f"{tool} {address}", "title": title, "origin": "tool", "anchor": {"url": address}}
    return Document(content=text, meta=meta)


def _language(language: str) -> str:
    return "zh" if language == "zh" else "en"


@cache
def agent_texts() -> dict[str, Any]:
    """Read what the agent says beside its prompt."""
    return read_table(resource_folder("prompts") / "agent.yml")


def fetch_json(url: str, params: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Any:
    """
    Get JSON by GET and trust nothing that comes back: time, size, place and form are bounded.

    None where the service says that there is nothing (404); else a `ToolError`.
    """
    try:
        with httpx.Client(timeout=_SECONDS, headers={**_HEADERS, **(headers or {})}) as client:
            request = client.build_request("GET", httpx.URL(url).copy_merge_params(dict(params)))
            return _answer(client, request, time.monotonic() + _SECONDS)
    except httpx.TransportError as error:
        raise ToolError(f"{_host(url)} could not be reached ({type(error).__name__})", passing=True) from error
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise ToolError(f"{_host(url)} cannot be asked ({type(error).__name__})") from error


def _answer(client: httpx.Client, request: httpx.Request, deadline: float) -> Any:
    host = request.url.host
    for _ in range(_MOST_REDIRECTS + 1):
        response = client.send(request, stream=True)
        try:
            if response.next_request is None:
                return _content(response, deadline)
            request = response.next_request
            if request.url.host != host:
                raise ToolError(f"{host} sent us on to another host")
        finally:
            response.close()
    raise ToolError(f"{host} sent us on more than {_MOST_REDIRECTS} times")


def _content(response: httpx.Response, deadline: float) -> Any:
    host, status = response.url.host, response.status_code
    if status == 404:
        return None
    if status != 200:
        raise ToolError(f"{host} answered {status}", passing=status in _PASSING or status >= 500)
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ToolError(f"{host} sent a compressed answer, which was not asked for")
    body = bytearray()
    for part in response.iter_raw():
        body += part
        if len(body) > _MOST_BYTES:
            raise ToolError(f"{host} sent more than {_MOST_BYTES:,} bytes")
        if time.monotonic() > deadline:
            raise ToolError(f"{host} took longer than {_SECONDS:g} s", passing=True)
    try:
        return json.loads(_text(bytes(body), response.charset_encoding))
    except (ValueError, RecursionError) as error:
        kind = "a web page" if body.lstrip()[:1] == b"<" else "something that is no JSON"
        raise ToolError(f"{host} sent {kind}") from error


def _text(body: bytes, charset: str | None) -> str:
    try:
        return body.decode(charset or "utf-8-sig")
    except (LookupError, UnicodeDecodeError):
        return str(from_bytes(body).best() or "")


def _host(url: str) -> str:
    return url.partition("//")[2].partition("/")[0].rpartition("@")[2] or "the service"
