"""The fit for passages in the other language: what it may doubt, and the bilingual libraries it is made with."""

import gzip
import json
import random

from bench.quality.across_calibration import BILINGUAL, DOUBTED, XQUAD, Row, bilingual_corpus, fit
from bench.quality.answer_bench import Case, Observation

from shiguan.answer.answerability import CLOSEST_BELOW, Signals


def row(group, chinese, matched, lead, *, answered):
    signals = Signals(0.8, 0.5, 1.0, chinese, 0.0, matched_coverage=matched, lead=lead)
    case = Case("q", "Which?", answers=("yes",))
    return Row(group, "answerable" if answered else "foreign", 0, Observation(case, signals, 1.0, ("yes",), ()))


def test_few_right_answers_are_doubted_of_each_kind_and_direction_alike():
    chance = random.Random(3)
    rows = [
        row(group, chinese, chance.gauss(0.5, 0.15), chance.gauss(0.03, 0.01), answered=True)
        for group, chinese, count in ((XQUAD, 0.0, 400), (BILINGUAL, 1.0, 100))
        for _ in range(count)
    ]
    rows += [row(XQUAD, 0.0, chance.gauss(0.2, 0.15), chance.gauss(0.01, 0.01), answered=False) for _ in range(300)]
    model = fit(rows)
    assert model.weights.matched_coverage > 0 < model.weights.lead
    assert model.weights.cosine == model.weights.coverage == model.weights.language_gap == 0
    doubted = [model.probability(one.observation.signals) < CLOSEST_BELOW for one in rows]
    shares = [sum(doubted[:400]) / 400, sum(doubted[400:500]) / 100]
    assert abs(sum(shares) / 2 - DOUBTED) < 0.01
    assert sum(doubted[500:]) > 150


def test_a_bilingual_library_has_each_article_in_one_language_and_all_other_paragraphs(tmp_path):
    folder = tmp_path / "xquad_enzh"
    folder.mkdir()
    for language in ("en", "zh"):
        rows = [{"id": name, "text": f"{name} {language}"} for name in ("xq-A-0", "xq-B-0", "xq-C-0", f"{language}-7")]
        with gzip.open(folder / f"corpus_{language}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.write("".join(json.dumps(one) + "\n" for one in rows))
    path = bilingual_corpus(tmp_path, tmp_path / "keep", {"xq-A": "en", "xq-B": "zh", "xq-C": "neither"}, 0)
    texts = [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert texts == ["xq-A-0 en", "en-7 en", "xq-B-0 zh", "zh-7 zh"]
