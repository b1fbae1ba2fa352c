"""
Print how well passages are quoted and questions refused without a language model, against the bars.

    python -m bench.quality.answer_bars [--data DIR] [--keep DIR] [--only books conversations complete] [--json FILE]

The mode is `simple` of the deployment `embedded`. Everything is printed of one half of the questions, by the CRC-32 of
their ids (`--half all` prints both).

1. books: of the questions on three books in one library, how often an accepted answer, or a sentence that answers,
   stands in the passages shown, as an answer or as the closest ones.
2. conversations: the last turn of MT-RAG's conversations, alone, with the history sent by the caller, and with the
   same history kept as a conversation and loaded by its id. nDCG@10 of the retrieval of `simple`, paired; the latter
   two must find the same passages in the same order. And how many of the terms of a human rewrite (TREC CAsT) the words
   have that `simple` searches with.

3. complete: complete questions after a turn that has nothing to do with them: how often other passages come first.

How good the probability is by which passages are an answer or only the closest, `bench.quality.calibration` prints. The
exit code is 1 if a bar is missed, 2 if there are no data.
"""

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.quality.answer_bench import Bench, Observation, in_half
from bench.quality.book_questions import ACROSS, FOLLOW_UPS, OWN
from bench.quality.differences import Difference, compare_metric
from bench.quality.public_sets import DATA, is_missing
from bench.quality.retrieval_bars import BOOKS

from shiguan.conversations import Turn
from shiguan.engine.conversations import ConversationKeeper
from shiguan.engine.runner import Runner
from shiguan.evaluation.json_lines import read_json_lines
from shiguan.evaluation.metrics import Estimate, estimate_mean
from shiguan.evaluation.provenance import TENANT
from shiguan.evaluation.questions import read_retrieval_set
from shiguan.evaluation.scoring import judged as judged_by
from shiguan.evaluation.scoring import ndcg
from shiguan.stores.embedded.sqlite_conversation_store import SQLiteConversationStore
from shiguan.text.languages import detect_language
from shiguan.text.terms import terms

SHOWN = {f"{OWN}, en": 0.66, f"{OWN}, zh": 0.88, ACROSS: 0.55}
CHANGED = 0.05


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    name: str
    value: Estimate
    bar: str = ""
    passed: bool = True


def books(bench: Bench) -> Iterator[Line]:
    """Quote from the books."""
    seen = list(bench.observed(BOOKS, bench.book_cases()))
    for group in (f"{OWN}, en", f"{OWN}, zh", ACROSS, FOLLOW_UPS):
        value = estimate_mean([float(one.shown) for one in _of(seen, group)])
        bar = SHOWN.get(group)
        yield Line(f"books, {group}: shown", value, f"≥ {bar}" if bar else "", bar is None or value.value >= bar)


def _of(seen: Sequence[Observation], group: str) -> list[Observation]:
    return [one for one in seen if one.case.group.startswith(group)]


def conversations(bench: Bench) -> Iterator[Line]:
    """Search last turns alone, with the turns before them as the caller sends them, and with these loaded by id."""
    folder = bench.data / "conv_rag_mtrag"
    judged = read_retrieval_set(
        folder / "corpus.jsonl.gz", folder / "conversations.jsonl.gz", folder / "qrels.jsonl.gz", skip_unjudged=True
    )
    conversation = {row["id"]: row["conversation_id"] for _, row in read_json_lines(folder / "conversations.jsonl.gz")}
    kept = {key for key, of in conversation.items() if in_half(of, bench.half)}
    library, scores, same = bench.library("conv_rag_mtrag/corpus"), defaultdict(list), []
    with _remembering("documents", library) as (runner, keeper):
        for question in (question for question in judged.questions if question.id in kept):
            found = {}
            for name, more in _ways(keeper, question.id, question.history):
                documents, _ = runner.search(question.text[:2000], tenant_id=TENANT, top_k=10, **more)
                found[name] = [document.id for document in documents]
                scores[name].append(ndcg(question, judged_by(question, documents), 10))
            same.append(float(found[SENT] == found[LOADED]))
    for name, values in scores.items():
        yield Line(f"conv_rag_mtrag: nDCG@10, {name}", estimate_mean(values))
    gain = compare_metric("ndcg@10", scores[ALONE], scores[LOADED])
    yield Line("conv_rag_mtrag: loaded against alone, paired", _as_estimate(gain), "interval above 0", gain.low > 0)
    yield Line("conv_rag_mtrag: the same passages sent and loaded", estimate_mean(same), "all", all(same))
    rows = [row for _, row in read_json_lines(bench.data / "conv_rewrite_cast" / "data.jsonl.gz")]
    recalls, same = defaultdict(list), []
    with _remembering("queries", library) as (runner, keeper):
        for row in (row for row in rows if in_half(str(row["topic"]), bench.half)):
            *history, last = [{"role": turn["role"], "content": turn["text"]} for turn in row["turns"]]
            searched, wanted = {}, set(terms(row["rewrite"]))
            for name, more in _ways(keeper, row["id"], history):
                seen = runner.trace(last["content"], tenant_id=TENANT, outputs=["queries"], **more)
                searched[name] = seen["outputs"]["queries"] or last["content"]
                if row["needs_rewrite"] and wanted:
                    recalls[name].append(len(wanted & set(terms(searched[name]))) / len(wanted))
            same.append(float(searched[SENT] == searched[LOADED]))
    for name, values in recalls.items():
        yield Line(f"conv_rewrite_cast: terms of the human rewrite, {name}", estimate_mean(values))
    yield Line("conv_rewrite_cast: the same words sent and loaded", estimate_mean(same), "all", all(same))


def complete(bench: Bench) -> Iterator[Line]:
    """Ask complete questions after a turn that has nothing to do with them: do other passages come first?"""
    sets = {
        "books": (BOOKS, bench.book_cases()),
        **{name: (f"{name}/corpus", bench.cases(f"{name}/queries", 200)) for name in ("en_squad2", "zh_cmrc2018")},
    }
    for name, (corpus, cases) in sets.items():
        asked = [case for case in cases if FOLLOW_UPS not in case.group]
        changed: dict[str, list[float]] = defaultdict(list)
        with bench.mode(corpus) as runner:
            for at, case in enumerate(asked):
                other = asked[(at + len(asked) // 2) % len(asked)]
                said = next(iter([*(quote for side in other.quotes for quote in side), *other.answers]), "…")
                history = [{"role": "user", "content": other.text}, {"role": "assistant", "content": said}]
                first = [
                    [one.id for one in runner.search(case.text[:2000], tenant_id=TENANT, top_k=5, **more)[0]]
                    for more in ({}, {"history": history})
                ]
                changed[detect_language(case.text)].append(float(first[0] != first[1]))
        for language, values in changed.items():
            value = estimate_mean(values)
            # Questions on paragraphs were written beside them, and some of them are not complete by themselves.
            bar = f"≤ {CHANGED}" if name == "books" else ""
            passed = not bar or value.value <= CHANGED
            yield Line(f"{name}, {language}: other passages after an unrelated turn", value, bar, passed)


ALONE, SENT, LOADED = "last turn alone", "history sent", "history loaded by id"


@contextmanager
def _remembering(output: str, library: Path) -> Iterator[tuple[Runner, ConversationKeeper]]:
    """Load `simple` as far as one output, with conversations that are thrown away and never summed up."""
    with (
        tempfile.TemporaryDirectory(prefix="shiguan-conversations-") as folder,
        Runner("embedded", "simple", data_dir=library, outputs=[output]) as runner,
    ):
        reader = runner.pipeline.get_component("conversation")
        reader.conversation_store, reader.summary_tree = SQLiteConversationStore(folder), None
        with closing(ConversationKeeper(reader)) as keeper:
            yield runner, keeper


def _ways(keeper: ConversationKeeper, name: str, history: Sequence[Any]) -> list[tuple[str, dict[str, Any]]]:
    """Keep the turns before a question as a conversation, and give the three ways to ask it."""
    turns: list[Turn] = []
    for one in history:
        if one["role"] == "user":
            turns.append(Turn(one["content"], ""))
        elif turns:
            turns[-1] = replace(turns[-1], answer=one["content"])
    for turn in turns:
        keeper.keep(TENANT, name, turn)
    return [(ALONE, {}), (SENT, {"history": list(history)}), (LOADED, {"conversation_id": name})]


PARTS = {"books": books, "conversations": conversations, "complete": complete}


def _as_estimate(gain: Difference) -> Estimate:
    return Estimate(gain.difference, gain.low, gain.high, gain.count)


def table_line(line: Line) -> str:
    """Write a line of the table."""
    value = line.value
    verdict = "" if not line.bar else "pass" if line.passed else "MISS"
    interval = f"{value.low:.3f} to {value.high:.3f}"
    return f"| {line.name} | {value.count} | {value.value:.3f} | {interval} | {line.bar} | {verdict} |"


def main(arguments: list[str] | None = None) -> int:
    """Measure the parts and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of public sets (default: %(default)s)")
    parser.add_argument("--keep", type=Path, default=Path(".data/bars"), help="where ingested corpora are kept")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help="only these parts"
    )
    parser.add_argument(
        "--half", choices=("0", "1", "all"), default="1", help="which half (default: the one not fitted on)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers here too")
    options = parser.parse_args(arguments)
    if is_missing(options.data):
        return 2
    lines: list[Line] = []
    print("| what | questions | value | 95 % interval | bar | |\n|---|---:|---:|---|---|---|", flush=True)
    bench = Bench(options.data, options.keep, None if options.half == "all" else int(options.half))
    for part in options.only:
        for line in PARTS[part](bench):
            lines.append(line)
            print(table_line(line), flush=True)
    if options.json:
        rows = [{"name": one.name, **one.value.to_json(), "bar": one.bar, "passed": one.passed} for one in lines]
        options.json.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if all(line.passed for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
