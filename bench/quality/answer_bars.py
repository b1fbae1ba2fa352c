"""
Print how well answers are refused, cited and chosen without a language model, against the bars.

    python -m bench.quality.answer_bars [--data DIR] [--keep DIR] [--only refusals evidence] [--json FILE]

The mode is `precise` of the deployment `embedded`, with the extractive answerer. What it was fitted on is one half of
the questions, by the CRC-32 of their ids; everything printed here is of the other half (`--half all` prints both).

1. refusals: questions of one set asked over another set's corpus, and over their own. At least .80 of the first are to
   be refused, at most .10 of the second. A question whose answer happens to stand in the passages that were read is
   left out of the first: two encyclopedias overlap.
2. evidence: the questions of ExpMRC over their own passages. Citation precision and recall in ALCE's sense are to be at
   least .95; the first sentence that is quoted (the answerer limited to one) is to be the human evidence at least .03
   more often than the best BM25 sentence, of the passages read or of the whole corpus, whichever is better. A refusal
   counts as a wrong sentence.
3. conversations: the last turn of MT-RAG's conversations, alone and with the words that tell most of the history.
   nDCG@10 of the retrieval of `simple`, paired. And how many of the terms of a human rewrite (TREC CAsT) such a query
   has.
4. curve: answerable and unanswerable questions of SQuAD 2, all answered, by confidence. No bar: they are meant to
   mislead.

The exit code is 1 if a bar is missed, 2 if there are no data.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
from bench.quality.answer_bench import Bench
from haystack import Document, GeneratedAnswer

from shiguan.answer.answer_sentences import answerability, candidates
from shiguan.answer.sentence_match import sentence_matches
from shiguan.engine.runner import Runner
from shiguan.evaluation.answer_metrics import score_citations
from shiguan.evaluation.attribution import folded
from shiguan.evaluation.intervals import Difference, Estimate, compare_metric, estimate_mean
from shiguan.evaluation.json_lines import read_json_lines
from shiguan.evaluation.provenance import TENANT
from shiguan.evaluation.questions import read_retrieval_set
from shiguan.evaluation.retrieval_metrics import ndcg, passages_of
from shiguan.evaluation.scoring import curve_table, risk_curve
from shiguan.llm.source_blocks import source_block
from shiguan.query.query_rewriter import QueryRewriter
from shiguan.text.sentences import sentence_spans
from shiguan.text.terms import terms

DATA = Path(os.environ.get("SHIGUAN_PUBLIC_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
REFUSED, FALSELY, CITED, GAIN = 0.80, 0.10, 0.95, 0.03
PAIRS = {
    "zh": (("zh_cmrc2018", "zh_drcd"), ("zh_drcd", "zh_cmrc2018")),
    "en": (("en_multihop", "en_squad2"), ("en_squad2", "en_multihop")),
}
"""By language: the corpus that is asked, and whose questions."""


@dataclass(frozen=True)
class Line:
    """
    One line of the table.

    :param name: What was measured.
    :param value: The number with its interval.
    :param bar: What must be reached, in words; empty for none.
    :param passed: Whether it was.
    """

    name: str
    value: Estimate
    bar: str = ""
    passed: bool = True


def refusals(bench: Bench) -> Iterator[Line]:
    """Ask every set's questions over its own corpus and over another one's."""
    for language, pairs in PAIRS.items():
        foreign_all: list[float] = []
        own_all: list[float] = []
        for corpus, questions in pairs:
            rows = [row for _, row in read_json_lines(bench.data / questions / "queries.jsonl.gz")]
            foreign: list[float] = []
            by_chance = 0
            with bench.mode(corpus) as ask:
                for row in bench.sample(rows):
                    answer = ask(row["text"])
                    if any(_holds(document, row.get("answers") or []) for document in answer.documents):
                        by_chance += 1
                    else:
                        foreign.append(_refused(answer))
            with bench.mode(questions) as ask:
                own = [_refused(ask(row["text"])) for row in bench.sample(rows)]
            left_out = f", {by_chance} answered there by chance left out" if by_chance else ""
            yield Line(f"{questions} over {corpus}: refused{left_out}", estimate_mean(foreign))
            yield Line(f"{questions} over its own corpus: falsely refused", estimate_mean(own))
            foreign_all += foreign
            own_all += own
        refused, falsely = estimate_mean(foreign_all), estimate_mean(own_all)
        yield Line(f"**{language}: refused**", refused, f"≥ {REFUSED}", refused.value >= REFUSED)
        yield Line(f"**{language}: falsely refused**", falsely, f"≤ {FALSELY}", falsely.value <= FALSELY)


def evidence(bench: Bench) -> Iterator[Line]:
    """Ask ExpMRC over its own passages."""
    for language in ("zh", "en"):
        rows = bench.of_half(bench.evidence_rows(language))
        texts = list(dict.fromkeys(row["source"] for row in bench.evidence_rows(language)))
        everywhere = [text[start:end] for text in texts for start, end in sentence_spans(text)]
        everywhere_terms = [terms(sentence) for sentence in everywhere]
        precision, recall = [], []
        with bench.mode(f"expmrc_{language}") as ask:
            for row in rows:
                answer = ask(row["question"])
                if not _refused(answer):
                    passages = {d.meta["number"]: d.content or "" for d in answer.documents}
                    scores = score_citations(answer.data, passages)
                    precision.append(scores.precision)
                    recall.append(scores.recall)
        ours, near, far = [], [], []
        with bench.mode(f"expmrc_{language}", max_sentences=1) as ask:
            for row in rows:
                answer = ask(row["question"])
                wanted = [one["text"] for one in row["evidences"]]
                ours.append(float(any(_is_evidence(one["quote"], wanted) for one in answer.meta["citations"][:1])))
                read = [d.content or "" for d in answer.documents]
                sentences = [text[start:end] for text in read for start, end in sentence_spans(text)]
                near.append(_best_bm25(row["question"], sentences, [terms(s) for s in sentences], wanted))
                far.append(_best_bm25(row["question"], everywhere, everywhere_terms, wanted))
        for name, values in (("precision", precision), ("recall", recall)):
            value = estimate_mean(values)
            yield Line(f"{language}: citation {name}", value, f"≥ {CITED}", value.value >= CITED)
        bm25 = max(near, far, key=sum)
        yield Line(f"{language}: human evidence, the sentence quoted first", estimate_mean(ours))
        yield Line(f"{language}: human evidence, best BM25 sentence", estimate_mean(bm25))
        gain = compare_metric("evidence", bm25, ours)
        yield Line(f"{language}: difference, paired", _as_estimate(gain), f"≥ {GAIN}", gain.difference >= GAIN)


def conversations(bench: Bench) -> Iterator[Line]:
    """Search the last turns alone and with words of the history."""
    folder = bench.data / "conv_rag_mtrag"
    judged = read_retrieval_set(
        folder / "corpus.jsonl.gz", folder / "conversations.jsonl.gz", folder / "qrels.jsonl.gz", skip_unjudged=True
    )
    conversation = {row["id"]: row["conversation_id"] for _, row in read_json_lines(folder / "conversations.jsonl.gz")}
    kept = {row["id"] for row in bench.of_half([{"id": k, "of": v} for k, v in conversation.items()], "of")}
    questions = [question for question in judged.questions if question.id in kept]
    rewriter = QueryRewriter(None, method="contextualize", on_failure="terms")
    alone, joined = [], []
    with closing(
        Runner("embedded", "simple", data_dir=bench.library("conv_rag_mtrag"), outputs=["documents"])
    ) as runner:
        for question in questions:
            query = rewriter.run(query=question.text, history=question.history)["query"]
            for text, values in ((question.text, alone), (query, joined)):
                documents, _ = runner.search(text[:2000], tenant_id=TENANT, top_k=10)
                values.append(ndcg(question, passages_of(documents), 10))
    gain = compare_metric("ndcg@10", alone, joined)
    yield Line("conv_rag_mtrag: nDCG@10, last turn alone", estimate_mean(alone))
    yield Line("conv_rag_mtrag: nDCG@10, with words of the history", estimate_mean(joined))
    yield Line("conv_rag_mtrag: difference, paired", _as_estimate(gain), "interval above 0", gain.low > 0)
    rows = [row for _, row in read_json_lines(bench.data / "conv_rewrite_cast" / "data.jsonl.gz")]
    recalls: dict[str, list[float]] = {"last turn alone": [], "with words of the history": []}
    for row in bench.of_half(rows, "topic"):
        *history, last = [{"role": turn["role"], "content": turn["text"]} for turn in row["turns"]]
        query = rewriter.run(query=last["content"], history=history)["query"]
        wanted = set(terms(row["rewrite"]))
        for name, text in (("last turn alone", last["content"]), ("with words of the history", query)):
            if row["needs_rewrite"] and wanted:
                recalls[name].append(len(wanted & set(terms(text))) / len(wanted))
    for name, values in recalls.items():
        yield Line(f"conv_rewrite_cast: terms of the human rewrite, {name}", estimate_mean(values))


def curve(bench: Bench) -> Iterator[Line]:
    """Answer every question of SQuAD 2, sort by confidence, and print the risk at every coverage."""
    folder = bench.data / "en_squad2"
    answerable = bench.sample([row for _, row in read_json_lines(folder / "queries.jsonl.gz")])
    unanswerable = bench.sample([row for _, row in read_json_lines(folder / "unanswerable_queries.jsonl.gz")])
    given: list[tuple[float, bool]] = []
    with bench.mode("en_squad2", threshold=-float("inf")) as ask:
        for row in [*answerable, *unanswerable]:
            answer = ask(row["text"])
            sources = [source_block(document) for document in answer.documents]
            found = candidates(row["text"], sources)
            sure = answerability(row["text"], sources, max(found, key=lambda one: one.score)) if found else -99.0
            right = any(folded(one) in folded(answer.data) for one in row.get("answers") or [])
            given.append((max(sure, -99.0), right))
    drawn = risk_curve(given)
    for row in curve_table(drawn):
        count = round(row["coverage"] * drawn.questions)
        wrong = round(row["risk"] * count)
        value = estimate_mean([1.0] * wrong + [0.0] * (count - wrong))
        yield Line(f"risk at coverage {row['coverage']:.2f} (confidence ≥ {row['confidence']:.1f})", value)
    above = [right for sure, right in given if sure >= 0]
    yield Line(
        f"risk at the mode's own threshold, coverage {len(above) / len(given):.2f}",
        estimate_mean([float(not r) for r in above]),
    )


PARTS = {"refusals": refusals, "evidence": evidence, "conversations": conversations, "curve": curve}


def _refused(answer: GeneratedAnswer) -> float:
    return float(answer.meta["status"] == "not_found")


def _holds(document: Document, answers: Sequence[str]) -> bool:
    text = folded(document.content or "")
    return any(folded(answer) in text for answer in answers if answer.strip())


def _is_evidence(sentence: str, wanted: Sequence[str]) -> bool:
    said = folded(sentence)
    return bool(said) and any(said in folded(one) or folded(one) in said for one in wanted)


def _best_bm25(question: str, sentences: list[str], words: list[list[str]], wanted: Sequence[str]) -> float:
    if not sentences:
        return 0.0
    scores = sentence_matches(terms(question), words)
    return float(_is_evidence(sentences[scores.index(max(scores))], wanted))


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
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the ingested corpora here for the next run")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help="only these parts"
    )
    parser.add_argument(
        "--half", choices=("0", "1", "all"), default="1", help="which half (default: the one not fitted on)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers here too")
    options = parser.parse_args(arguments)
    if not options.data.is_dir():
        print(f"{options.data} is missing; see bench/quality/README.md on how to get it.", file=sys.stderr)
        return 2
    lines: list[Line] = []
    print("| what | questions | value | 95 % interval | bar | |\n|---|---:|---:|---|---|---|", flush=True)
    with ExitStack() as stack:
        keep = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shiguan-answer-bars-")))
        keep.mkdir(parents=True, exist_ok=True)
        bench = Bench(options.data, keep, None if options.half == "all" else int(options.half))
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
