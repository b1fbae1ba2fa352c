"""How long a text is, in the tokens of the embedder or of a model that tiktoken knows."""

import importlib
import mmap
import re
from collections.abc import Sequence
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from haystack import logging
from numpy.typing import NDArray

from shiguan.errors import ModelMissingError
from shiguan.models.weights import Weights, made_file, weights_file

_SPACE = "\u2581"
_SPACES = re.compile(" {2,}")
# What no text may hand to the model: half a surrogate pair is not a character, and NUL is its writer's end of text.
_NO_CHARACTER = re.compile("[\x00\ud800-\udfff]")
_UNKNOWN_PENALTY = 10.0
_BITS = 21
"""A code point fits into so many bits."""
_AT_ONCE = 100_000
"""Characters that are matched in one go; bounds the memory."""


class Tokenizer:
    """
    Gives the same tokens as `tokenizers.models.Unigram` over the same pieces, at a tenth of its 1.4 s and 400 MB.

    The pieces are a trie in two arrays: `_edges` has `parent << 21 | character` of every node, sorted.
    """

    def __init__(self, weights: Weights, trie: bytes | mmap.mmap) -> None:
        self._folds = weights.folds
        self._unknown = weights.unknown_id
        self._scores = weights.piece_scores
        self._unknown_score = float(self._scores.min()) - _UNKNOWN_PENALTY
        edges = (len(trie) - 4) // 12
        self._edges = np.frombuffer(trie, "<i8", edges)
        self._pieces = np.frombuffer(trie, "<i4", edges + 1, 8 * edges)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's tokens, without marks of start and end; unknown characters side by side are one token."""
        return [self._joined(ids) for ids, _ in self._cut([self._normalized(text) for text in texts])]

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Count each text's tokens as they are inside a longer text; here every unknown character is one."""
        cut = self._cut([self._normalized(text) for text in texts])
        return [len(ids) - (ends[:1] == [1]) for ids, ends in cut]

    def pieces(self, text: str) -> list[tuple[int, int, int]]:
        """Return the tokens that `counts` counts, each with its place: the span in code points of the text."""
        characters: list[str] = []
        places: list[int] = []
        for place, character in enumerate(text):
            for folded in _NO_CHARACTER.sub(" ", character).translate(self._folds):
                if folded != " " or not characters or characters[-1] != " ":
                    characters.append(folded)
                    places.append(place)
        if not characters:
            return []
        normalized = "".join(characters).replace(" ", _SPACE)
        if normalized[0] != _SPACE:
            normalized = _SPACE + normalized
            places.insert(0, 0)
        ((ids, ends),) = self._cut([normalized])
        pieces = []
        start = 0
        for piece, end in zip(ids, ends, strict=True):
            # The space that every text begins with is no token of its own text.
            if end > 1:
                led = normalized[start] == _SPACE and end - start > 1
                pieces.append((piece, places[start + led], places[end - 1] + 1))
            start = end
        return pieces

    def _joined(self, ids: list[int]) -> list[int]:
        if self._unknown not in ids:
            return ids
        return [b for a, b in pairwise([-1, *ids]) if not a == b == self._unknown]

    def _normalized(self, text: str) -> str:
        text = _NO_CHARACTER.sub(" ", text) if _NO_CHARACTER.search(text) else text
        text = _SPACES.sub(" ", text if text.isascii() and text.isprintable() else text.translate(self._folds))
        text = text.replace(" ", _SPACE)
        return text if text.startswith(_SPACE) else _SPACE + text

    def _cut(self, texts: list[str]) -> list[tuple[list[int], list[int]]]:
        """Return each text's tokens and where each of them ends."""
        results: list[tuple[list[int], list[int]]] = []
        waiting: list[str] = []
        length = 0
        for text in texts:
            if waiting and length + len(text) > _AT_ONCE:
                results.extend(self._best_paths(waiting))
                waiting, length = [], 0
            waiting.append(text)
            length += len(text)
        return results + self._best_paths(waiting) if waiting else results

    def _best_paths(self, texts: list[str]) -> list[tuple[list[int], list[int]]]:
        characters = np.frombuffer("".join(texts).encode("utf-32-le"), "<u4").astype(np.int64)
        starts, ends, ids = self._matches(characters)
        scores = np.where(ids == self._unknown, self._unknown_score, self._scores[ids]).tolist()
        end_list, id_list = ends.tolist(), ids.tolist()
        best = [-np.inf] * (len(characters) + 1)
        best[0] = 0.0
        came = [0] * (len(characters) + 1)
        for match, (start, end, score) in enumerate(zip(starts.tolist(), end_list, scores, strict=True)):
            total = best[start] + score
            if total > best[end]:
                best[end] = total
                came[end] = match
        start_list = starts.tolist()
        path: list[int] = []
        at = len(characters)
        while at:
            path.append(came[at])
            at = start_list[came[at]]
        path.reverse()
        found: list[tuple[list[int], list[int]]] = []
        begin, step = 0, 0
        for text in texts:
            end = begin + len(text)
            text_ids: list[int] = []
            text_ends: list[int] = []
            while step < len(path) and end_list[path[step]] <= end:
                match = path[step]
                step += 1
                text_ids.append(id_list[match])
                text_ends.append(end_list[match] - begin)
            found.append((text_ids, text_ends))
            begin = end
        return found

    def _matches(self, characters: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Find every piece at every place, in order of place and length; the unknown piece where no other is."""
        places = np.arange(len(characters))
        nodes = np.zeros(len(characters), np.int64)
        found = []
        depth = 0
        while len(places):
            wanted = nodes << _BITS | characters[places + depth]
            index = np.minimum(np.searchsorted(self._edges, wanted), len(self._edges) - 1)
            known = self._edges[index] == wanted
            places, nodes = places[known], index[known] + 1
            depth += 1
            ids = self._pieces[nodes]
            if depth == 1:
                single = np.full(len(characters), self._unknown, np.int64)
                single[places] = np.where(ids < 0, self._unknown, ids)
                found.append((np.arange(len(characters)), np.ones(len(characters), np.int64), single))
            else:
                whole = ids >= 0
                found.append((places[whole], np.full(int(whole.sum()), depth), ids[whole]))
            inside = places + depth < len(characters)
            places, nodes = places[inside], nodes[inside]
        starts, lengths, ids = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.argsort(starts, kind="stable")
        return starts[order], (starts + lengths)[order], ids[order]


def piece_trie(weights: Weights) -> bytes:
    """Build the sorted edges as int64, and behind them as int32 for each node the piece that ends there or -1."""
    letters = weights.piece_letters
    characters = np.frombuffer(letters.tobytes().decode().encode("utf-32-le"), "<u4").astype(np.int64)
    before = np.concatenate([[0], np.cumsum((letters & 0xC0) != 0x80)])
    bounds = before[weights.piece_offsets]
    starts, lengths = bounds[:-1], np.diff(bounds)
    # The marks of start, end and padding are not text: `</s>` in a text is read as its letters.
    alive = np.flatnonzero((lengths > 0) & (weights.piece_scores < 0))
    nodes = np.zeros(len(alive), np.int64)
    levels = []
    pieces_at = []
    depth, count = 0, 1
    while len(alive):
        level, inverse = np.unique(nodes << _BITS | characters[starts[alive] + depth], return_inverse=True)
        levels.append(level)
        nodes = inverse + count
        count += len(level)
        depth += 1
        last = lengths[alive] == depth
        pieces_at.append((nodes[last], alive[last]))
        alive, nodes = alive[~last], nodes[~last]
    pieces = np.full(count, -1, "<i4")
    for places, ids in pieces_at:
        pieces[places] = ids
    return np.concatenate(levels).astype("<i8").tobytes() + pieces.tobytes()


@cache
def tokenizer() -> Tokenizer:
    """Return the process's tokenizer; `ModelMissingError` where the weights are not installed."""
    path = weights_file()
    # First, since it checks the weights; whatever reads them afterwards reads what is expected.
    made = made_file("pieces.bin", path, lambda: piece_trie(Weights(path)))
    if isinstance(made, bytes):
        return Tokenizer(Weights(path), made)
    with made.open("rb") as file:
        return Tokenizer(Weights(path), mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


logger = logging.getLogger(__name__)

_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
# What stands in for a token where there is no tokenizer: a wide character, or so many of other scripts.
_STAND_IN = re.compile(_WIDE.pattern + r"|[^\s\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]{1,4}")
# Tokens of o200k_base for one of the embedder's, and more for each wide character and each traditional one: the
# mean error is below 1 %, of a single text 2 to 5 % (`python -m bench.quality.token_counts`).
_OF_MODEL, _WIDE_MORE, _TRADITIONAL_MORE = 0.863, 0.238, 0.379
_REMEMBERED = 4096
"""Texts whose number of tokens is kept."""


class TokenCounter:
    """
    Counts tokens as the embedder does, without its prefixes and its marks of start and end.

    With a `model` it counts those of this model where tiktoken has it, else it estimates them, and a warning says so;
    so it does by characters where the weights are not installed.
    """

    def __init__(self, model: str | None = None) -> None:
        self._model = model
        self.warnings: list[str] = []
        # The same passages are read for many questions, and counting ten of them takes longer than finding them.
        self._remembered = lru_cache(_REMEMBERED)(lambda text: self.counts([text])[0])

    @cached_property
    def _tokenizer(self) -> Tokenizer | None:
        try:
            return tokenizer()
        except ModelMissingError as error:
            self.warnings.append(f"Lengths are estimated from characters instead of counted in tokens. {error}")
            logger.warning("Estimating lengths from characters: {error}", error=str(error))
            return None

    @cached_property
    def _encoding(self) -> Any:
        if self._model is None:
            return None
        try:
            return importlib.import_module("tiktoken").encoding_for_model(self._model)
        except Exception as error:  # tiktoken fetches its files, and what fails then is of many kinds
            self.warnings.append(
                f"Tokens of `{self._model}` are estimated from the embedder's ({type(error).__name__}). Install "
                "`shiguan[tiktoken]`, name a model that it knows, or give it its files in TIKTOKEN_CACHE_DIR."
            )
            return None

    def warm_up(self) -> None:
        """Load the tokenizer now rather than with the first text."""
        if self._encoding is None:
            _ = self._tokenizer

    def count(self, text: str) -> int:
        """Count one text's tokens."""
        return self._remembered(text)

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Count many texts in one batch, which is far cheaper than one by one."""
        if self._encoding is not None:
            return [len(self._encoding.encode_ordinary(text)) for text in texts]
        if self._tokenizer is None:
            return [len(_STAND_IN.findall(text)) for text in texts]
        counted = self._tokenizer.counts(texts)
        if self._model is None:
            return counted
        return [estimated_tokens(text, count) for text, count in zip(texts, counted, strict=True)]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Find where one text's tokens stand."""
        if self._tokenizer is None:
            return [match.span() for match in _STAND_IN.finditer(text)]
        return [(start, end) for _, start, end in self._tokenizer.pieces(text)]


def estimated_tokens(text: str, embedders: int) -> int:
    """Estimate how many tokens of o200k_base a text has from how many of the embedder it has."""
    wide = "".join(_WIDE.findall(text))
    # GB 2312 has the simplified characters only.
    traditional = len(wide) - len(wide.encode("gb2312", "ignore").decode("gb2312"))
    return round(_OF_MODEL * embedders + _WIDE_MORE * len(wide) + _TRADITIONAL_MORE * traditional)
