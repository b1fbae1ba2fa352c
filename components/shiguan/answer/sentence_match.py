"""How well sentences match a question by BM25, counted among the sentences at hand."""

import math
from collections import Counter
from collections.abc import Sequence

# Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, section 3.2, usual values.
_K1, _B = 1.2, 0.75


def sentence_matches(asked: Sequence[str], sentences: Sequence[Sequence[str]]) -> list[float]:
    """Score every sentence by the question's words."""
    if not sentences:
        return []
    counts = [Counter(sentence) for sentence in sentences]
    lengths = [len(sentence) for sentence in sentences]
    usual = sum(lengths) / len(lengths) or 1.0
    total = len(sentences)
    weights = {}
    for word in dict.fromkeys(asked):
        holding = sum(word in count for count in counts)
        weights[word] = math.log(1 + (total - holding + 0.5) / (holding + 0.5))
    scores = [
        sum(
            weight * count[word] * (_K1 + 1) / (count[word] + _K1 * (1 - _B + _B * length / usual))
            for word, weight in weights.items()
            if word in count
        )
        for count, length in zip(counts, lengths, strict=True)
    ]
    best = max(scores)
    return [score / best for score in scores] if best > 0 else [0.0] * total
