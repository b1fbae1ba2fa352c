"""On public sets the stage that lost a passage agrees with a computation of its own, from the retrievers' lists alone."""

import gzip
import json
from collections import Counter
from statistics import pstdev

import pytest

from shiguan.engine.library import Library
from shiguan.engine.runner import Runner
from shiguan.evaluation.attribution import ExpectedPassages, TracedMode, attribute
from shiguan.evaluation.provenance import TENANT, ingest_corpus
from shiguan.evaluation.questions import read_retrieval_set

pytestmark = pytest.mark.slow
READ = 2
"""Passages read of each question: few, since a retrieval that reads five misses next to nothing of these sets."""
SECOND = 0.2
"""What the best other match of its passage adds to a match, as a share of that one's, and no more than of its own."""
LEAST = 0.006
"""The deviation of cosines that a smaller one counts as."""


def rows(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def chinese(data, folder):
    """DRCD: a thousand passages, and half of its questions."""
    source = data / "zh_drcd"
    return [source / f"{name}.jsonl.gz" for name in ("corpus", "queries", "qrels")]


def english(data, folder):
    """Twenty-five questions of two passages each, among two hundred that are about something else."""
    source = data / "en_multihop"
    queries = rows(source / "queries.jsonl.gz")[:25]
    asked = {row["id"] for row in queries}
    qrels = [row for row in rows(source / "qrels.jsonl.gz") if row["query_id"] in asked]
    gold = {row["doc_id"] for row in qrels}
    corpus = rows(source / "corpus.jsonl.gz")
    others = [row for row in corpus if row["id"] not in gold][:200]
    paths = []
    for name, kept in (
        ("corpus", [row for row in corpus if row["id"] in gold] + others),
        ("queries", queries),
        ("qrels", qrels),
    ):
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
        paths.append(path)
    return paths


def standardised(found, least):
    """Standardise a list of raw scores within each language, and let a passage's other match count a little."""
    groups = {}
    for child in found:
        groups.setdefault(child.meta["language"], []).append(child.meta["raw_score"])
    alone = {}
    for child in found:
        scores = groups[child.meta["language"]]
        deviation = max(pstdev(scores), least)
        score = (child.meta["raw_score"] - min(scores)) / deviation if len(set(scores)) > 1 else 2.0
        alone.setdefault(child.meta["parent_id"], {})[child.id] = score
    values = []
    for child in found:
        family = alone[child.meta["parent_id"]]
        others = [score for name, score in family.items() if name != child.id]
        values.append(family[child.id] + SECOND * min(max(others, default=0.0), family[child.id]))
    return values


def recomputed(runner, query, parents):
    """Name the stage from the two retrievers' lists, with the fusion and the families worked out anew."""
    part = runner.pipeline.get_component
    filters = {"field": "meta.tenant_id", "operator": "==", "value": TENANT}
    lists = [part("bm25_retriever").run(query=query, filters=filters)["documents"]]
    vector = part("text_embedder").run(text=query)["embedding"]
    lists.append(part("embedding_retriever").run(query_embedding=vector, filters=filters)["documents"])
    families = [[child.meta["parent_id"] for child in found] for found in lists]
    if not any(parents & set(found) for found in families):
        return "not_found_by_either"
    best = {}
    for child in lists[1]:
        best[child.meta["language"]] = max(best.get(child.meta["language"], 0.0), child.meta["raw_score"])
    nearest = max(best.values())
    scores = Counter()
    home = {}
    for found, least in zip(lists, (0.0, LEAST), strict=True):
        for child, score in zip(found, standardised(found, least), strict=True):
            scores[child.id] += score * (best[child.meta["language"]] / nearest) ** 4
            home[child.id] = child.meta["parent_id"]
    worth = {}
    for name, score in scores.most_common(50):
        worth.setdefault(home[name], score)
    if not parents & worth.keys():
        return "fused_out"
    if not parents & set(sorted(worth, key=worth.__getitem__, reverse=True)[:READ]):
        return "ranked_out"
    return "read"


@pytest.mark.parametrize(("choose", "least"), [(chinese, 8), (english, 5)])
def test_every_miss_of_simple_is_attributed_as_recomputed(choose, least, public_data, tmp_path):
    corpus, queries, qrels = choose(public_data, tmp_path)
    judged = read_retrieval_set(corpus, queries, qrels, limit=500)
    ingest_corpus([corpus], deployment="embedded", data_dir=tmp_path / "library")
    library = ExpectedPassages(Library("embedded", data_dir=tmp_path / "library").stores, TENANT)
    missed = Counter()
    with Runner("embedded", "simple", data_dir=tmp_path / "library", outputs=["documents"]) as runner:
        mode = TracedMode(runner)
        for question in judged.questions:
            trace = mode.ask(question.text, tenant_id=TENANT, top_k=READ).trace()
            for expected in library.of_question(question):
                found = attribute(trace, expected)
                stage = recomputed(runner, question.text, expected.parent_ids)
                assert (found.stage if found.stage != "nothing_lost" else "read") == stage, question.id
                missed[stage] += 1
    assert missed.total() - missed["read"] >= least, missed
