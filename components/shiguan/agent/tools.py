"""The base class of the agent's tools, how they are described to a model, and how they ask outside services."""

import asyncio
import json
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import httpx
from haystack import Document
from haystack.tools import Tool
from jsonschema import Draft202012Validator

from shiguan.bounded_http import UnwantedReplyError, bounded
from shiguan.resources import read_texts

Result = TypeVar("Result")

_SECONDS, _MOST_BYTES, _MOST_REDIRECTS = 9.0, 4_000_000, 3
_PASSING = {408, 425, 429}
_THREADS = 16


class ToolError(Exception):
    """A tool gave no usable result; `passing` if the same call may succeed a little later."""

    def __init__(self, reason: str, *, passing: bool = False) -> None:
        self.passing = passing
        super().__init__(reason)


class WrongArgumentsError(Exception):
    """The arguments of a call fit the schema and are still wrong for the tool."""


class AgentTool:
    """
    A component whose `run` takes the arguments of a model's call and returns `documents`.

    `filters`, `passages` (the numbered ones so far) and `language` come from the agent, never from the model: they are
    not in the definition, and an argument that is not in it is refused.
    """

    tool_name = ""

    def definition(self, language: str) -> Tool:
        """Describe the tool and its arguments, from `prompts/agent.yml`; the same bytes each time."""
        known = read_texts("agent")["tools"][self.tool_name]
        code = "zh" if language == "zh" else "en"
        properties = {
            name: {"description": schema[code], **{key: schema[key] for key in schema if key not in ("en", "zh")}}
            for name, schema in known["parameters"].items()
        }
        schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
        return Tool(self.tool_name, known["description"][code], schema, function=defined_only)

    def problem(self, arguments: dict[str, Any], definition: Tool) -> str | None:
        """Describe what is wrong with a call's arguments, if anything, in at most 200 characters."""
        error = next(Draft202012Validator(definition.parameters).iter_errors(arguments), None)
        return " ".join(error.message.split())[:200] if error is not None else None


def defined_only(**_: Any) -> Any:
    """Serve as the function of every definition, which is never called: the agent runs the component itself."""
    raise NotImplementedError


def sentence(name: str, language: str, **values: str) -> str:
    text: str = read_texts("agent")["sentences"][name]["zh" if language == "zh" else "en"]
    return text.format(**values)


def found_outside(tool: str, text: str, *, title: str, address: str) -> Document:
    """Make a passage of what a tool found outside the library, with the tool's name and the record's address."""
    meta = {"source": f"{tool} {address}", "title": title, "origin": "tool", "anchor": {"url": address}}
    return Document(content=text, meta=meta)


@cache
def _tools_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_default_executor(ThreadPoolExecutor(_THREADS, "shiguan-tools"))
    threading.Thread(target=loop.run_forever, name="shiguan-tools", daemon=True).start()
    return loop


async def run_apart(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a tool in the loop and threads of all tools: a stuck one blocks no other, one that calls `exit` fails."""

    async def contained() -> Result:
        try:
            return await work
        except Exception:
            raise
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            raise ToolError(f"it ended with {type(error).__name__}") from error

    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(contained(), _tools_loop()))


async def fetch_json(url: str, params: Mapping[str, Any]) -> Any:
    """Get JSON, with limits of time, size and redirects: None for 404, and a `ToolError` for any other failure."""
    host = url.partition("//")[2].partition("/")[0].rpartition("@")[2] or "the service"
    settings = bounded(_MOST_BYTES) | {"follow_redirects": True, "max_redirects": _MOST_REDIRECTS, "timeout": _SECONDS}
    settings["headers"]["User-Agent"] = "shiguan (an engine that answers from sources)"
    try:
        # One limit for name lookup, connection, head and body together.
        async with asyncio.timeout(_SECONDS), httpx.AsyncClient(verify=_trusted(), **settings) as client:
            response = await client.get(httpx.URL(url).copy_merge_params(dict(params)))
    except TimeoutError:
        raise ToolError(f"{host} took longer than {_SECONDS:g} s", passing=True) from None
    except UnwantedReplyError as error:
        raise ToolError(f"{host} {error}") from error
    except httpx.TransportError as error:
        raise ToolError(f"{host} could not be reached ({type(error).__name__})", passing=True) from error
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise ToolError(f"{host} cannot be asked ({type(error).__name__})") from error
    status = response.status_code
    if status == 404:
        return None
    if status != 200:
        raise ToolError(f"{host} answered {status}", passing=status in _PASSING or status >= 500)
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError) as error:
        kind = "a web page" if response.content.lstrip()[:1] == b"<" else "something that is not JSON"
        raise ToolError(f"{host} sent {kind}") from error


@cache
def _trusted() -> Any:
    return httpx.create_ssl_context()  # reads the system's certificates, 20 ms each time, in the loop of all tools
