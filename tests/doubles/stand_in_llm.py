"""
An LLM that answers by rules, behind the real HTTP interface.

A server on this machine that speaks the OpenAI chat completions API, so that tests go through the real client and the
real generator component: retries, time-outs, streaming and broken replies are then the ones of production.

    with StandInLlm([Rule("hypothetical passage", "安禄山起于范阳。")], default="I do not know.") as llm:
        generator = OpenAIChatGenerator(api_base_url=llm.url, api_key=Secret.from_token("any"))
        ...
        assert llm.calls == 1

What it looks like from outside:
- the first rule whose regular expression is found in the prompt (all messages, joined by newlines) gives the reply;
- `time_to_first_token` and `time_per_token` (seconds) make it as slow as a model is;
- `next(times=2, status=429, retry_after=0)` and its like spoil the calls that follow, see `Fault`;
- `requests`, `calls`, `max_in_flight`, `disconnects` and `critical_path` say what the clients did.

For load tests it runs by itself; what happened so far is at /stand-in/stats, and at /stand-in/take, which forgets it.
"""

import argparse
import json
import signal
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from tests.doubles.stand_in_http import StandInServer
from tests.doubles.stand_in_script import Call, Fault, Rule

__all__ = ["Call", "Fault", "Rule", "StandInLlm"]


@dataclass
class StandInLlm:
    """
    The server and its knobs; every knob may be turned while it runs.

    :param rules: `Rule`s, or pairs (match, reply).
    :param default: the reply where no rule fits; in JSON mode it becomes `{"reply": default}`.
    :param time_to_first_token: seconds before the first token (before the whole body without streaming).
    :param time_per_token: seconds for each further token.
    :param tokens_per_event: how many tokens each part of a stream has.
    :param port: 0 takes a free one.
    :param api_key: the key to insist on; None takes any.
    :param reports_usage: whether replies tell the tokens that they took.
    :param cached_tokens: how many tokens of each prompt it says that it had in its cache; None to say nothing.
    :param refuses_tools: refuse a request that offers tools, as servers of models do that cannot call any.
    """

    rules: Iterable[Rule | tuple[Any, Any]] = ()
    default: Any = "I do not know."
    time_to_first_token: float = 0.0
    time_per_token: float = 0.0
    tokens_per_event: int = 1
    port: int = 0
    api_key: str | None = None
    reports_usage: bool = True
    refuses_tools: bool = False
    cached_tokens: int | None = None
    requests: list[Call] = field(default_factory=list, init=False)
    in_flight: int = field(default=0, init=False)
    max_in_flight: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._faults: list[Fault] = []
        self._changed = threading.Condition()

    def __enter__(self) -> "StandInLlm":
        """Listen on 127.0.0.1 in a thread of its own."""
        self._server = StandInServer(self.port, self).__enter__()
        self.port = self._server.server_port
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    @property
    def url(self) -> str:
        """The base URL for OPENAI_BASE_URL or `api_base_url`."""
        return f"http://127.0.0.1:{self.port}/v1"

    def rule(self, match: Any, reply: Any = "", **more: Any) -> Rule:
        """Add a rule before the others."""
        added = Rule(match, reply, **more)
        with self._changed:
            self.rules = [added, *self.rules]
        return added

    def next(self, times: int = 1, **fault: Any) -> None:
        """Spoil the next calls: `next(times=2, status=429, retry_after=0)`, `next(hang=True)`; see `Fault`."""
        with self._changed:
            self._faults += [Fault(**fault)] * times

    def reset(self) -> None:
        """Forget calls and pending faults; rules and knobs stay."""
        with self._changed:
            self.requests, self._faults = [], []
            self.max_in_flight = self.in_flight

    @property
    def calls(self) -> int:
        """Requests to the chat endpoint so far, retries included."""
        return len(self.requests)

    @property
    def disconnects(self) -> int:
        """Calls whose client went away before the answer was complete."""
        return sum(call.disconnected for call in self.requests)

    @property
    def prompts(self) -> list[str]:
        return [call.prompt for call in self.requests]

    @property
    def critical_path(self) -> int:
        """The largest number of finished calls that came one after another: those that overlap count once."""
        with self._changed:
            spans = sorted((c.finished, c.started) for c in self.requests if c.finished is not None)
        count, end = 0, float("-inf")
        for finished, started in spans:
            if started >= end:
                count, end = count + 1, finished
        return count

    @property
    def busy_seconds(self) -> float:
        """How long at least one of the finished calls was open: what a question that is asked alone owes to its LLM."""
        with self._changed:
            spans = sorted((c.started, c.finished) for c in self.requests if c.finished is not None)
        total, end = 0.0, float("-inf")
        for started, finished in spans:
            total += max(0.0, finished - max(started, end))
            end = max(end, finished)
        return total

    def wait_for(self, condition: Callable[["StandInLlm"], bool], timeout: float = 10.0) -> bool:
        """Wait without polling until the condition holds; False after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: condition(self), timeout)

    def stats(self) -> dict[str, Any]:
        return {"calls": self.calls, "busy_seconds": round(self.busy_seconds, 3)}

    def begin(self, call: Call) -> None:
        with self._changed:
            self.requests.append(call)
            self.in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self.in_flight)
            self._changed.notify_all()

    def end(self, call: Call) -> None:
        with self._changed:
            call.finished = time.perf_counter()
            self.in_flight -= 1
            self._changed.notify_all()

    def answer(self, call: Call) -> tuple[Any, Fault]:
        """Choose reply and fault; a fault that gives no reply uses up no rule."""
        with self._changed:
            if self._faults:
                fault = self._faults.pop(0)
                if fault.status or fault.hang or fault.reset:
                    return "", fault
            else:
                fault = Fault()
            self.rules = [rule if isinstance(rule, Rule) else Rule(*rule) for rule in self.rules]
            rule = next((rule for rule in self.rules if rule.fits(call)), None)
            if rule is not None and rule.times is not None:
                rule.times -= 1
        if rule is None:
            json_mode = (call.body.get("response_format") or {}).get("type") in ("json_object", "json_schema")
            return ({"reply": self.default} if json_mode and isinstance(self.default, str) else self.default), fault
        return (rule.reply(call) if callable(rule.reply) else rule.reply), rule.fault or fault


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.doubles.stand_in_llm", description=__doc__.split("\n")[1])
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--rules", type=Path, help="a YAML file with rules and knobs")
    options = parser.parse_args(arguments)
    settings = yaml.safe_load(options.rules.read_text(encoding="utf-8")) if options.rules else {}
    settings["rules"] = [Rule(**rule) for rule in settings.get("rules", ())]
    # Started in the background of a script, it would have the interrupt ignored from birth.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with StandInLlm(**{**settings, "port": options.port}) as llm:
        print(f"OPENAI_BASE_URL={llm.url} OPENAI_API_KEY=any", flush=True)  # noqa: T201
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print(json.dumps(llm.stats()))  # noqa: T201


if __name__ == "__main__":
    main()
