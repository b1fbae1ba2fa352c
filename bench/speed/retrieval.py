"""
Measure a question up to the fetched passages, against two well-known ways to do the same in memory.

    python -m bench.speed.retrieval                                # 100,000 children; takes some minutes
    python -m bench.speed.retrieval --children 2000 --queries 5 --systems shiguan haystack

Each system is built in one process and measured in a fresh one: how long it takes to open its data, what memory it then
holds above an empty process with the embedder, the median CPU and wall time of a question, and how many of the ten
nearest children its search by vectors finds. Only the ratios within
one run mean something on another machine. The result goes to bench/speed/results/ as JSON; `--table` prints it as the
table of bench/speed/README.md.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "bench" / "speed" / "results" / "retrieval.json"
WARM_UP = 10
"""Questions before those that count, in every system: parts of an index are read when they are first needed."""
TARGETS = {"cpu_ms": 20.0, "recall": 0.98, "reopen_s": 1.0}
RATIOS = {10_000: {"haystack": 15.0, "llamaindex": 6.0}, 100_000: {"haystack": 120.0, "llamaindex": 45.0}}
"""How many times our CPU time the others take, by the children of the library."""


def build(name: str, folder: Path, children: int) -> dict[str, Any]:
    """Write a system's data and say how long it took."""
    from bench.speed.measuring import timed
    from bench.speed.synthetic import SyntheticLibrary
    from bench.speed.systems import SYSTEMS

    system = SYSTEMS[name](folder)
    system.prepare()
    _, times = timed(lambda: system.build(SyntheticLibrary(children)))
    system.close()
    return {"build": times}


def search(name: str, folder: Path, children: int, queries: int) -> dict[str, Any]:
    """Open a system's data and ask it."""
    from bench.speed.measuring import medians, resident_mib, timed, versions
    from bench.speed.synthetic import SyntheticLibrary
    from bench.speed.systems import SYSTEMS

    system = SYSTEMS[name](folder)
    system.prepare()
    questions = SyntheticLibrary(children).questions(queries + WARM_UP)
    system.embed(questions[0])
    empty = resident_mib()
    _, opened = timed(system.open)
    first, first_times = timed(lambda: system.search(questions[0]))
    for question in questions[1:WARM_UP]:
        system.search(question)
    times, found = [], []
    for question in questions[WARM_UP:]:
        parents, spent = timed(lambda question=question: system.search(question))
        times.append(spent)
        found.append(parents)
    # One blank more: the same tokens, and yet not a question that an embedder could have remembered.
    embedding = [timed(lambda question=question: system.embed(f"{question} "))[1] for question in questions[WARM_UP:]]
    memory = resident_mib()
    nearest = [system.nearest(question) for question in questions[WARM_UP:]]
    system.close()
    return {
        "label": system.label,
        "query": medians(times),
        "embedder": medians(embedding),
        "open": opened,
        "first_query": first_times,
        "memory_mib": memory - empty,
        "process_mib": memory,
        "parents_found": sum(map(len, [first, *found])) / (len(found) + 1),
        "found": found,
        "nearest": nearest,
        "versions": versions(*system.packages),
    }


def exact_nearest(children: int, queries: int) -> list[list[str]]:
    """Compare the questions with every child of the tenant, and give the ids of the ten nearest."""
    import numpy as np
    from bench.speed.synthetic import SyntheticLibrary
    from bench.speed.systems import NEAREST, TENANT

    from shiguan.query.e5_text_embedder import E5TextEmbedder

    library = SyntheticLibrary(children)
    own = [child for parent in library.parents() if parent.tenant == TENANT for child in parent.children]
    vectors = np.array([child.embedding for child in own])
    embedder = E5TextEmbedder()
    asked = library.questions(queries + WARM_UP)[WARM_UP:]
    scores = np.array([embedder.run(text=question)["embedding"] for question in asked], dtype=np.float32) @ vectors.T
    return [[f"child-{own[at].number}" for at in np.argsort(-row)[:NEAREST]] for row in scores]


def recall(found: list[list[str]], exact: list[list[str]]) -> float:
    """Give the share of the exact search's children that were found."""
    wanted = sum(map(len, exact))
    return sum(len(set(a) & set(b)) for a, b in zip(found, exact, strict=True)) / wanted if wanted else 1.0


def run_system(name: str, folder: Path, children: int, queries: int) -> dict[str, Any]:
    """Build, unless the folder is kept from an earlier run, and search, in processes of their own."""
    built = folder / "built.json"
    result: dict[str, Any] = json.loads(built.read_text()) if built.exists() else {}
    for phase in ("search",) if result else ("build", "search"):
        print(f"{name}: {phase} ...", file=sys.stderr, flush=True)
        arguments = ["--children", str(children), "--queries", str(queries), "--phase", phase, "--folder", str(folder)]
        command = [sys.executable, "-m", "bench.speed.retrieval", "--systems", name, *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            raise SystemExit(f"{name}: the phase `{phase}` failed with exit code {done.returncode}; see above.")
        result |= json.loads(done.stdout.splitlines()[-1])
        if phase == "build":
            built.write_text(json.dumps(result))
    return result


def compare(systems: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Give the ratios of the others to ours: of a whole question, and of what is left without the embedder."""
    ratios: dict[str, float] = {}
    ours = systems.get("shiguan")
    if ours is None:
        return ratios
    for name, other in systems.items():
        if name == "shiguan":
            continue
        for clock in ("cpu_ms", "wall_ms"):
            ratios[f"{name}_{clock}"] = other["query"][clock] / ours["query"][clock]
            rest = max(ours["query"][clock] - ours["embedder"][clock], 0.01)
            ratios[f"{name}_{clock}_without_embedder"] = (other["query"][clock] - other["embedder"][clock]) / rest
        ratios[f"{name}_memory"] = other["memory_mib"] / max(ours["memory_mib"], 1.0)
    return ratios


def verdicts(systems: dict[str, dict[str, Any]], ratios: dict[str, float], children: int) -> list[str]:
    """Compare with what is to be reached."""
    lines = []
    for name, target in RATIOS.get(children, {}).items():
        if f"{name}_cpu_ms" in ratios:
            value = ratios[f"{name}_cpu_ms"]
            lines.append(
                f"{'pass' if value >= target else 'MISS'}: {value:.0f} times {name}'s CPU time, to reach {target:g}"
            )
    if "shiguan" in systems:
        ours = systems["shiguan"]
        for label, value, target in (
            ("ms CPU a question", ours["query"]["cpu_ms"], TARGETS["cpu_ms"]),
            ("s to reopen", ours["open"]["wall_s"], TARGETS["reopen_s"]),
        ):
            lines.append(f"{'pass' if value <= target else 'MISS'}: {value:.2f} {label}, at most {target:g}")
        least = TARGETS["recall"]
        verdict = "pass" if ours["recall"] >= least else "MISS"
        lines.append(f"{verdict}: {ours['recall']:.3f} of the ten nearest found, at least {least:g}")
    return lines


def table(result: dict[str, Any]) -> str:
    """Write a result as Markdown."""
    from bench.speed.measuring import name_machine

    lines = [
        "| system | CPU ms | wall ms | of it embedder | recall@10 | memory MiB | open s | build s |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for system in result["systems"].values():
        query, embedder, opened = system["query"], system["embedder"], system["open"]["wall_s"]
        lines.append(
            f"| {system['label']} | {query['cpu_ms']:.1f} | {query['wall_ms']:.1f} | {embedder['cpu_ms']:.1f} "
            f"| {system['recall']:.3f} | {system['memory_mib']:.0f} | {opened:.2f} | {system['build']['wall_s']:.0f} |"
        )
    lines += [
        "",
        f"{result['children']:,} children, median of {result['queries']} questions, {name_machine(result)}",
    ]
    lines += [f"- {verdict}" for verdict in verdicts(result["systems"], result["ratios"], result["children"])]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark, or one phase of it in this process."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed.retrieval", description=__doc__.split("\n")[1])
    parser.add_argument("--children", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=30)
    parser.add_argument("--systems", nargs="+", choices=["shiguan", "haystack", "llamaindex", "by_hand"],
                        default=["shiguan", "haystack", "llamaindex", "by_hand"])  # fmt: skip
    parser.add_argument("--out", type=Path, default=RESULT, help="the JSON file (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep what was built here, to measure again without")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print an earlier result and stop")
    parser.add_argument("--phase", choices=["build", "search"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.table:
        print(table(json.loads(options.table.read_text(encoding="utf-8"))))
        return 0
    if options.phase:
        name = options.systems[0]
        if options.phase == "build":
            outcome = build(name, options.folder, options.children)
        else:
            outcome = search(name, options.folder, options.children, options.queries)
        print(json.dumps(outcome))
        return 0

    from bench.speed.measuring import machine

    systems = {}
    for name in options.systems:
        with tempfile.TemporaryDirectory(prefix="shiguan-benchmark-") as passing:
            folder = options.keep / f"{name}-{options.children}" if options.keep else Path(passing)
            folder.mkdir(parents=True, exist_ok=True)
            systems[name] = run_system(name, folder, options.children, options.queries)
    exact = exact_nearest(options.children, options.queries)
    for system in systems.values():
        system.pop("found")
        system["recall"] = recall(system.pop("nearest"), exact)
    result = {
        "children": options.children,
        "queries": options.queries,
        "date": date.today().isoformat(),
        "machine": machine(),
        "systems": systems,
        "ratios": compare(systems),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
