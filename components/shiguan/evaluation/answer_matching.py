"""
How near an answer comes to a right one, from 0 to 1.

The conventions are those of SQuAD (Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text",
2016, section 6.1): case, punctuation and English articles do not count, and the best of several right answers does.
Chinese is compared by characters, as CMRC 2018 does (Cui et al., "A Span-Extraction Dataset for Chinese Machine Reading
Comprehension", 2019, section 4); traditional characters count as simplified ones. Citation marks are no words.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from haystack.components.evaluators import AnswerExactMatchEvaluator

from shiguan.support.claims import split_claims
from shiguan.support.han_folding import fold_han

_ARTICLES = frozenset(("a", "an", "the"))
_TOKEN = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\u3040-\u30ff]|[^\W_\u2e80-\u9fff\uf900-\ufaff\u3040-\u30ff]+")
_EXACT = AnswerExactMatchEvaluator()


def answer_tokens(text: str) -> list[str]:
    """Cut a text into what is compared: Han characters, and words of other scripts without articles."""
    folded = fold_han(unicodedata.normalize("NFKC", text)).lower().replace("'", "").replace("’", "")
    return [token for token in _TOKEN.findall(folded) if token not in _ARTICLES]


def spoken_answer(answer: str) -> str:
    """Take the citation marks off an answer."""
    return split_claims(answer).text


def exact_match(answer: str, right: Sequence[str]) -> float:
    """Tell whether an answer is one of the right ones, word for word."""
    said = " ".join(answer_tokens(answer))
    wanted = [" ".join(answer_tokens(one)) for one in right]
    found = _EXACT.run(ground_truth_answers=wanted, predicted_answers=[said] * len(wanted))
    return float(max(found["individual_scores"]))


def token_f1(answer: str, right: Sequence[str]) -> float:
    """Give the harmonic mean of precision and recall of an answer's tokens, for the nearest right answer."""
    said = Counter(answer_tokens(answer))
    return max(_f1(said, Counter(answer_tokens(one))) for one in right)


def contains_answer(answer: str, right: Sequence[str]) -> float:
    """Tell whether an answer holds a right one as a run of tokens: the measure for answers in whole sentences."""
    said = f" {' '.join(answer_tokens(answer))} "
    wanted = (" ".join(answer_tokens(one)) for one in right)
    return float(any(one and f" {one} " in said for one in wanted))


def _f1(said: Counter[str], wanted: Counter[str]) -> float:
    if not said or not wanted:
        return float(said == wanted)
    shared = sum((said & wanted).values())
    if not shared:
        return 0.0
    precision, recall = shared / sum(said.values()), shared / sum(wanted.values())
    return 2 * precision * recall / (precision + recall)
