"""The HTTP side of the stand-in LLM: the chat completions API of OpenAI, streaming and not."""

import json
import re
import select
import socket
import time
from collections.abc import Iterable, Iterator
from typing import Any

from tests.doubles.local_server import LocalHandler, LocalServer
from tests.doubles.stand_in_script import Call, Fault

# A token is a Han character, a run of letters or digits with the space before it, or any other character.
_TOKEN = re.compile(r"\s*(?:[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+|.)|\s+", re.DOTALL)


class _GoneError(Exception):
    """The client closed the connection."""


class _StoppedError(Exception):
    """The server stops."""


class StandInServer(LocalServer):
    """Stopping wakes every call that waits."""

    def __init__(self, port: int, llm: Any) -> None:
        self.llm = llm
        self.stopping, self._stop = socket.socketpair()
        super().__init__(StandInHandler, ("127.0.0.1", port))

    def hang_up(self) -> None:
        self._stop.close()
        super().hang_up()

    def server_close(self) -> None:
        super().server_close()
        self.stopping.close()


class StandInHandler(LocalHandler):
    server: StandInServer

    def do_GET(self) -> None:
        llm = self.server.llm
        path = self.path.removeprefix("/v1")
        if path == "/models":
            model = {"id": "stand-in", "object": "model", "created": 0, "owned_by": "stand-in"}
            self._send(200, {"object": "list", "data": [model]})
        elif path == "/stand-in/stats":
            self._send(200, llm.stats())
        elif path == "/stand-in/take":
            taken = llm.stats()
            llm.reset()  # before the caller goes on
            self._send(200, taken)
        else:
            self._error(404, f"There is nothing at {self.path}.")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        llm = self.server.llm
        if self.path.removeprefix("/v1") != "/chat/completions":
            self._error(404, f"There is nothing at {self.path}.")
            return
        if llm.api_key is not None and self.headers.get("Authorization") != f"Bearer {llm.api_key}":
            self._error(401, "The API key is not the expected one.")
            return
        try:
            body = json.loads(raw)
        except ValueError:
            self._error(400, "The body is no JSON.")
            return
        headers = {name.lower(): value for name, value in self.headers.items() if name.lower() != "authorization"}
        call = Call(body, _prompt(body), headers, time.perf_counter())
        llm.begin(call)
        try:
            self._chat(call)
        except (_GoneError, BrokenPipeError, ConnectionResetError):
            call.disconnected = True
            self.close_connection = True
        except _StoppedError:
            self.close_connection = True
        finally:
            llm.end(call)

    def _chat(self, call: Call) -> None:
        problem = _problem(call.body)
        if problem:
            call.status = 400
            self._error(400, problem)
            return
        if call.body.get("tools") and self.server.llm.refuses_tools:
            call.status = 400
            self._error(400, f"{call.body['model']} does not support tools.")
            return
        reply, fault = self.server.llm.answer(call)
        if fault.hang:
            self._wait(None)
        if fault.reset:
            self.close_connection = True
            return
        call.status = fault.status or 200
        if fault.status:
            extra = {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
            self._error(fault.status, f"The stand-in was told to answer {fault.status}.", extra)
            return
        calls = reply.get("tool_calls") if isinstance(reply, dict) else None
        if calls is not None:
            self._call_tools(call, calls)
            return
        call.reply = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
        tokens = _TOKEN.findall(call.reply)
        limit = call.body.get("max_completion_tokens") or call.body.get("max_tokens")
        finish = "length" if limit and limit < len(tokens) else "stop"
        tokens = tokens[:limit]
        prompt_tokens = len(_TOKEN.findall(call.prompt))
        usage: dict[str, Any] = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": len(tokens),
            "total_tokens": prompt_tokens + len(tokens),
        }
        if self.server.llm.cached_tokens is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": self.server.llm.cached_tokens}
        call.usage = None if fault.malformed or fault.truncate_after is not None else usage
        if call.body.get("stream"):
            self._stream(call, _deltas(tokens, self.server.llm.tokens_per_event), finish, usage, fault)
        else:
            self._whole(call, tokens, finish, usage, fault)

    def _whole(self, call: Call, tokens: list[str], finish: str, usage: dict[str, int], fault: Fault) -> None:
        llm = self.server.llm
        self._wait(llm.time_to_first_token + llm.time_per_token * max(len(tokens) - 1, 0))
        message = {"role": "assistant", "content": "".join(tokens), "refusal": None}
        choices = [
            {"index": index, "message": message, "finish_reason": finish, "logprobs": None}
            for index in range(call.body.get("n") or 1)
        ]
        payload = _envelope(call, "chat.completion", choices) | ({"usage": usage} if llm.reports_usage else {})
        if fault.malformed:
            self._send(200, json.dumps(payload)[: -len(json.dumps(usage)) // 2].encode())
        elif fault.truncate_after is not None:
            whole = json.dumps(payload, ensure_ascii=False).encode()
            self._send(200, whole[: len(whole) // 2], length=len(whole))
            self.close_connection = True
        else:
            self._send(200, payload)

    def _call_tools(self, call: Call, calls: list[dict[str, Any]]) -> None:
        """Ask for tools: a list of `name` and `arguments`, which may be a text that is no JSON."""
        call.reply = json.dumps(calls, ensure_ascii=False)
        made = [
            {"id": f"id-{place}", "type": "function", "function": {"name": one["name"], "arguments": _text(one)}}
            for place, one in enumerate(calls)
        ]
        message = {"role": "assistant", "content": None, "tool_calls": made, "refusal": None}
        choices = [{"index": 0, "message": message, "finish_reason": "tool_calls", "logprobs": None}]
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        call.usage = usage
        if call.body.get("stream"):
            asked = [{"index": place, **one} for place, one in enumerate(made)]
            deltas = [{"role": "assistant", "content": None}, {"tool_calls": asked}]
            self._stream(call, deltas, "tool_calls", usage, Fault())
            return
        self._send(200, _envelope(call, "chat.completion", choices) | {"usage": usage})

    def _stream(
        self, call: Call, deltas: Iterable[dict[str, Any]], finish: str, usage: dict[str, int], fault: Fault
    ) -> None:
        llm = self.server.llm
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for position, delta in enumerate(deltas):
            if fault.truncate_after is not None and position > fault.truncate_after:
                self.close_connection = True
                return
            if fault.malformed and position == 1:
                self._event('{"id": "cut')
                break
            if position == 1:
                self._wait(llm.time_to_first_token)
            elif position:
                self._wait(llm.time_per_token)
            self._event(_chunk(call, delta, None))
        else:
            self._event(_chunk(call, {}, finish))
            if self.server.llm.reports_usage and (call.body.get("stream_options") or {}).get("include_usage"):
                self._event(_envelope(call, "chat.completion.chunk", []) | {"usage": usage})
            self._event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, data: Any) -> None:
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        self._wait(0)
        event = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.flush()

    def _wait(self, seconds: float | None) -> None:
        """Let time pass; leave at once when the client hangs up or the server stops."""
        deadline = None if seconds is None else time.perf_counter() + seconds
        ready, _, _ = select.select([self.connection, self.server.stopping], [], [], seconds)
        if not ready:
            return
        if self.server.stopping in ready:
            raise _StoppedError
        if not self.connection.recv(1, socket.MSG_PEEK):
            raise _GoneError
        # A client that pipelines its next request is still there: watch only the clock and the server.
        left = None if deadline is None else max(deadline - time.perf_counter(), 0)
        if select.select([self.server.stopping], [], [], left)[0]:
            raise _StoppedError

    def _send(self, status: int, payload: Any, extra: dict[str, str] | None = None, length: int | None = None) -> None:
        content = payload if isinstance(payload, bytes) else json.dumps(payload, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length or len(content)))
        for name, value in (extra or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _error(self, status: int, message: str, extra: dict[str, str] | None = None) -> None:
        kind = "rate_limit_error" if status == 429 else "server_error" if status >= 500 else "invalid_request_error"
        self._send(status, {"error": {"message": message, "type": kind, "param": None, "code": None}}, extra)


def _text(call: dict[str, Any]) -> str:
    arguments = call.get("arguments", {})
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _prompt(body: Any) -> str:
    texts = []
    for message in (body.get("messages") or []) if isinstance(body, dict) else []:
        content = message.get("content") or ""
        texts += [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return "\n".join(texts)


def _problem(body: Any) -> str | None:
    """Refuse what the real service refuses."""
    if not isinstance(body, dict) or not body.get("model"):
        return "You must provide a model parameter."
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        return "'messages' must hold at least one message."
    json_mode = (body.get("response_format") or {}).get("type") == "json_object"
    if json_mode and "json" not in _prompt(body).lower():
        return "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
    return None


def _envelope(call: Call, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    identity = f"chatcmpl-{id(call):x}"
    return {"id": identity, "object": kind, "created": 0, "model": call.body["model"], "choices": choices}


def _chunk(call: Call, delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return _envelope(call, "chat.completion.chunk", [choice])


def _deltas(tokens: list[str], size: int) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    yield from ({"content": "".join(tokens[at : at + size])} for at in range(0, len(tokens), size))
