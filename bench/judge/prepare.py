"""
Prepare what the judge is trained on.

    python -m bench.judge.prepare --data DIR --out FILE.npz [--keep DIR]

Every example is a passage of one to three sentences with some claims about it, true and false: sentences of public
pairs, sentences made of questions and their answers, and sentences of the passage changed by rule. A true sentence and
what one small change makes of it stand beside each other, so that only the change tells them apart.
"""

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from random import Random

import numpy as np

from bench.judge import sets, written
from bench.judge.changes import (
    ANSWERED,
    CONTRADICTED,
    HAN,
    NOT_SAID,
    NOT_SUPPORTED,
    SUPPORTED,
    Claim,
    Example,
    falsehoods,
    latin_names,
    names_in,
    rewritings,
)
from bench.judge.questions import asked, of_clauses, of_retellings, repeated, with_gaps
from bench.judge.retellings import retold
from bench.judge.retrieved import retrieved
from bench.quality.answer_bench import Bench
from bench.quality.public_sets import DATA
from shiguan.models.token_counter import tokenizer
from shiguan.models.weights import Weights, weights_file
from shiguan.text.sentences import sentence_spans

MOST_CLAIMS = 6
PASSAGE_TOKENS, CLAIM_TOKENS = 320, 64
UNKNOWN = 2
"""Stands for a token of which it is not known whether the passage supports it."""


def window(text: str, spans: Sequence[tuple[int, int]], at: int, chance: Random) -> tuple[str, int, int]:
    """Give a sentence with none to two of its neighbours, and the numbers of the first and the last."""
    most = 150 if HAN.search(text) else 480
    first = last = at
    for _ in range(chance.choice((0, 1, 1, 2, 2))):
        before = first > 0 and (last == len(spans) - 1 or chance.random() < 0.5)
        start, end = (first - 1, last) if before else (first, last + 1)
        if end >= len(spans) or spans[end][1] - spans[start][0] > most:
            break
        first, last = start, end
    return text[spans[first][0] : spans[last][1]], first, last


def changed(text: sets.Text, names: Sequence[str], chance: Random, most: int) -> Iterator[Example]:
    """Make examples of the sentences of a text."""
    flat = [(p, span) for p in text.paragraphs for span in [sentence_spans(p)] if span]
    places = [(paragraph, spans, at) for paragraph, spans in flat for at in range(len(spans))]
    places = [(p, s, at) for p, s, at in places if _is_usable(p[s[at][0] : s[at][1]])]
    for paragraph, spans, at in chance.sample(places, min(most, len(places))):
        sentence = paragraph[slice(*spans[at])]
        passage, first, last = window(paragraph, spans, at, chance)
        others = [paragraph[slice(*spans[n])] for n in range(len(spans)) if not first <= n <= last]
        if claims := about(sentence, passage, others, names, chance):
            example = Example(text.set, passage, tuple(claims))
            yield (turned(example, sentence, chance) if chance.random() < 0.5 else None) or example


def turned(example: Example, sentence: str, chance: Random) -> Example | None:
    """
    Let the passage say what was false, so that it is true, and the true sentence false.

    So nothing about a claim by itself shows whether it is true.
    """
    changes = [c for c in example.claims if c.was and sentence == _undone(c, sentence)]
    if not changes:
        return None
    said = chance.choice(changes)
    passage = example.passage.replace(sentence, said.text)
    false = Claim(sentence, said.label, said.was)
    return Example(example.set, passage, (Claim(said.text, SUPPORTED), false))


def _undone(claim: Claim, sentence: str) -> str:
    """Return the sentence where the claim differs from it only at the places that were changed."""
    result, at = "", 0
    for (start, end), (a, b) in zip(claim.wrong or (), claim.was, strict=True):
        result += claim.text[at:start] + sentence[a:b]
        at = end
    return result + claim.text[at:]


def told(text: sets.Text, names: Sequence[str], chance: Random, most: int) -> Iterator[Example]:
    """Make examples of short clauses that are told otherwise, with the parts exchanged and with others."""
    made = 0
    for paragraph in chance.sample(text.paragraphs, len(text.paragraphs)):
        spans = sentence_spans(paragraph)
        for at, (start, end) in enumerate(spans):
            if end - start > (100 if HAN.search(paragraph) else 300):
                continue
            passage, *_ = window(paragraph, spans, at, chance)
            for truths, lies in retold(paragraph[start:end], passage, names, chance):
                claims = [*(Claim(one, SUPPORTED) for one in truths[:2]), *lies[:3]]
                yield Example("told_zh" if HAN.search(passage) else "told_en", passage, tuple(claims))
                made += 1
                break
            if made >= most:
                return


def _is_usable(sentence: str) -> bool:
    return 10 <= len(sentence) <= 80 if HAN.search(sentence) else 6 <= len(sentence.split()) <= 40


def about(sentence: str, passage: str, others: Sequence[str], names: Sequence[str], chance: Random) -> list[Claim]:
    """Make claims about a passage of one of its sentences: true ones, false ones and one of another sentence."""
    said = rewritings(sentence, chance)
    true = chance.choice(said) if said and chance.random() < 0.7 else sentence
    base = true if chance.random() < 0.6 else sentence
    here = names_in(base, names)
    false = falsehoods(base, passage, here, names, chance, " ".join(others))
    claims = [Claim(true, SUPPORTED), *false[: chance.choice((1, 2, 2))]]
    if len(said) > 1 and chance.random() < 0.4:
        claims.append(Claim(next((s for s in said if s != true), true), SUPPORTED))
    for truths, lies in retold(sentence, passage, names, chance):
        claims += [Claim(truths[0], SUPPORTED), *lies[:1], *(Claim(t, SUPPORTED) for t in truths[1:2]), *lies[1:2]]
        break
    usable = [other for other in others if _is_usable(other)]
    if usable and chance.random() < 0.25:
        claims.append(Claim(chance.choice(usable), NOT_SAID, None))
    return list({claim.text: claim for claim in claims}.values())[:MOST_CLAIMS] if len(claims) > 1 else []


_WHO = re.compile(
    r"(?i)(?:who|what|which [a-z]+|how many [a-z]+) "
    r"(?=(?:\w+ed|is|was|were|are|had|has|led|won|made|took|wrote|built|became|began|gave|held|ran|has|can|will|lives?|"
    r"says?|said|went|came|saw|got|found|fought|spoke|sent|brought|knew|left|lost|sold|bought)\b)"
)
_WHEN = re.compile(
    r"(?i)(when|where) (was|were|is|are) (.+?) ((?:\w+ed|born|built|made|held|found|written|won|sent)\b.*?)\?*$"
)
_DID = re.compile(r"(?i)(?:what|who|whom|which \w+) (?:did|does|do) (.+?)\?*$")
_ASKED_ZH = "哪一年 哪年 什么时候 何时 什麼時候 何時 哪个国家 哪里 哪裡 谁 誰 多少人 什么 什麼".split()


def statement(question: str, answer: str) -> str | None:
    """Put an answer into its question; None where the question has no form that is known."""
    answer = answer.strip(" .。,，")
    if HAN.search(question):
        if re.search("[ぁ-ん]", question):
            return None
        word = next((word for word in _ASKED_ZH if word in question), None)
        return re.sub("[?？吗呢嗎]+$", "", question.replace(word, answer, 1)) + "。" if word else None
    if match := _WHO.match(question):
        rest = question[match.end() :].strip().rstrip("?").strip()
        return f"{answer[0].upper()}{answer[1:]} {rest}." if answer else None
    if match := _WHEN.match(question.strip()):
        word = "" if re.match(r"(?i)(in|on|at|near|by|around|after|before|during) ", answer) else "in "
        what = match[3][0].upper() + match[3][1:]
        return f"{what} {match[2]} {match[4].strip()} {word}{answer}."
    return None


def stated(questions: Iterable[sets.Question], most: dict[str, int]) -> Iterator[Example]:
    """Make examples of sentences that put an answer into its question: the right one, and others of the passage."""
    of_passage: dict[tuple[str, str], list[sets.Question]] = defaultdict(list)
    for one in questions:
        if one.end:
            of_passage[one.set, one.passage].append(one)
    made: Counter[str] = Counter()
    for (name, passage), some in of_passage.items():
        chance = sets.seeded(passage)
        spans = sentence_spans(passage)
        answers = list(dict.fromkeys(passage[q.start : q.end] for q in some))
        for one in chance.sample(some, min(3, len(some))):
            answer = passage[one.start : one.end]
            true = statement(one.text, answer)
            at = next((n for n, (_, end) in enumerate(spans) if end > one.start), None)
            if not true or at is None or made[name] >= most.get(name, 0):
                continue
            shown, *_ = window(passage, spans, at, chance)
            if answer not in shown:
                continue
            here = names_in(true, answers)
            near = [
                a for a in {*answers, *latin_names(shown)} if a not in answer and answer not in a and a not in one.text
            ]
            claims = [Claim(true, SUPPORTED)]
            if near and (false := statement(one.text, other := chance.choice(sorted(near)))):
                place = false.casefold().find(other.strip(" .。,，").casefold())
                claims.append(Claim(false, CONTRADICTED, ((place, place + len(other)),) if place >= 0 else None))
            claims += falsehoods(true, shown, here, answers, chance)[: chance.choice((1, 2))]
            made[name] += 1
            yield Example(name, shown, tuple(claims))


def tang(folder: Path, names: Sequence[str], *, kept_out: bool) -> Iterator[Example]:
    """Make examples of modern sentences and the classical passages that they retell."""
    rows = sets.tang_sentences(folder, kept_out=kept_out)
    for number, (sentence, passage, (start, end)) in enumerate(rows):
        chance = sets.seeded(sentence)
        spans = sentence_spans(passage)
        inside = [n for n, (a, b) in enumerate(spans) if b > start and a < end]
        if not inside:
            continue
        first, last = inside[0], inside[-1]
        if chance.random() < 0.5 and last + 1 < len(spans):
            last += 1
        elif chance.random() < 0.5 and first:
            first -= 1
        shown = passage[spans[first][0] : spans[last][1]]
        here = [name for name in names if name in sentence]
        false = falsehoods(sentence, shown, here, names, chance)
        claims = [Claim(sentence, SUPPORTED), *false[:2]]
        if said := rewritings(sentence, chance):
            claims.append(Claim(said[0], SUPPORTED))
        other = rows[(number + chance.choice((1, 1, 2, 40))) % len(rows)][0]
        claims.append(Claim(other, NOT_SAID, None))
        yield Example("tang", shown, tuple(claims[:MOST_CLAIMS]))


def across(folder: Path, *, kept_out: bool) -> Iterator[Example]:
    """Make examples of sentences and their translations."""
    rows = sets.across_sentences(folder, kept_out=kept_out)
    for number, (sentence, passage, start, end) in enumerate(rows):
        if not _is_usable(sentence):
            continue
        chance = sets.seeded(sentence)
        shown = passage[max(0, start - 40) if chance.random() < 0.3 else start : end]
        names = latin_names(sentence)
        false = falsehoods(sentence, shown, names, names, chance)
        other = rows[(number + 2 * chance.choice((1, 2, 20, 31))) % len(rows)]
        claims = [Claim(sentence, SUPPORTED), *false[:2]]
        if other[0] != sentence and bool(HAN.search(other[0])) == bool(HAN.search(sentence)):
            claims.append(Claim(other[0], NOT_SAID, None))
        yield Example("across", shown, tuple(claims))


def public(folder: Path) -> Iterator[Example]:
    """Group public pairs by their passage."""
    groups: dict[tuple[str, str], list[Claim]] = defaultdict(list)
    for name, claim, passage, label in sets.inference_pairs(folder):
        groups[name, passage].append(Claim(claim, label, () if label == SUPPORTED else None))
    for (name, passage), claims in groups.items():
        if sets.seeded(passage).random() > {"cad": 0.6}.get(name, 0.15):
            continue
        for at in range(0, len(claims), MOST_CLAIMS):
            yield Example(name, passage, tuple(claims[at : at + MOST_CLAIMS]))


def wice(folder: Path) -> Iterator[Example]:
    """Make examples of the claims of WiCE: with the sentences that support them, and with others of the page."""
    for row in sets.wice_claims(folder, kept_out=False):
        chance = sets.seeded(row["id"])
        lines = row["source_sentences"]
        claim = row["response"]
        chosen = sorted(chance.choice(row["supporting_sentence_sets"])) if row.get("supporting_sentence_sets") else []
        label = {"supported": SUPPORTED, "not_supported": NOT_SAID}.get(row["label"], NOT_SUPPORTED)
        if chosen:
            claims = [Claim(claim, label, () if label == SUPPORTED else None)]
            claims += falsehoods(claim, " ".join(lines), latin_names(claim), latin_names(claim), chance)[:2]
            yield Example("wice", " ".join(lines[n] for n in chosen)[:600], tuple(claims))
        rest = [line for n, line in enumerate(lines) if n not in chosen and len(line) > 60]
        if rest:
            yield Example("wice", chance.choice(rest)[:500], (Claim(claim, NOT_SAID, None),))


def examples(folder: Path, keep: Path) -> Iterator[Example]:
    """Make all examples, in the same order at every run."""
    names = sets.known_names(folder)
    for text in sets.book_texts(folder, kept_out=False):
        if text.paragraphs:
            chance = sets.seeded(text.paragraphs[0])
            local = sets.names_of(text, names)
            yield from told(text, local, chance, 12 if text.set == "classical" else 300)
            yield from of_clauses(text, local, chance, 12 if text.set == "classical" else 300)
            yield from with_gaps(text, local, chance, 30 if text.set == "classical" else 700)
            yield from changed(
                text, local, chance, 70 if text.set == "classical" else 700 if text.set == "book_en" else 40
            )
    for key, passage in sets.tang_passages(folder, kept_out=False).items():
        text = sets.Text("classical", (passage,))
        local = sets.names_of(text, names)
        yield from told(text, local, sets.seeded(key), 1)
        yield from of_clauses(text, local, sets.seeded(key), 1)
        yield from changed(text, local, sets.seeded(key), 1)
    for text in sets.paragraphs(folder):
        chance = sets.seeded(text.paragraphs[0])
        # More would never be drawn.
        if chance.random() < {"jaquad": 0.03, "nq": 0.4, "zh_drcd": 0.7}.get(text.set, 1):
            local = sets.names_of(text, names)
            if text.set in ("nq", "en_squad2"):
                yield from told(text, local, chance, 1)
                yield from of_clauses(text, local, chance, 1)
            yield from changed(text, local, chance, 2)
    yield from written.claims(folder)
    yield from asked(chain(sets.questions(folder), written.questions(folder)))
    yield from retrieved(chain(sets.questions(folder), written.questions(folder)), Bench(folder, keep, None))
    yield from repeated(written.questions(folder), 1000)
    yield from of_retellings(sets.tang_sentences(folder, kept_out=False), names)
    yield from stated(
        sets.questions(folder),
        dict.fromkeys(sets.XQUAD, 0)
        | {"qamr": 2500, "nq": 1200, "jaquad": 0}
        | dict.fromkeys(("xq_en", "xq_zh", "en_squad2", "zh_cmrc2018", "zh_drcd"), 1000),
    )
    yield from tang(folder, names, kept_out=False)
    yield from across(folder, kept_out=False)
    yield from public(folder)
    yield from wice(folder)


def arrays(found: Sequence[Example]) -> dict[str, np.ndarray]:
    """Cut the examples into tokens."""
    weights = Weights(weights_file())
    cut = tokenizer()
    names = sorted({example.set for example in found})
    ids: list[int] = []
    wrong: list[int] = []
    lengths, labels, answers, groups, of_set = [], [], [], [], []
    for example in found:
        places = cut.pieces(example.passage)[:PASSAGE_TOKENS]
        passage = [piece for piece, *_ in places]
        texts = [(passage, [0] * len(passage), -1, (0, 0))]
        for claim in example.claims:
            pieces = cut.pieces(claim.text)[:CLAIM_TOKENS]
            marks = [
                UNKNOWN if claim.wrong is None else int(any(a < end and b > start for a, b in claim.wrong))
                for _, start, end in pieces
            ]
            # The mark of the start is the first token of all.
            inside = [at for at, (_, a, b) in enumerate(places, 1) if b > claim.answer[0] and a < claim.answer[1]]
            answer = (inside[0], inside[-1] + 1) if inside else (0, 0)
            if pieces and (claim.label != ANSWERED or inside):
                texts.append(([piece for piece, *_ in pieces], marks, claim.label, answer))
        if len(texts) < 2 or len(passage) < 4:
            continue
        for pieces_, marks, label, answer in texts:
            ids += [weights.start_id, *pieces_, weights.end_id]
            wrong += [UNKNOWN, *marks, UNKNOWN]
            lengths.append(len(pieces_) + 2)
            labels.append(label)
            answers.append(answer)
        groups.append(len(texts))
        of_set.append(names.index(example.set))
    return {
        "ids": np.array(ids, np.int32),
        "wrong": np.array(wrong, np.int8),
        "lengths": np.array(lengths, np.int32),
        "labels": np.array(labels, np.int8),
        "answers": np.array(answers, np.int16),
        "groups": np.array(groups, np.int32),
        "of_set": np.array(of_set, np.int8),
        "sets": np.array(names),
    }


def main() -> None:
    """Prepare, and print what came out."""
    parser = argparse.ArgumentParser(description="Prepare what the judge is trained on.")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--keep", type=Path, default=Path(".data/judge"), help="where ingested passages are kept")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--show", type=int, default=0, help="print so many examples of each set")
    chosen = parser.parse_args()
    found = list(examples(chosen.data, chosen.keep))
    shown: Counter[str] = Counter()
    for example in sets.seeded("show").sample(found, len(found)):
        if shown[example.set] < chosen.show:
            shown[example.set] += 1
            print(f"\n[{example.set}] {example.passage}")
            for claim in example.claims:
                print("   ", claim.label, claim.text, [claim.text[a:b] for a, b in claim.wrong or ()])
    result = arrays(found)
    np.savez_compressed(chosen.out, **result)
    counts = Counter(example.set for example in found)
    print(len(result["groups"]), "passages,", len(result["ids"]), "tokens;", dict(counts))
    print("labels", np.bincount(result["labels"][result["labels"] >= 0]))


if __name__ == "__main__":
    main()
