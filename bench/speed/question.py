"""
A whole question on the sample book, from what is typed to the answer object: CPU time of every thread of this process.

    python -m bench.speed.question [--questions 25] [--deployments embedded elasticsearch_qdrant]

In the deployment `embedded`: `simple` without a language model, and `precise` with one that answers at once with what
nothing in the book supports, so that each answer is checked, searched for again and refused; the model is a process of
its own. In `elasticsearch_qdrant`, with stand-ins for both servers in another process and the packaged embedder:
`simple` without a model, what the embedder takes left out, since that deployment embeds where and with what one likes.
Questions are those of the golden set, each asked once, since vectors of questions are remembered; the first five of a
row warm up. Exit code 1 if a bar is missed.
"""

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from bench.speed.load_servers import llm_environment, stand_in_llm
from bench.speed.measuring import machine, name_machine
from tests.doubles.cluster import with_small_models
from tests.doubles.stand_in_elasticsearch import StandInElasticsearch
from tests.doubles.stand_in_qdrant import StandInQdrant

from shiguan.cli import main as shiguan
from shiguan.engine.library import Library
from shiguan.engine.runner import Runner
from shiguan.models.engine import E5Encoder
from shiguan.stores.embedded.shards import close_all_shards

TENANT, WARM_UP = "default", 5
GOLDEN = Path(__file__).parents[1] / "quality" / "golden" / "sample_book.jsonl"
UNSUPPORTED = (
    "The Treaty of Westphalia ended the war in 1648 [1]. Napoleon crossed the Alps with 40,000 men [2]. Darwin wrote "
    "of finches in London [1]."
)
PRECISE, CLUSTER = "precise, nothing holds", "simple, cluster, without the embedder"
BARS = {PRECISE: 200.0, CLUSTER: 35.0}


def measure(runner: Runner, questions: Sequence[str], status: set[str]) -> float:
    """Give the median CPU time of the questions behind those that warm up, in milliseconds."""
    times = []
    for question in questions:
        started = time.process_time()
        answer = runner.ask(question, tenant_id=TENANT)
        times.append(time.process_time() - started)
        assert answer["status"] in status, answer["status"]
    return statistics.median(times[WARM_UP:]) * 1000


@contextmanager
def embedder_apart(spent: list[float]) -> Iterator[None]:
    """Note the seconds of CPU of each call of the embedder."""
    embed = E5Encoder.embed

    def timed(*given: Any) -> Any:
        started = time.thread_time()
        try:
            return embed(*given)
        finally:
            spent.append(time.thread_time() - started)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(E5Encoder, "embed", timed)
        yield


def in_embedded(book: Path, questions: Iterator[list[str]], folder: Path, port: int) -> Iterator[tuple[str, float]]:
    """Measure `simple` and `precise` of the deployment `embedded`."""
    for _ in Library("embedded", data_dir=folder).ingest([book], tenant_id=TENANT):
        pass
    with Runner("embedded", "simple", data_dir=folder) as runner:
        yield "simple, without a model", measure(runner, next(questions), {"quoted", "closest", "not_found"})
    with (
        pytest.MonkeyPatch.context() as patch,
        stand_in_llm(port, first_token=0.0, per_token=0.0, answer=UNSUPPORTED) as llm,
    ):
        for name, value in llm_environment(llm.url).items():
            patch.setenv(name, value)
        with Runner("embedded", "precise", data_dir=folder) as runner:
            yield PRECISE, measure(runner, next(questions), {"refused"})
    close_all_shards()


def _serve(connection: Connection) -> None:
    with StandInElasticsearch() as elasticsearch, StandInQdrant() as qdrant:
        connection.send((elasticsearch.url, qdrant.url))
        connection.recv()


def in_cluster(book: Path, questions: Iterator[list[str]], folder: Path) -> Iterator[tuple[str, float]]:
    """Measure `simple` of the deployment `elasticsearch_qdrant`."""
    ours, theirs = multiprocessing.Pipe()
    servers = multiprocessing.get_context("spawn").Process(target=_serve, args=[theirs], daemon=True)
    servers.start()
    spent: list[float] = []
    with pytest.MonkeyPatch.context() as patch, embedder_apart(spent):
        with_small_models(folder, patch)
        for name, value in zip(("ELASTICSEARCH", "QDRANT"), ours.recv(), strict=True):
            patch.setenv(f"SHIGUAN_{name}_URL", value)
        shiguan(["stores", "init"])
        for _ in Library("elasticsearch_qdrant").ingest([book], tenant_id=TENANT):
            pass
        with Runner("elasticsearch_qdrant", "simple") as runner:
            spent.clear()
            whole = measure(runner, next(questions), {"quoted"})
            yield CLUSTER, whole - statistics.median(spent[WARM_UP:]) * 1000
    ours.send(None)
    servers.join()


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="Measure whole questions on the sample book.")
    parser.add_argument("--questions", type=int, default=25, help="of each row, behind those that warm up")
    parser.add_argument("--deployments", nargs="+", default=["embedded", "elasticsearch_qdrant"])
    parser.add_argument("--port", type=int, default=8766, help="of the model that answers at once")
    options = parser.parse_args(arguments)
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    from build_book import build_book

    rows = [json.loads(line)["question"] for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    size = WARM_UP + options.questions
    questions = (rows[at : at + size] for at in range(0, len(rows), size))
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        book = build_book()
        if "embedded" in options.deployments:
            found |= in_embedded(book, questions, Path(folder) / "library", options.port)
        if "elasticsearch_qdrant" in options.deployments:
            found |= in_cluster(book, questions, Path(folder))
    print("| a question | CPU ms |\n|---|---:|")
    for name, value in found.items():
        print(f"| {name} | {value:.1f} |")
    machine_name = name_machine({"machine": machine(), "date": time.strftime("%Y-%m-%d")})
    print(f"\nMedian of {options.questions}, {machine_name}")
    missed = [name for name, bar in BARS.items() if found.get(name, 0.0) > bar]
    for name, bar in BARS.items():
        if name in found:
            print(f"- {'MISS' if name in missed else 'pass'}: {name}, {found[name]:.1f} ms, at most {bar:.0f}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
