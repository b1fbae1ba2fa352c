"""The words of the two deployments are the same: the shipped analysis, run by Lucene itself."""

import gzip
import json
import math
from collections import Counter

import pytest
from tests.doubles.lucene import lucene

from shiguan.stores.cluster.schema import word_settings
from shiguan.text.terms import terms

pytestmark = [pytest.mark.lucene, pytest.mark.filterwarnings("ignore")]

SAMPLES = [
    "end.Next", "example.com", "foo_bar", "a:b", "Chang'an", "Ch'ang-an", "don't", "isn’t it", "Tang’s", "rock'n'roll",
    "they'll've", "O'Neill's", "'tis", "U.S.A.", "C++ x86_64", "e-mail 2,024", "co\u00adoperate", "a\u200bb",
    "cafe\u0301", "café", "größe", "Straße's", "Ørsted", "İstanbul", "ﬁne", "Ⅷ", "½", "L’État", "naïve running",
    "Ｔａｎｇ", "１２３", "٣٤٥", "1,234,567", "3.14", "1.2.3", "12345,678", "カタカナ", "ｶﾞｲﾄﾞ", "か\u3099き", "ひらがな",
    "漢書", "安祿山起兵", "𠮷野家", "中文abc中文", "the governors of 范陽", "한국어", "ภาษาไทย", "हिन्दी", "Москвы", "بِسْمِ",
]  # fmt: skip
KNOWN = ["\u1112\u1161\u11ab"]
"""What the server has no filter for: Korean syllables that are written in their parts."""


@pytest.fixture(scope="module")
def in_lucene():
    analyzer = lucene(word_settings(())["analysis"])

    def words(text):
        fields = ("shiguan_bigrams", "shiguan_characters", "shiguan_words")
        return sorted(term for field in fields for term in analyzer.terms(field, text))

    return words


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_has_the_same_words(in_lucene, sample):
    assert in_lucene(sample) == sorted(terms(sample))


@pytest.mark.parametrize("sample", KNOWN)
def test_what_differs_is_known(in_lucene, sample):
    assert in_lucene(sample) != sorted(terms(sample))


@pytest.mark.parametrize(
    "text", ["a" * 100_000, "a'" * 50_000, "1." * 50_000, "1,111" * 20_000, "कि" * 50_000, "漢" * 50_000]
)
def test_no_text_runs_the_server_out_of_stack(in_lucene, text):
    assert isinstance(in_lucene(text), list)


SETS = ["zh_cmrc2018", "zh_drcd", "en_squad2", "en_multihop", "tang_modern2classical"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_passages_of_public_data_are_found_by_the_same_words(in_lucene, public_data, name):
    """At most one word in a hundred differs (two versions of a stemmer), and R@5 by .01 at most."""
    corpus = {row["id"]: row["text"] for row in rows(public_data, name, "corpus")[:1_500]}
    relevant = {}
    for row in rows(public_data, name, "qrels"):
        if row["doc_id"] in corpus:
            relevant.setdefault(row["query_id"], set()).add(row["doc_id"])
    queries = [(row["id"], row["text"]) for row in rows(public_data, name, "queries") if row["id"] in relevant][:300]
    ours = {key: sorted(terms(text)) for key, text in corpus.items()}
    theirs = {key: in_lucene(text) for key, text in corpus.items()}
    differing = sum(len(set(ours[key]) ^ set(theirs[key])) for key in corpus)
    assert differing / sum(map(len, ours.values())) < 0.01
    found = [
        recall_at_5(Bm25(words), [(cut(text), relevant[key]) for key, text in queries])
        for words, cut in ((ours, terms), (theirs, in_lucene))
    ]
    assert len(queries) >= 50
    assert abs(found[0] - found[1]) <= 0.01, found


def rows(folder, name, part):
    with gzip.open(folder / name / f"{part}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Bm25:
    """Words in one field, weighed as both deployments do (k1 1.2, b .75)."""

    def __init__(self, words):
        self.postings = {}
        self.lengths = {key: len(found) for key, found in words.items()}
        for key, found in words.items():
            for word, count in Counter(found).items():
                self.postings.setdefault(word, []).append((key, count))

    def best(self, words):
        scores, mean = Counter(), sum(self.lengths.values()) / len(self.lengths)
        for word in set(words):
            found = self.postings.get(word, [])
            idf = math.log(1 + (len(self.lengths) - len(found) + 0.5) / (len(found) + 0.5))
            for key, count in found:
                scores[key] += idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * self.lengths[key] / mean))
        return sorted(scores, key=lambda key: (-scores[key], key))[:5]


def recall_at_5(index, queries):
    return sum(len(relevant.intersection(index.best(words))) / len(relevant) for words, relevant in queries) / len(
        queries
    )
