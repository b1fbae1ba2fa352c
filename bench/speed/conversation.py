"""
A turn of a long conversation in `simple`: what it costs besides the language model.

    python -m bench.speed.conversation [--turns 1000] [--questions 30] [--children 2000] [--json FILE]

The conversation is made up and summed up by rule, with vectors of the embedder; then five questions each are asked on
one topic, the first as a question of its own, the others as follow-ups, and each once more without the conversation:
the difference is the conversation's. CPU time counts every thread of this process. The language model is a stand-in in
a process of its own, and its client counts. What is summed up after an answer was sent is timed apart. Exit code 1 if
the bar is missed.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from bench.speed.load_servers import llm_environment, stand_in_llm
from bench.speed.measuring import machine, name_machine, timed
from bench.speed.synthetic import SyntheticLibrary
from bench.speed.systems import TENANT, Shiguan

from shiguan.conversations import Turn
from shiguan.engine.conversations import ConversationKeeper
from shiguan.engine.runner import Runner
from shiguan.llm.run import Run
from shiguan.stores.embedded.shards import close_all_shards
from shiguan.tenants import TENANT_FIELD

BAR = 20.0
"""Milliseconds of CPU that a conversation of 1,000 turns may add to a question."""
WARM_UP, TOPIC = 5, 5
NAME = "long"
FILTERS = {"operator": "AND", "conditions": [{"field": TENANT_FIELD, "operator": "==", "value": TENANT}]}
FOLLOW_UPS = (
    "And when did it come to {1}?",
    "What did they say of {2} then?",
    "And where was {0} before that?",
    "Why did it leave {1}?",
)


class _Quiet(ConversationKeeper):
    """Sums up on request, so that one question does not pay for the one before it."""

    def sum_up(self, tenant_id: str, conversation_id: str) -> None:
        """Leave it for later."""


def measure(folder: Path, *, turns: int, questions: int, children: int, port: int) -> dict[str, Any]:
    """Build the library and the conversation in a folder, and ask."""
    library = SyntheticLibrary(children)
    system = Shiguan(folder)
    system.prepare()
    system.build(library)
    system.close()
    with Runner("embedded", "simple", data_dir=folder, outputs=["queries"]) as reading:
        reader = reading.pipeline.get_component("conversation")
    reader.summary_tree.chat_generator = None
    keeper = _Quiet(reader)
    texts = [parent.text for parent in library.parents() if parent.number % 2 == 0]
    asked = topics(library, turns + WARM_UP + questions)
    for number, question in enumerate(asked[:turns]):
        answer = ". ".join(texts[number % len(texts)].split(". ")[:2])
        keeper.keep(TENANT, NAME, Turn(question, answer, "both" if number % TOPIC else "database"))
    sum_up = partial(reader.summary_tree.add_missing, keeper.store, TENANT, NAME)
    sum_up()
    seen: dict[str, list[float]] = {}

    def clock(name: str, action: Any) -> Any:
        result, spent = timed(action)
        seen.setdefault(name, []).append(spent["cpu_s"] * 1000)
        return result

    cached = []
    with stand_in_llm(port, first_token=0.0, per_token=0.0) as llm:
        os.environ.update(llm_environment(f"{llm.url}/v1"))
        with Runner("embedded", "simple", data_dir=folder, conversations=keeper) as runner:
            runner.warm_up()
            part = runner.pipeline.get_component
            for question in asked[turns:]:
                # In a process that remembers vectors the second of the same words would be for nothing.
                clock("question alone", partial(runner.ask, f"{question} ", tenant_id=TENANT))
                answer = clock("question in it", partial(runner.ask, question, tenant_id=TENANT, conversation_id=NAME))
                clock("summary, after the answer", sum_up)
                with Run(tenant_id=TENANT).entered():
                    read = partial(part("conversation").run, question, FILTERS, conversation_id=NAME)
                    clock("of it reading the conversation", read)
                cached.append(answer["metadata"]["usage"].get("cached_tokens"))
    keeper.close()
    close_all_shards()
    cpu = {name: statistics.median(values[WARM_UP:]) for name, values in seen.items()}
    told = [one for one in cached[WARM_UP:] if one is not None]
    return {
        "turns": turns,
        "questions": questions,
        "children": children,
        "cpu_ms": {**cpu, "the conversation's": cpu["question in it"] - cpu["question alone"]},
        "cached_tokens": statistics.mean(told) if told else None,
        "machine": machine(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def topics(library: SyntheticLibrary, count: int) -> list[str]:
    """Make questions, five in a row on the same three words, of which four lean on the first."""
    asked: list[str] = []
    for opening in library.questions(-(-count // TOPIC)):
        words = [word.strip("?") for word in opening.split()]
        asked += [opening, *(form.format(words[2], words[6], words[-1]) for form in FOLLOW_UPS)]
    return asked[:count]


def table(result: dict[str, Any]) -> str:
    """Write a result as Markdown."""
    lines = ["| CPU ms, median | |", "|---|---:|"]
    lines += [f"| {name} | {value:.1f} |" for name, value in result["cpu_ms"].items()]
    spent, cached = result["cpu_ms"]["the conversation's"], result["cached_tokens"]
    told = "the endpoint tells no cached tokens" if cached is None else f"{cached:.0f} cached tokens a prompt"
    lines += [
        f"\n- {'pass' if spent <= BAR else 'MISS'}: the conversation adds {spent:.1f} ms, at most {BAR:g}",
        f"- {told}",
        f"\n{result['turns']:,} turns, {result['questions']} questions, {result['children']:,} children, "
        f"{name_machine(result)}",
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed.conversation", description=__doc__.split("\n")[1])
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--questions", type=int, default=30)
    parser.add_argument("--children", type=int, default=2_000)
    parser.add_argument("--port", type=int, default=8120, help="of the stand-in, on 127.0.0.1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers here too")
    options = parser.parse_args(arguments)
    sizes = {name: getattr(options, name) for name in ("turns", "questions", "children", "port")}
    with tempfile.TemporaryDirectory(prefix="shiguan-conversation-") as folder:
        result = measure(Path(folder), **sizes)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(table(result) + "\n")
    return 0 if result["cpu_ms"]["the conversation's"] <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
