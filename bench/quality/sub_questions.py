"""
Print what answering the parts of a question brings to what is read, in `advanced`, on questions of several hops.

    python -m bench.quality.sub_questions [--data DIR] [--keep DIR] [--questions FILE]

The set is en_multihop. The model is a script, so that the machinery is measured and not a model: its plans are the
set's own decompositions (MuSiQue's; the questions of HotpotQA have none and are not taken apart), and it answers a part
with the gold answer if that stands in a gold passage that it was shown, else not at all. What the mode does not take
apart, it searches as a whole. Three ways, each with what the final prompt holds:

- `whole`: the question alone
- `fused`: the question and all parts searched at once and joined by rank, earlier answers left blank
- `parts`: as shipped

Counted is the share of gold passages that are read, and of questions of which all are. Intervals are of the paired
bootstrap of `bench.quality.comparison`. The exit code is 1 if an interval of all questions, `parts` against `whole`,
has 0.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.quality.answer_bench import Bench
from bench.quality.differences import compare_metric
from bench.quality.public_sets import DATA, is_missing
from haystack import Document, component
from haystack.dataclasses import ChatMessage

from shiguan.engine.runner import Runner
from shiguan.evaluation.json_lines import read_json_lines
from shiguan.evaluation.provenance import TENANT
from shiguan.evaluation.questions import Question, read_retrieval_set
from shiguan.evaluation.scoring import judged, recall
from shiguan.llm.source_blocks import neutral_attribute

SET = "en_multihop"
WAYS = ("whole", "fused", "parts")
_SOURCE = re.compile(r'<source number="(\d+)"([^>]*)>\n(.*?)\n</source>', re.DOTALL)
_STEP = re.compile(r"#(\d)")


@dataclass(frozen=True)
class Case:
    """A question, the titles of its gold passages, and its parts with their answers, which may be none."""

    question: Question
    titles: frozenset[str]
    parts: tuple[tuple[str, str], ...]

    def asked(self, text: str) -> str:
        """Give the answer to a part that was asked with whatever in the place of earlier answers."""
        for part, answer in self.parts:
            pattern = ".*".join(re.escape(piece) for piece in _STEP.split(part)[::2])
            if re.fullmatch(pattern, text):
                return answer
        return ""


@component
class GoldModel:
    """Plans as the set does, and answers a part from a gold passage that it was shown."""

    def __init__(self) -> None:
        self.case: Case | None = None
        self.calls = 0

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        """Reply to a planner's or an answerer's prompt."""
        self.calls += 1
        prompt = messages[-1].text or ""
        reply = self._answer(prompt) if "<sources>" in prompt else self._plan()
        return {"replies": [ChatMessage.from_assistant(json.dumps(reply))]}

    def _plan(self) -> dict[str, Any]:
        parts = self.case.parts if self.case else ()
        return {"questions": [{"text": _STEP.sub(r"{\1}", text)} for text, _ in parts]}

    def _answer(self, prompt: str) -> dict[str, Any]:
        asked = prompt.rpartition("<question>\n")[2].partition("\n</question>")[0]
        answer = self.case.asked(asked) if self.case else ""
        titles = [f'title="{neutral_attribute(title)}"' for title in (self.case.titles if self.case else ())]
        for number, header, text in _SOURCE.findall(prompt):
            if answer and answer.casefold() in text.casefold() and any(title in header for title in titles):
                return {"answer": f"{answer} [{number}].", "key": answer}
        return {"answer": "", "key": ""}


def cases(folder: Path) -> list[Case]:
    """Read the questions with their gold passages and decompositions."""
    files = (folder / "corpus.jsonl.gz", folder / "queries.jsonl.gz", folder / "qrels.jsonl.gz")
    titles = {row["id"]: row["title"] for _, row in read_json_lines(files[0])}
    rows = {row["id"]: row for _, row in read_json_lines(files[1])}
    gold: dict[str, set[str]] = {}
    for _, row in read_json_lines(files[2]):
        gold.setdefault(row["query_id"], set()).add(titles[row["doc_id"]])
    return [
        Case(
            question,
            frozenset(gold[question.id]),
            tuple((step["question"], step["answer"]) for step in rows[question.id]["meta"].get("decomposition", ())),
        )
        for question in read_retrieval_set(*files).questions
    ]


class Ways:
    """`advanced` over the set, three ways."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.model = GoldModel()
        self.parts = {name: runner.pipeline.get_component(name) for name in runner.pipeline.graph.nodes}
        self.filters = self.parts["tenant_filter"].run(tenant_id=TENANT)["filters"]
        for name in ("rewriter", "sub_questions"):
            self.parts[name].chat_generator = self.model

    def read(self, case: Case) -> dict[str, list[Document]]:
        """Give what the final prompt would hold, by way."""
        self.model.case, self.model.calls = case, 0
        told = self.runner.trace(case.question.text, tenant_id=TENANT, outputs=["passages", "rewriter.plan"])["outputs"]
        whole = self._searched([case.question.text])
        if not told["rewriter.plan"]:
            return dict.fromkeys(WAYS, whole)
        steps = [" ".join(_STEP.sub("", text).split()) for text, _ in case.parts]
        return {"whole": whole, "fused": self._searched([case.question.text, *steps]), "parts": told["passages"]}

    def _searched(self, queries: list[str]) -> list[Document]:
        found = self.parts["retriever"].run(queries=queries, filters=self.filters)["documents"]
        parents = self.parts["parent_fetcher"].run(documents=found, filters=self.filters)["documents"]
        ranked = self.parts["ranker"].run(query=queries[0], documents=parents)["documents"]
        read: list[Document] = self.parts["context_builder"].run(documents=ranked)["documents"]
        return read


def table(asked: Sequence[Case], read: Sequence[dict[str, list[Document]]]) -> Iterator[tuple[str, bool]]:
    """Write a line for each group, metric and pair of ways; with it whether it is shown to be better."""
    shares = [
        {way: recall(case.question, judged(case.question, one[way]), 1000) for way in WAYS}
        for case, one in zip(asked, read, strict=True)
    ]
    groups = {"all": list(range(len(asked))), "taken apart": [n for n, one in enumerate(read) if _apart(one)]}
    for group, numbers in groups.items():
        for metric in ("gold read", "all gold read"):
            values = {
                way: [float(shares[n][way] == 1 if metric == "all gold read" else shares[n][way]) for n in numbers]
                for way in WAYS
            }
            for before in ("whole", "fused"):
                found = compare_metric(metric, values[before], values["parts"])
                yield (
                    f"| {group} ({len(numbers)}) | {metric} | {before} {found.before:.3f} | {found.after:.3f} | "
                    f"{found.difference:+.3f} [{found.low:+.3f}, {found.high:+.3f}] | {found.gained} / {found.lost} |",
                    found.verdict == "better",
                )


def _apart(read: dict[str, list[Document]]) -> bool:
    return read["parts"] is not read["whole"]


def main(arguments: list[str] | None = None) -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of public sets (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the ingested data folder here for the next run")
    parser.add_argument("--questions", type=Path, metavar="FILE", help="write a line of JSON for each question")
    options = parser.parse_args(arguments)
    if is_missing(options.data / SET):
        return 2
    with ExitStack() as stack:
        keep = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shiguan-parts-")))
        library = Bench(options.data, keep, None).library(f"{SET}/corpus")
        runner = stack.enter_context(Runner("embedded", "advanced", data_dir=library, outputs=["passages"]))
        ways, asked, read, calls = Ways(runner), cases(options.data / SET), [], []
        for case in asked:
            read.append(ways.read(case))
            calls.append(ways.model.calls + 1)
    lines = list(table(asked, read))
    print("| questions | metric | before | parts | difference | gained / lost |\n|---|---|---:|---:|---|---:|")
    print("\n".join(line for line, _ in lines))
    sizes = {way: sum(len(one[way]) for one in read if _apart(one)) / max(1, sum(map(_apart, read))) for way in WAYS}
    print("passages read of a question taken apart:", ", ".join(f"{way} {size:.2f}" for way, size in sizes.items()))
    over = sum(count > len(case.parts) + 2 for case, count in zip(asked, calls, strict=True))
    print(f"calls: {max(calls)} at most, {over} questions with more than N + 2")
    if options.questions:
        records = [
            {"id": case.question.id, "question": case.question.text, "calls": count}
            | {way: [document.meta.get("title") for document in one[way]] for way in WAYS}
            for case, one, count in zip(asked, read, calls, strict=True)
        ]
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        options.questions.write_text(text, encoding="utf-8")
    return 0 if lines[0][1] and lines[2][1] else 1


if __name__ == "__main__":
    sys.exit(main())
