"""What the stand-in LLM is told to do, and what it notes down."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Call:
    """One request to the chat endpoint and what became of it."""

    body: dict[str, Any]
    prompt: str
    headers: dict[str, str]
    started: float
    finished: float | None = None
    status: int | None = None
    reply: str | None = None
    disconnected: bool = False
    usage: dict[str, int] | None = None


@dataclass(frozen=True)
class Fault:
    """
    A way to spoil a call. Fields that are not set do nothing.

    :param status: answer with this HTTP status and an error body.
    :param retry_after: seconds, sent as Retry-After beside `status`.
    :param hang: never answer; the call ends when the client goes away or the server stops.
    :param malformed: a body (streaming: an event) that is cut JSON, with status 200.
    :param reset: close the connection without an answer.
    :param truncate_after: break off after that many tokens: a stream ends without its last events, a whole body is cut.
    """

    status: int | None = None
    retry_after: float | None = None
    hang: bool = False
    malformed: bool = False
    reset: bool = False
    truncate_after: int | None = None


@dataclass
class Rule:
    """
    What to answer to which prompt.

    :param match: a regular expression searched in the prompt (dot matches newlines), or a function of the `Call`.
    :param reply: the text; a dict or list is sent as JSON; a function of the `Call` returns one of these.
    :param times: use the rule so often, then skip it; always if None.
    :param fault: spoil the call instead of answering.
    """

    match: str | Callable[[Call], bool]
    reply: Any = ""
    times: int | None = None
    fault: Fault | None = None

    def fits(self, call: Call) -> bool:
        if self.times == 0:
            return False
        if callable(self.match):
            return self.match(call)
        return re.search(self.match, call.prompt, re.DOTALL) is not None
