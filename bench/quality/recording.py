"""A model's replies in a file, and an endpoint on this machine that gives them again: measurements that see prompts."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any, ClassVar, Self

import httpx

from shiguan.errors import RefusedError
from shiguan.evaluation.json_lines import read_json_lines, write_json_lines
from shiguan.evaluation.measurement import Plan, measure
from shiguan.evaluation.questions import Question
from shiguan.evaluation.results import Results
from shiguan.llm.model_settings import DEFAULT_MODEL
from shiguan.resources import utc_time

FORMAT = "shiguan-recording/1"
CHANGED, OTHER_PASSAGES = "the prompt changed", "other passages stand in the prompt"
# Who is asked, whether the reply is streamed and how long it may be is no prompt.
_NO_PROMPT = ("model", "stream", "stream_options", "max_tokens", "max_completion_tokens")
_PASSAGES = re.compile(r"<source .*?</source>(?:\\n)*")
_SILENT = {"role": "assistant", "content": "Unrecorded."}
_UNRECORDED: dict[str, Any] = {"message": _SILENT, "finish_reason": "stop", "usage": None}
_PASSES = 4
_PATIENCE_SECONDS = 3600


class RecordedModel:
    """
    Stands behind `OPENAI_BASE_URL` inside the block and replies as the file says.

    Where it `asks`, what is not in the file is asked of the endpoint that the environment named, with replies of at
    most `longest` tokens, and kept. Otherwise it gets a reply that says nothing, and `missing` has the question at work
    with what is new: the prompt, or only the passages in it.
    """

    def __init__(self, path: Path, *, asks: bool = False, longest: int | None = None) -> None:
        self.path, self.asks, self.longest = path, asks, longest
        self.about: dict[str, Any] = {}
        self.replies: dict[str, dict[str, Any]] = {}
        self.missing: dict[str, str] = {}
        self._used: set[str] = set()
        self._question = ""
        self._lock = Lock()
        if path.exists() or not asks:
            self.about, *rows = [row for _, row in read_json_lines(path)] or [{}]
            whole = "questions" in self.about and all({"key", "frame", "message"} <= row.keys() for row in rows)
            if self.about.get("format") != FORMAT or not whole:
                raise RefusedError(f"{path} is no recording. Expected a file that `make record` wrote.")
            self.replies = {row["key"]: row for row in rows}

    def __enter__(self) -> Self:
        upstream = os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        headers = {"Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY') or 'not-needed'}"}
        self._upstream = httpx.Client(base_url=upstream, headers=headers, timeout=_PATIENCE_SECONDS)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": self}))
        Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        names = {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": "recorded", "OPENAI_TIMEOUT": str(_PATIENCE_SECONDS)}
        if not self.asks and "model" in self.about:  # whose tokenizer may count the context
            names["OPENAI_MODEL"] = self.about["model"]
        self._before = {name: os.environ.get(name) for name in names}
        os.environ.update(names)
        return self

    def __exit__(self, *raised: object) -> None:
        for name, value in self._before.items():
            os.environ.pop(name)
            os.environ |= {} if value is None else {name: value}
        self._server.shutdown()
        self._server.server_close()
        self._upstream.close()
        if self.asks and self.replies:
            write_json_lines(self.path, [{**self.about, "format": FORMAT}, *self.replies.values()])

    def measure(self, plan: Plan) -> Results:
        """Ask every question of a plan once; `missing` tells what was not recorded."""

        def track(questions: Iterable[Question]) -> Iterator[Question]:
            for question in questions:
                self._question = question.id
                yield question

        self.missing = {}
        with TemporaryDirectory(prefix="shiguan-recorded-") as folder:
            return measure(replace(plan, output=Path(folder)), track=track)[0]

    def record(self, plans: Sequence[Plan]) -> None:
        """Ask until every prompt of the plans has its reply, and keep those alone; a stopped recording goes on."""
        asked = [question.id for question in plans[0].questions.questions]
        self.about |= {"modes": [str(plan.mode) for plan in plans], "asked": plans[0].asked, "questions": asked}
        self.about |= {"model": os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL, "max_tokens": self.longest}
        self.about["recorded"] = utc_time()[:10]
        self._used = set()
        for plan in plans:
            for _ in range(_PASSES):
                before = len(self.replies)
                self.measure(plan)
                if len(self.replies) == before:
                    break
            else:
                raise RefusedError(
                    f"After {_PASSES} passes `{plan.mode}` still writes prompts that it never wrote before. Look for "
                    "what changes with every run, such as an id or a time, and keep it out of them."
                )
        self.replies = {key: row for key, row in self.replies.items() if key in self._used}

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        """Give the message that a request gets, why it ended, and its usage."""
        key, frame = prompt_hashes(body)
        with self._lock:
            self._used.add(key)
            if key not in self.replies and not self.asks:
                known = any(row["frame"] == frame for row in self.replies.values())
                self.missing.setdefault(self._question, OTHER_PASSAGES if known else CHANGED)
                return _UNRECORDED
            if key not in self.replies:
                self.replies[key] = {"key": key, "frame": frame, "question": self._question, **self._asked(body)}
            return self.replies[key]

    def _asked(self, body: dict[str, Any]) -> dict[str, Any]:
        limits = [n for n in (self.longest, body.get("max_tokens"), body.get("max_completion_tokens")) if n]
        sent = {name: value for name, value in body.items() if name == "model" or name not in _NO_PROMPT}
        response = self._upstream.post("/chat/completions", json={**sent, "max_tokens": min(limits, default=None)})
        told = response.raise_for_status().json()
        choice = told["choices"][0]
        return {"message": choice["message"], "finish_reason": choice["finish_reason"], "usage": told.get("usage")}


def prompt_hashes(body: dict[str, Any]) -> tuple[str, str]:
    """Hash what a model is asked, with its tools and its temperature: whole, and without the passages."""
    asked = {name: value for name, value in body.items() if name not in _NO_PROMPT}
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False)
    whole, frame = (hashlib.sha256(one.encode()).hexdigest()[:24] for one in (text, _PASSAGES.sub("", text)))
    return whole, frame


class _Handler(BaseHTTPRequestHandler):
    """Speaks as much of the chat completions API as the engine's client needs."""

    model: ClassVar[RecordedModel]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, reply = 200, _UNRECORDED
        try:
            reply = self.model.reply(body)
        except (httpx.HTTPError, LookupError, ValueError) as error:
            status, reply = 502, {**reply, "error": {"message": f"There was no reply to record: {error}"}}
        message, part = reply["message"], "delta" if body.get("stream") else "message"
        if part == "delta" and message.get("tool_calls"):
            message = {**message, "tool_calls": [{**one, "index": at} for at, one in enumerate(message["tool_calls"])]}
        choice = {"index": 0, part: message, "finish_reason": reply["finish_reason"]}
        whole = {"id": "recorded", "created": 0, "model": self.model.about.get("model"), "error": reply.get("error")}
        whole |= {"object": "chat.completion", "choices": [choice], "usage": reply["usage"]}
        text = json.dumps(whole)
        if part == "delta":
            usage = json.dumps({**whole, "choices": []})
            text = f"data: {text}\n\n" + (f"data: {usage}\n\n" if reply["usage"] else "") + "data: [DONE]\n\n"
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream" if part == "delta" else "application/json")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        """Keep quiet: requests are no news."""
