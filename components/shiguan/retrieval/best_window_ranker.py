"""Ranks passages by the best few sentences in them, with one copy of the model per process."""

import json
import threading
import time
from dataclasses import dataclass
from typing import Any

from haystack import Document, component, logging
from haystack.components.rankers.transformers_similarity import TransformersSimilarityRanker

from shiguan.support.languages import detect_language
from shiguan.support.ranking import as_found, ranking_of, stamped
from shiguan.support.sentences import sentence_spans

logger = logging.getLogger(__name__)

RANKED_BY = "cross_encoder"
"""What passages say in `meta.ranked_by` that this ranker has put in their place."""

# One entry per model and its settings: rankers load their weights once per pipeline, and a process has one per mode.
_loaded: dict[str, TransformersSimilarityRanker] = {}
_loading = threading.Lock()


@dataclass(frozen=True)
class _Window:
    """A stretch of a passage that is scored by itself."""

    passage: int
    text: str


@component
class BestWindowRanker:
    """
    Puts the passages that answer the question before those that only share its words.

    Stands between the parent fetcher and the context. It hands Haystack's `TransformersSimilarityRanker` windows of a
    few sentences instead of whole passages and gives each passage the score of its best window, so that a long passage
    with one decisive sentence is not ranked below a short one (MaxP: Dai and Callan, "Deeper Text Understanding for IR
    with Contextual Neural Language Modeling", SIGIR 2019). Windows go to the model sorted by length, so that a batch is
    padded little.

    The order stays as it came for questions in a language that the model does not know and where the model cannot be
    loaded (tried again after `retry_seconds`); `skipped` says why, so that a `FallbackRanker` can ask another one.
    """

    def __init__(
        self,
        ranker: TransformersSimilarityRanker,
        *,
        languages: list[str] | None = None,
        top_k: int = 5,
        window_characters: int = 900,
        windows_per_passage: int = 4,
        retry_seconds: float = 300.0,
    ) -> None:
        """
        Name the model and how passages are cut for it.

        :param ranker: Haystack's ranker with its model; cut its input with `tokenizer_kwargs: {model_max_length: 512}`.
        :param languages: ISO 639-1 codes that the model knows; None for all.
        :param top_k: How many passages to return.
        :param window_characters: How long a window is at most, in characters of Latin text; text in wide characters
            (Chinese, Japanese, Korean) gets a third of it, which is about as many tokens.
        :param windows_per_passage: How many windows of one passage are scored, those with matched children first.
        :param retry_seconds: After how many seconds a model that could not be loaded is tried again.
        :raises ValueError: If a number is not positive or `languages` is empty.
        """
        for name, value in (
            ("top_k", top_k),
            ("window_characters", window_characters),
            ("windows_per_passage", windows_per_passage),
        ):
            if value < 1:
                raise ValueError(f"`{name}` must be positive, got {value}.")
        if languages is not None and not languages:
            raise ValueError("`languages` must name at least one language, or be null for a model that knows all.")
        self.ranker = ranker
        self.languages = languages
        self.top_k = top_k
        self.window_characters = window_characters
        self.windows_per_passage = windows_per_passage
        self.retry_seconds = retry_seconds
        self._failed_at: float | None = None
        self._failure = ""

    def warm_up(self) -> None:
        """Load the model, or take the copy that this process has; a failure is kept for `run` to report."""
        if self.ranker.model is not None:
            return
        if self._failed_at is not None and time.monotonic() - self._failed_at < self.retry_seconds:
            return
        key = json.dumps(self.ranker.to_dict(), sort_keys=True, default=str)
        with _loading:
            if key not in _loaded:
                try:
                    self.ranker.warm_up()
                except Exception as error:  # a missing file, a hub out of reach, broken weights: all mean "no ranker"
                    self._failed_at = time.monotonic()
                    self._failure = _in_words(error)
                    # No warning: whoever is answered without it hears of it, and another ranker may stand behind.
                    logger.info("The ranker could not be loaded: {error}", error=self._failure)
                    return
                _loaded[key] = self.ranker
            self.ranker = _loaded[key]
        self._failed_at = None

    @component.output_types(documents=list[Document], ranking=list[dict[str, Any]], skipped=str, warnings=list[str])
    def run(self, query: str, documents: list[Document], top_k: int | None = None) -> dict[str, Any]:
        """
        Rank passages by their best window.

        :param query: The question.
        :param documents: Parents in fused order, with `meta.matches` where children matched.
        :param top_k: How many to return, for this call.
        :returns: `documents`, the best first, scores from the model (0 to 1) where it ran and as they came where not;
            `ranking`, for each its `id`, `rank_before` and `rank` (from 1), `score` and `ranked_by`; `skipped`, why the
            order was left as it came, empty where it was not; `warnings`, the same as a sentence.
        """
        limit = self.top_k if top_k is None else top_k
        if not documents:
            return as_found(documents, limit)
        skipped = self._reason_to_skip(query)
        if skipped:
            return as_found(documents, limit, skipped)
        scores = self._score(query, documents)
        order = sorted(range(len(documents)), key=lambda index: (-scores[index], index))[: max(0, limit)]
        ranked = [stamped(documents[index], scores[index], RANKED_BY) for index in order]
        return {"documents": ranked, "ranking": ranking_of(documents, ranked), "skipped": "", "warnings": []}

    def _reason_to_skip(self, query: str) -> str:
        name = f"the cross-encoder `{self.ranker.model_name_or_path}`"
        language = detect_language(query)
        if self.languages is not None and language not in self.languages:
            return f"{name} knows {', '.join(self.languages)}, the question is in {language}"
        self.warm_up()
        return f"{name} is left out, {self._failure}" if self.ranker.model is None else ""

    def _score(self, query: str, documents: list[Document]) -> list[float]:
        windows = [
            window
            for index, document in enumerate(documents)
            for window in _windows(index, document, self.window_characters, self.windows_per_passage)
        ]
        windows.sort(key=lambda window: len(window.text))
        best = [0.0] * len(documents)
        size = self.ranker.batch_size
        for start in range(0, len(windows), size):
            batch = [
                Document(id=str(start + offset), content=window.text)
                for offset, window in enumerate(windows[start : start + size])
            ]
            for scored in self.ranker.run(query=query, documents=batch, top_k=len(batch))["documents"]:
                passage = windows[int(scored.id)].passage
                best[passage] = max(best[passage], float(scored.score or 0.0))
        return best


def _in_words(error: Exception) -> str:
    # What transformers says of a model that is nowhere fills a screen and names a host.
    if isinstance(error, OSError):
        return "its files are not on this machine"
    first_line = (str(error).splitlines() or [""])[0]
    return f"it could not be loaded ({type(error).__name__}: {first_line})"


def _windows(index: int, document: Document, characters: int, most: int) -> list[_Window]:
    """Cut a passage at sentences into stretches of about one size; those that hold a matched child come first."""
    text = document.content or ""
    # A wide character is about a token, a Latin token about four characters; a third is the cautious side of that.
    wide = sum(ord(character) > 0x2E80 for character in text)
    size = characters // 3 if wide > len(text) / 2 else characters
    pieces: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        if pieces and end - pieces[-1][0] <= size:
            pieces[-1] = (pieces[-1][0], end)
        else:
            pieces.append((start, end))
    matches = document.meta.get("matches", [])
    matched = [
        piece for piece in pieces if any(match["start"] < piece[1] and piece[0] < match["end"] for match in matches)
    ]
    chosen = [*matched, *(piece for piece in pieces if piece not in matched)][:most]
    return [_Window(index, text[start:end]) for start, end in chosen] or [_Window(index, text)]
