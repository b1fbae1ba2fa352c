"""Clients that ask a server over HTTP, many at once, and note what each question took."""

import asyncio
import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import httpx

TIMEOUT = 120.0
"""Seconds after which a client gives up; the server's own limit is shorter."""


@dataclass(frozen=True)
class Target:
    """One way to ask one server."""

    url: str
    body: dict[str, Any]
    streaming: bool = False
    answer_path: tuple[str | int, ...] = ("answer",)


@dataclass
class Outcome:
    """What happened to all questions of one run; times in seconds."""

    latencies: list[float] = field(default_factory=list)
    first_tokens: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def summary(self) -> dict[str, Any]:
        """Give requests a second, median and slowest of twenty in milliseconds, and errors by kind."""
        done = len(self.latencies)
        return {
            "answered": done,
            "per_second": round(done / self.seconds, 1) if self.seconds else 0.0,
            "p50_ms": _quantile(self.latencies, 0.5),
            "p95_ms": _quantile(self.latencies, 0.95),
            "first_token_p50_ms": _quantile(self.first_tokens, 0.5),
            "first_token_p95_ms": _quantile(self.first_tokens, 0.95),
            "errors": dict(self.errors),
        }


async def ask_many(
    target: Target, questions: list[str], *, clients: int, per_second: float | None = None, key: str | None = None
) -> Outcome:
    """Ask every question once."""
    outcome = Outcome()
    waiting = iter(enumerate(questions))
    started = time.perf_counter()
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(timeout=TIMEOUT, limits=limits, headers=headers, trust_env=False) as client:

        async def one_client() -> None:
            for number, question in waiting:
                if per_second is not None:
                    await asyncio.sleep(max(0.0, started + number / per_second - time.perf_counter()))
                await _ask(client, target, question, outcome)

        await asyncio.gather(*(one_client() for _ in range(clients)))
    outcome.seconds = time.perf_counter() - started
    return outcome


async def _ask(client: httpx.AsyncClient, target: Target, question: str, outcome: Outcome) -> None:
    body = _filled(target.body, question)
    started = time.perf_counter()
    try:
        if target.streaming:
            problem = await _read_stream(client, target.url, body, started, outcome)
        else:
            reply = await client.post(target.url, json=body)
            problem = str(reply.status_code) if reply.status_code != 200 else _missing(reply.json(), target.answer_path)
    except httpx.HTTPError as error:
        problem = type(error).__name__
    if problem:
        outcome.errors[problem] += 1
    else:
        outcome.latencies.append(time.perf_counter() - started)


async def _read_stream(
    client: httpx.AsyncClient, url: str, body: dict[str, Any], started: float, outcome: Outcome
) -> str | None:
    last = None
    async with client.stream("POST", url, json=body) as reply:
        if reply.status_code != 200:
            return str(reply.status_code)
        seen_token = False
        async for line in reply.aiter_lines():
            if line.startswith("event:"):
                last = line[6:].strip()
                if last == "token" and not seen_token:
                    seen_token = True
                    outcome.first_tokens.append(time.perf_counter() - started)
    return None if last == "generation_complete" else f"stream ended with {last}"


def _missing(reply: Any, path: tuple[str | int, ...]) -> str | None:
    for key in path:
        try:
            reply = reply[key]
        except (KeyError, IndexError, TypeError):
            return f"no {key} in the reply"
    return None if reply else "an empty answer"


def _filled(value: Any, question: str) -> Any:
    if isinstance(value, dict):
        return {key: _filled(entry, question) for key, entry in value.items()}
    if isinstance(value, list):
        return [_filled(entry, question) for entry in value]
    return value.replace("{question}", question) if isinstance(value, str) else value


def _quantile(times: list[float], share: float) -> float | None:
    if not times:
        return None
    if len(times) == 1:
        return round(times[0] * 1000, 1)
    return round(statistics.quantiles(times, n=100, method="inclusive")[round(share * 100) - 1] * 1000, 1)
