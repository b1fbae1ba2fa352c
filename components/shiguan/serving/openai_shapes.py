"""The words of the OpenAI API: what a chat completion may ask for, and how an answer looks as one."""

import secrets
import time
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from shiguan.engine.question import MAX_QUESTION
from shiguan.serving.answer_request import AnswerRequest, Turn
from shiguan.serving.error_replies import ApiError

MODEL_PREFIX = "shiguan-"
"""A model's name is this and the mode's."""

_SPEAKERS = ("user", "assistant")
# What an answer tied to passages cannot give, with the values that ask for nothing.
_REFUSED: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "tools": ([],),
    "functions": ([],),
    "tool_choice": ("none", "auto"),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "audio": (),
    "modalities": (["text"],),
    "logit_bias": ({},),
    "prediction": (),
    "web_search_options": (),
}
# What is left aside with a warning, because many programs send it whether it matters or not.
_IGNORED = (
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "presence_penalty",
    "frequency_penalty",
    "stop",
    "seed",
    "reasoning_effort",
    "verbosity",
)
_LONGEST_TURN = 20_000
_MOST_TURNS = 100


class StreamOptions(BaseModel):
    """Options of a stream."""

    include_usage: bool = False


class ChatMessage(BaseModel):
    """One message of the conversation."""

    role: str
    content: str | list[dict[str, Any]] | None = None


class ChatRequest(BaseModel):
    """What a chat completion may ask for; further fields are looked at by `unsupported` and `ignored`."""

    model_config = ConfigDict(extra="allow")

    model: str
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    def unsupported(self) -> str:
        """Find a parameter that cannot be honoured."""
        given = self.model_extra or {}
        return next(
            (
                name
                for name, harmless in _REFUSED.items()
                if given.get(name) is not None and given[name] not in harmless
            ),
            "",
        )

    def ignored(self) -> list[str]:
        """Say what is left aside."""
        names = [f"`{name}`" for name in _IGNORED if (self.model_extra or {}).get(name) is not None]
        said = [f"Left aside: {', '.join(names)}; the mode's own settings hold."] if names else []
        others = sorted({message.role for message in self.messages if message.role not in _SPEAKERS})
        if others:
            said.append(f"Messages with the role {', '.join(others)} were left aside: they give no instructions here.")
        return said

    def as_request(self) -> AnswerRequest:
        """
        Read the question and the turns before it from the messages.

        System messages come from the caller's program and not from whoever runs this server, so they are no
        instructions; like tools' messages they are left aside.
        """
        *before, last = self.messages
        question = _text(last.content).strip()
        if last.role != "user" or not question:
            raise _bad("The last message must be the user's question, as text.", "messages")
        if len(question) > MAX_QUESTION:
            raise _bad(
                f"The question has {len(question):,} characters, the limit is {MAX_QUESTION:,}. Shorten it.", "messages"
            )
        turns = [
            Turn(role=message.role, content=_text(message.content)[:_LONGEST_TURN])
            for message in before
            if message.role in _SPEAKERS
        ]
        return AnswerRequest(
            query=question,
            mode=self.model.removeprefix(MODEL_PREFIX),
            temperature=self.temperature,
            history=turns[-_MOST_TURNS:] or None,
        )


def model_object(mode: str) -> dict[str, Any]:
    """Describe a mode as a model."""
    return {"id": MODEL_PREFIX + mode, "object": "model", "created": 0, "owned_by": "shiguan"}


def footnotes(answer: dict[str, Any]) -> str:
    """List the sources that an answer cites, in plain text."""
    places: dict[int, str] = {}
    for citation in answer["citations"]:
        title = citation["title"] or citation["source"]
        place = " > ".join(part for part in (title, *citation["section"]) if part)
        file = f" ({citation['source']})" if citation["source"] and citation["source"] != title else ""
        places.setdefault(citation["number"], f"[{citation['number']}] {place}{file}")
    return "\n" + "".join(f"\n{places[number]}" for number in sorted(places)) if places else ""


def extension(answer: dict[str, Any], warnings: Sequence[str], request_id: str | None) -> dict[str, Any]:
    """Give what an answer has beyond a chat completion: `shiguan` in the reply and in a stream's last chunk."""
    metadata = answer["metadata"]
    return {
        "mode": answer["mode"],
        "status": answer["status"],
        "citations": answer["citations"],
        "documents": answer["documents"],
        "claims": metadata["claims"],
        "warnings": [*metadata["warnings"], *warnings],
        "timings_ms": metadata["timings_ms"],
        "request_id": request_id,
    }


def usage_of(answer: dict[str, Any]) -> dict[str, int]:
    """Give the tokens that an answer took, over all calls of language models."""
    used = answer["metadata"].get("usage") or {}
    prompt, completion = int(used.get("prompt_tokens") or 0), int(used.get("completion_tokens") or 0)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


class Completion:
    """The parts of one chat completion, which share an id."""

    def __init__(self, model: str) -> None:
        """Begin a completion."""
        self.model = model
        self.id = f"chatcmpl-{secrets.token_hex(12)}"
        self.created = int(time.time())

    def whole(self, answer: dict[str, Any], warnings: Sequence[str], request_id: str | None) -> dict[str, Any]:
        """Write a completion in one piece."""
        message = {"role": "assistant", "content": answer["answer"] + footnotes(answer), "refusal": None}
        return {
            **self._head("chat.completion"),
            "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
            "usage": usage_of(answer),
            "shiguan": extension(answer, warnings, request_id),
        }

    def chunk(self, delta: dict[str, Any], *, finish: str | None = None, **more: Any) -> dict[str, Any]:
        """Write a piece of a completion."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return {**self._head("chat.completion.chunk"), "choices": [choice], **more}

    def usage_chunk(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Write the piece that has the usage and no text."""
        return {**self._head("chat.completion.chunk"), "choices": [], "usage": usage_of(answer)}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def _bad(message: str, field: str) -> ApiError:
    return ApiError("bad_request", message=message, fields=[{"field": field, "problem": message}])


def _text(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, list):
        if any(part.get("type") != "text" or not isinstance(part.get("text"), str) for part in content):
            raise _bad("Messages may have text parts only.", "messages")
        return " ".join(part["text"] for part in content)
    return content or ""
