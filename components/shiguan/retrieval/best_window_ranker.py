"""Ranks passages by the best few sentences in them, with one copy of the model per process."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from haystack import Document, component, logging

from shiguan.models.hub import local_folder
from shiguan.reading.passage import Passage
from shiguan.text.sentences import sentence_spans

if TYPE_CHECKING:
    from haystack.components.rankers.transformers_similarity import TransformersSimilarityRanker

logger = logging.getLogger(__name__)

RANKED_BY = "cross_encoder"
"""The `meta.ranked_by` of passages that this ranker has ordered."""

_RANKER = "haystack.components.rankers.transformers_similarity.TransformersSimilarityRanker"
_PACKAGES = ("torch", "transformers", "accelerate")
_WINDOW_TOKENS = 512
# The most characters of Latin text in a window, and how many windows of a passage are scored. A wide character is about
# a token, a Latin token about four characters; dividing by three is on the safe side.
_WINDOW_CHARACTERS, _WINDOWS = 900, 4

# One entry per model: Haystack's rankers load their weights once per pipeline, and a process has one per mode.
_loaded: dict[str, "TransformersSimilarityRanker"] = {}
_loading = threading.Lock()


@component
class BestWindowRanker:
    """
    Puts the passages that answer the question before those that only share its words.

    It comes between the parent fetcher and the context. It passes Haystack's `TransformersSimilarityRanker` windows of
    a few sentences instead of whole passages and gives each passage the score of its best window, so that a long
    passage with one decisive sentence is not ranked below a short one (MaxP: Dai and Callan, "Deeper Text Understanding
    for IR with Contextual Neural Language Modeling", SIGIR 2019). Windows are sorted by length, so that batches need
    little padding.

    The model is loaded once for all modes of a process. Without the extra `shiguan[transformers]` or the model's
    weights the order stays unchanged, which is normal for a small installation: there is no warning, and torch is not
    imported. If the model is there and fails, the order stays unchanged too, with a warning.

    Example in YAML:
    ```yaml
    ranker:
      type: shiguan.retrieval.best_window_ranker.BestWindowRanker
      init_parameters:
        ranker:
          type: haystack.components.rankers.transformers_similarity.TransformersSimilarityRanker
          init_parameters: {model: cross-encoder/mmarco-mMiniLMv2-L12-H384-v1}
    ```
    """

    def __init__(self, ranker: dict[str, Any], *, top_k: int = 5) -> None:
        """
        Describe the ranker that scores windows.

        :param ranker: The `type` and the `init_parameters` of Haystack's `TransformersSimilarityRanker`. It is built
            where its packages and its weights are on this machine; nothing is downloaded.
        :param top_k: How many passages to return.
        :raises ValueError: If `top_k` is not positive, or the ranker is another one or names no model.
        """
        if top_k < 1:
            raise ValueError(f"`top_k` must be positive, got {top_k}.")
        parameters = ranker.get("init_parameters") or {}
        if ranker.get("type") != _RANKER or not isinstance(parameters.get("model"), str):
            raise ValueError(f"`ranker` must be a `{_RANKER}` with the name of a `model`, got {ranker!r}.")
        self.ranker = ranker
        self.top_k = top_k
        self._model: str = parameters["model"]
        self._ranker: TransformersSimilarityRanker | None = None
        self._tried = False
        self._failure = ""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Create the component without building its ranker, so that torch is not imported."""
        return cls(**(data.get("init_parameters") or {}))

    def warm_up(self) -> None:
        """Load the model, or use the copy that this process has; a failure is kept for `run` to report."""
        with _loading:
            if self._tried or self._ranker is not None:
                return
            self._tried = True
            if self._model not in _loaded and _is_here(self._model):
                try:
                    _loaded[self._model] = _load(self.ranker.get("init_parameters") or {})
                except Exception as error:  # an unreachable hub or broken weights must not cost the answer
                    self._failure = _in_words(error)
                    logger.warning("The ranker could not be loaded: {error}", error=self._failure)
            self._ranker = _loaded.get(self._model)

    @component.output_types(documents=list[Document], warnings=list[str])
    def run(self, query: str, documents: list[Document], top_k: int | None = None) -> dict[str, Any]:
        """
        Rank passages by their best window.

        :param query: The question.
        :param documents: Parents in fused order, with `meta.matches` where children matched.
        :param top_k: How many to return, for this call.
        :returns: `documents`, the best first, with the model's scores (0 to 1), or unchanged if it did not run;
            `meta.ranked_by` shows which; `warnings`, why the order was left unchanged although the model is there.
        """
        limit = self.top_k if top_k is None else top_k
        if not documents:
            return _as_found(documents, limit)
        self.warm_up()
        name = f"the cross-encoder `{self._model}`"
        if self._ranker is None:
            return _as_found(documents, limit, self._failure and f"{name} is left out, {self._failure}")
        try:
            scores = self._score(self._ranker, query, documents)
        except Exception as error:  # a model that breaks down on one question must not cost the answer
            logger.warning("The ranker failed: {error}", error=repr(error))
            return _as_found(documents, limit, f"{name} failed ({type(error).__name__})")
        order = sorted(range(len(documents)), key=lambda index: (-scores[index], index))[: max(0, limit)]
        ordered = [(documents[index], scores[index]) for index in order]
        ranked = [replace(each, score=score, meta={**each.meta, "ranked_by": RANKED_BY}) for each, score in ordered]
        return {"documents": ranked, "warnings": []}

    def _score(self, ranker: "TransformersSimilarityRanker", query: str, documents: list[Document]) -> list[float]:
        windows = [(text, index) for index, document in enumerate(documents) for text in _windows(document)]
        windows.sort(key=lambda window: len(window[0]))
        best = [0.0] * len(documents)
        size = ranker.batch_size
        for start in range(0, len(windows), size):
            cut = enumerate(windows[start : start + size], start=start)
            batch = [Document(id=str(place), content=text) for place, (text, _) in cut]
            for scored in ranker.run(query=query, documents=batch, top_k=len(batch))["documents"]:
                passage = windows[int(scored.id)][1]
                best[passage] = max(best[passage], float(scored.score or 0.0))
        return best


def _is_here(model: str) -> bool:
    """Return whether the packages and the model are installed; looking imports neither torch nor transformers."""
    return all(map(find_spec, _PACKAGES)) and (Path(model).is_dir() or local_folder(model) is not None)


def _load(parameters: dict[str, Any]) -> "TransformersSimilarityRanker":
    # Importing it imports torch, which takes seconds that an installation without weights should not pay.
    from haystack.components.rankers.transformers_similarity import TransformersSimilarityRanker  # noqa: PLC0415

    here = {"local_files_only": True}
    given = {"model_kwargs": here, "tokenizer_kwargs": {**here, "model_max_length": _WINDOW_TOKENS}}
    ranker = TransformersSimilarityRanker(**{**given, **parameters})
    ranker.warm_up()
    return ranker


def _in_words(error: Exception) -> str:
    # The message of transformers about a missing model fills a screen and names a host.
    if isinstance(error, OSError):
        return "its files are not on this machine"
    first_line = (str(error).splitlines() or [""])[0]
    return f"it could not be loaded ({type(error).__name__}: {first_line})"


def _windows(document: Document) -> list[str]:
    """Cut a passage at sentences into windows of similar size; those with a matched child come first."""
    text = document.content or ""
    wide = sum(ord(character) > 0x2E80 for character in text)
    size = _WINDOW_CHARACTERS // 3 if wide > len(text) / 2 else _WINDOW_CHARACTERS
    pieces: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        if pieces and end - pieces[-1][0] <= size:
            pieces[-1] = (pieces[-1][0], end)
        else:
            pieces.append((start, end))
    matches = Passage(document).spans
    matched = [piece for piece in pieces if any(start < piece[1] and piece[0] < end for start, end in matches)]
    chosen = [*matched, *(piece for piece in pieces if piece not in matched)][:_WINDOWS]
    return [text[start:end] for start, end in chosen] or [text]


def _as_found(documents: Sequence[Document], top_k: int, failure: str = "") -> dict[str, Any]:
    """Keep the order of the passages."""
    kept = [replace(each, meta={**each.meta, "ranked_by": "fusion"}) for each in documents[: max(0, top_k)]]
    return {
        "documents": kept,
        "warnings": [f"Passages are in the order of the fusion: {failure}."] if failure else [],
    }
