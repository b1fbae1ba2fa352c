"""Asks an outside service for JSON, and trusts nothing that comes back: time, size, place and form are bounded."""

import json
import time
from collections.abc import Mapping
from typing import Any

import httpx
from charset_normalizer import from_bytes

from shiguan.agent.tools import ToolError

_SECONDS, _MOST_BYTES, _MOST_REDIRECTS = 9.0, 4_000_000, 3
_PASSING = {408, 425, 429}
# Compressed, a small answer could become a large one.
_HEADERS = {
    "User-Agent": "shiguan (an engine that answers from sources)",
    "Accept-Encoding": "identity",
}


def fetch_json(url: str, params: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Any:
    """Get JSON by GET; None where the service says that there is nothing (404); else a `ToolError`."""
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
