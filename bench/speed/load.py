"""
Many clients at once: what the server adds to the LLM's own time, and what a request costs.

    python -m bench.speed.load                          # all modes; about half an hour
    python -m bench.speed.load --modes simple --clients 1 50 --requests 100
    python -m bench.speed.load --modes simple --clients 10 --instant    # CPU of a question, without waiting for an LLM
    python -m bench.speed.load --soak 20000             # memory over so many requests to each mode, nothing else
    python -m bench.speed.load --table bench/speed/results/load.json

The LLM is a stand-in in a process of its own: 300 ms to the first token, then 10 ms for each of 19 more. What it takes
for one question is measured with one client and taken from every latency: the rest is *added*. Each number of clients
is run twice: at full speed, every client asking again at once, which shows what the cores can do; and *paced* to 60 %
of that, which shows what a person waits while the CPU is not saturated.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
from bench.speed.load_clients import Outcome, Target, ask_many
from bench.speed.load_servers import KEY, ServerProcess, our_server, plain_server, stand_in_llm
from bench.speed.measuring import machine, name_machine, versions
from bench.speed.synthetic import TENANTS, SyntheticLibrary
from rich.console import Console

FIRST_TOKEN, PER_TOKEN = 0.3, 0.01
CLIENTS = (1, 10, 50, 200)
MODES = ("simple", "advanced", "precise", "agent")
CHILDREN = 5000
PACE = 0.6
SOAK_CLIENTS, SOAK_STEPS = 20, 20
SETTLED, GROWTH = 4000, 1.03
"""Questions after which a server holds what it will hold, and what may be added to that in all that follow."""
_PACKAGES = ("haystack-ai", "hayhooks", "qdrant-edge-py", "fastapi", "uvicorn", "openai", "onnxruntime")


def main(arguments: list[str] | None = None) -> None:
    """Measure, or print the table of an earlier measurement."""
    options = _options(arguments)
    if options.table:
        sys.stdout.write(_table(json.loads(options.table.read_text(encoding="utf-8"))))
        return
    with tempfile.TemporaryDirectory() as folder:
        data_dir = options.data_dir or Path(folder)
        _build(data_dir, options.children)
        report = _measure(options, data_dir)
    if options.output:
        options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(_table(report))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.speed.load", description=__doc__.split("\n")[1])
    parser.add_argument("--clients", type=int, nargs="+", default=CLIENTS)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--requests", type=int, default=200, help="at full speed, per run (at least one a client)")
    parser.add_argument("--children", type=int, default=CHILDREN, help="size of the library")
    parser.add_argument("--instant", action="store_true", help="let the LLM answer at once")
    parser.add_argument("--soak", type=int, metavar="N", help="only ask each mode N questions and watch the memory")
    parser.add_argument("--port", type=int, default=8110, help="first of three ports on 127.0.0.1")
    parser.add_argument("--data-dir", type=Path, help="keep the library here and use it again")
    parser.add_argument("--output", type=Path, help="write the numbers as JSON")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print the table of these numbers instead")
    return parser.parse_args(arguments)


def _build(data_dir: Path, children: int) -> None:
    from bench.speed.systems import Shiguan

    if (data_dir / "built").exists():
        return
    data_dir.mkdir(parents=True, exist_ok=True)
    system = Shiguan(data_dir)
    system.prepare()
    system.build(SyntheticLibrary(children))
    system.close()
    (data_dir / "built").touch()


def _measure(options: argparse.Namespace, data_dir: Path) -> dict[str, Any]:
    report: dict[str, Any] = {
        "machine": machine(),
        "versions": versions(*_PACKAGES),
        "date": datetime.now(UTC).date().isoformat(),
        "children": options.children,
        "runs": [],
    }
    if options.soak:
        report["soak"] = [_soak(options, data_dir, mode) for mode in options.modes]
        return report
    # No question is asked twice: the server remembers how the last ones were embedded.
    fresh = iter(SyntheticLibrary(options.children).questions(50_000))
    first_token, per_token = (0.0, 0.0) if options.instant else (FIRST_TOKEN, PER_TOKEN)
    with stand_in_llm(options.port, first_token=first_token, per_token=per_token) as llm:
        with our_server(options.port + 1, data_dir=data_dir, llm_url=f"{llm.url}/v1") as server:
            for mode in options.modes:
                for streaming in (False, True):
                    report["runs"] += _runs(
                        server, llm, options, _our_target(server, mode, streaming=streaming), mode, fresh
                    )
        with plain_server(options.port + 2, children=options.children, llm_url=f"{llm.url}/v1") as server:
            report["runs"] += _runs(server, llm, options, _plain_target(server), "plain Hayhooks", fresh)
    return report


def _our_target(server: ServerProcess, mode: str, *, streaming: bool) -> Target:
    path = "/api/v1/rag/query-stream" if streaming else "/api/v1/rag/query"
    return Target(f"{server.url}{path}", {"query": "{question}", "mode": mode}, streaming)


def _plain_target(server: ServerProcess) -> Target:
    body = {"query": "{question}", "tenant_id": TENANTS[0][0]}
    return Target(f"{server.url}/simple/run", body, answer_path=("result",))


def _runs(
    server: ServerProcess,
    llm: ServerProcess,
    options: argparse.Namespace,
    target: Target,
    name: str,
    fresh: Iterator[str],
) -> list[dict[str, Any]]:
    def questions(count: int) -> list[str]:
        return list(islice(fresh, count))

    llm_ms = _llm_time(server, llm, target, questions(10))
    runs = []
    console = Console(stderr=True)
    for clients in options.clients:
        count = max(clients, min(options.requests, 20 * clients))
        full = _one_run(server, target, questions(count), clients)
        runs.append(full | {"load": "full"})
        pace = PACE * full["per_second"]
        if clients > 1 and pace:
            runs.append(_one_run(server, target, questions(count), clients, per_second=pace) | {"load": "paced"})
        for run in runs[-2:]:
            run |= {"system": name, "streaming": target.streaming, "clients": clients, "llm_ms": round(llm_ms)}
        last = runs[-1]
        console.print(
            f"{name}{' (stream)' if target.streaming else ''}, {clients} clients: {last['per_second']}/s", style="dim"
        )
    return runs


def _llm_time(server: ServerProcess, llm: ServerProcess, target: Target, questions: list[str]) -> float:
    """Give what the LLM takes for one question asked alone, in milliseconds; the server is warm afterwards."""
    warm, measured = questions[: len(questions) // 2], questions[len(questions) // 2 :]
    _one_run(server, target, warm, 1)
    before = httpx.get(f"{llm.url}/stand-in/stats", trust_env=False).json()["busy_seconds"]
    _one_run(server, target, measured, 1)
    after = httpx.get(f"{llm.url}/stand-in/stats", trust_env=False).json()["busy_seconds"]
    return float(after - before) / len(measured) * 1000


def _one_run(
    server: ServerProcess, target: Target, questions: list[str], clients: int, *, per_second: float | None = None
) -> dict[str, Any]:
    cpu = server.cpu_seconds()
    outcome: Outcome = asyncio.run(ask_many(target, questions, clients=clients, per_second=per_second, key=KEY))
    used = server.cpu_seconds() - cpu
    return outcome.summary() | {
        "cpu_ms": round(used / max(1, len(questions)) * 1000, 1),
        "cores_busy": round(used / outcome.seconds, 2),
        "memory_mib": round(server.memory_mib()),
    }


def _soak(options: argparse.Namespace, data_dir: Path, mode: str) -> dict[str, Any]:
    """Ask one mode of a fresh server and note its memory on the way; the LLM answers at once."""
    count = options.soak
    questions = SyntheticLibrary(options.children).questions(count)
    step = max(1, count // SOAK_STEPS)
    asked, memory, errors, calls, seconds = [], [], 0, 0, 0.0
    with (
        stand_in_llm(options.port, first_token=0.0, per_token=0.0) as llm,
        our_server(options.port + 1, data_dir=data_dir, llm_url=f"{llm.url}/v1") as server,
    ):
        target = _our_target(server, mode, streaming=False)
        before = server.cpu_seconds(), llm.cpu_seconds(), time.process_time()
        for start in range(0, count, step):
            part, begun = questions[start : start + step], time.perf_counter()
            run = _one_run(server, target, part, SOAK_CLIENTS)
            seconds += time.perf_counter() - begun
            asked.append(start + len(part))
            memory.append(run["memory_mib"])
            errors += sum(run["errors"].values())
            # The stand-in forgets the prompts, which would fill the machine's memory with what is not the server's.
            calls += httpx.get(f"{llm.url}/stand-in/take", trust_env=False).json()["calls"]
            Console(stderr=True).print(f"{mode}: {asked[-1]:,} asked, {memory[-1]} MiB", style="dim")
        after = server.cpu_seconds(), llm.cpu_seconds(), time.process_time()
    ours, llms, clients = (later - earlier for earlier, later in zip(before, after, strict=True))
    each = {"cpu_ms": ours, "llm_cpu_ms": llms, "clients_cpu_ms": clients}
    return {
        "mode": mode,
        "asked": asked,
        "memory_mib": memory,
        "errors": errors,
        "llm_calls": round(calls / count, 2),
        "cores_busy": round(ours / seconds, 2),
        **{name: round(1_000 * used / count, 1) for name, used in each.items()},
    }


def _soak_line(soak: dict[str, Any]) -> str:
    memory = soak["memory_mib"]
    line = (
        f"{soak['mode']}: {soak['asked'][-1]:,} questions, {soak['llm_calls']} LLM calls and {soak['cpu_ms']} ms CPU "
        f"each ({soak['cores_busy']} cores busy; clients {soak['clients_cpu_ms']} ms, the stand-in "
        f"{soak['llm_cpu_ms']} ms), {soak['errors']} errors; MiB after each twentieth: {', '.join(map(str, memory))}"
    )
    settled = [value for asked, value in zip(soak["asked"], memory, strict=True) if asked >= SETTLED]
    if len(settled) < 2:
        return f"{line}; too few questions to judge"
    grown = max(settled) / settled[0]
    verdict = "pass" if grown <= GROWTH else "MISS"
    return f"{line}; {verdict}: at most {grown - 1:.1%} more than after the first {SETTLED:,}"


_COLUMNS = (
    "system", "clients", "load", "requests/s", "added p50 ms", "added p95 ms", "first token p95 ms", "CPU ms",
    "cores busy", "MiB", "errors",
)  # fmt: skip


def _table(report: dict[str, Any]) -> str:
    lines = []
    if "soak" in report:
        lines += [f"- {_soak_line(soak)}" for soak in report["soak"]]
    else:
        lines += [_row(_COLUMNS), _row(["---"] * len(_COLUMNS)), *(_row(_cells(run)) for run in report["runs"])]
    lines.append(
        f"\n{report['children']:,} children, {name_machine(report)} "
        "The clients and the stand-in LLM run on the same cores."
    )
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[Any]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _cells(run: dict[str, Any]) -> list[Any]:
    def added(key: str) -> str:
        return "-" if run[key] is None else f"{max(0.0, run[key] - run['llm_ms']):.0f}"

    return [
        run["system"] + (" (stream)" if run["streaming"] else ""),
        run["clients"],
        run["load"],
        run["per_second"],
        added("p50_ms"),
        added("p95_ms"),
        "-" if run["first_token_p95_ms"] is None else f"{run['first_token_p95_ms']:.0f}",
        run["cpu_ms"],
        run["cores_busy"],
        run["memory_mib"],
        ", ".join(f"{count} x {kind}" for kind, count in run["errors"].items()) or "none",
    ]


if __name__ == "__main__":
    main()
