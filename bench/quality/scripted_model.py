"""
A model that is scripted: it reads the prompts of a mode as a language model would, behind an OpenAI-compatible address.

It knows which sentences answer the question that is asked at the moment, and nothing else. As the writer of answers it
is a perfect reader: if sentences that answer stand among the sources of its prompt, it says them and marks each; if
not, it says that the sources do not say. As a helper it rewords the question, or imagines a passage, as it is told. So
what is lost on the way from a question to its answer is lost by the machinery.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from shiguan.llm.prompts import not_found_sentence
from shiguan.text.languages import detect_language
from shiguan.text.sentences import sentence_spans

_SOURCE = re.compile(r'<source number="(\d+)"[^>]*>\n(.*?)\n</source>', re.DOTALL)
_SPACE = re.compile(r"\s+")
# What tells by its first words which prompt of `prompts/` it is.
_PROMPTS = {
    "query_rewriter": r"You reword questions|你为文献检索系统改写问题",
    "hyde_embedder": r"imagined passage|假想的原文",
    "goal_restater": r"state in one sentence what the person is after|用一句话说明此人想要知道什么",
    "answer_grader": r'"completeness"',
    "sub_question_answerer": r'"key"',
    "summary_tree": r'"summary": ',
    "context_builder": r'"summaries"',
}


@dataclass(frozen=True)
class Script:
    """What the model knows of one question, what it replies as its rewriter, and imagines as a passage."""

    sides: Sequence[Sequence[str]] = ()
    mode: str = "simple"
    wordings: Sequence[str] = ()
    translations: dict[str, str] = field(default_factory=dict)
    stand_alone: str | None = None
    passage: str = ""


class ScriptedModel:
    """Replies to prompts by the script of the question that is asked at the moment; `seen` has the sources read."""

    def __init__(self) -> None:
        self.script = Script()
        self.calls: list[str] = []
        self.answering_prompt = ""

    def ask(self, script: Script) -> None:
        """Begin a question."""
        self.script, self.calls, self.answering_prompt = script, [], ""

    @property
    def had_the_answer(self) -> bool:
        """Whether sentences that answer stood among the sources of the last answering prompt."""
        return bool(self.script.sides) and bool(self._answer(self.answering_prompt))

    def reply(self, messages: Sequence[dict[str, Any]]) -> str:
        """Reply to a prompt."""
        text = "\n".join(str(message["content"]) for message in messages)
        kind = next((name for name, cue in _PROMPTS.items() if re.search(cue, text)), "answer")
        self.calls.append(kind)
        if kind != "answer":
            helpers: dict[str, Callable[[str], str]] = {
                "query_rewriter": self._reworded,
                "hyde_embedder": lambda _: self.script.passage or "I cannot write that.",
                "goal_restater": lambda _: "{}",
                "summary_tree": lambda _: "{}",
                "answer_grader": lambda _: json.dumps(
                    {"claims": [], "support": 9, "relevance": 9, "completeness": 9, "clarity": 9}
                ),
                "context_builder": self._summaries,
                "sub_question_answerer": lambda prompt: json.dumps({"answer": self._answer(prompt), "key": ""}),
            }
            return helpers[kind](text)
        self.answering_prompt = text
        question = re.findall(r"<question>\n(.*?)\n</question>", text, re.DOTALL)
        language = detect_language(question[-1] if question else text)
        return self._answer(text) or not_found_sentence(self.script.mode, language)

    def _reworded(self, _: str) -> str:
        script = self.script
        reply: dict[str, Any] = {"queries": list(script.wordings), "translations": script.translations}
        if script.stand_alone is not None:
            reply |= {"source": "both", "query": script.stand_alone}
        else:
            reply |= {"source": "database"}
        return json.dumps(reply, ensure_ascii=False)

    def _summaries(self, prompt: str) -> str:
        """Sum up each source as the sentences of it that answer; one without any is left out."""
        found: dict[str, str] = {}
        for number, text in _SOURCE.findall(prompt):
            hits = (_sentence_with(text, side, number) for side in self.script.sides)
            if said := " ".join(dict.fromkeys(hit.rpartition(" [")[0] for hit in hits if hit)):
                found[number] = said
        return json.dumps({"summaries": found}, ensure_ascii=False)

    def _answer(self, prompt: str) -> str:
        """Say, of each side, the sentence of a source that has it, with its mark; nothing if a side is missing."""
        sources = [(number, text) for number, text in _SOURCE.findall(prompt)]
        said: dict[str, None] = {}
        for side in self.script.sides:
            found = next((hit for number, text in sources if (hit := _sentence_with(text, side, number))), None)
            if found is None:
                return ""
            said[found] = None
        return " ".join(said)


def _sentence_with(text: str, quotes: Sequence[str], number: str) -> str:
    plain = _SPACE.sub("", text)
    for quote in quotes:
        wanted = _SPACE.sub("", quote)
        if wanted not in plain:
            continue
        spans = sentence_spans(text)
        for length in range(1, 5):
            for first in range(len(spans) - length + 1):
                piece = text[spans[first][0] : spans[first + length - 1][1]]
                if wanted in _SPACE.sub("", piece):
                    return f"{' '.join(piece.split())} [{number}]"
    return ""


@contextmanager
def serving(model: ScriptedModel) -> Iterator[str]:
    """Serve a model while the block runs, and give its address, as OPENAI_BASE_URL wants it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = model.reply(asked["messages"])
            usage = {"prompt_tokens": sum(len(str(one["content"])) for one in asked["messages"]) // 4}
            usage |= {"completion_tokens": len(text) // 4}
            usage["total_tokens"] = sum(usage.values())
            head = {"id": "scripted", "model": asked["model"], "created": 0}
            if asked.get("stream"):
                parts = [
                    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}]},
                    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                    {"choices": [], "usage": usage},
                ]
                lines = [json.dumps({**head, "object": "chat.completion.chunk", **part}) for part in parts]
                body = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()
                kind = "text/event-stream"
            else:
                message = {"role": "assistant", "content": text}
                whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
                body = json.dumps({**head, "object": "chat.completion", **whole}).encode()
                kind = "application/json"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
