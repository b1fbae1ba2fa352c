"""Asks the best ranker first, and the next one where it cannot rank."""

from typing import Any, Protocol, Self

from haystack import Document, component, default_from_dict, default_to_dict, logging
from haystack.core.serialization import component_to_dict
from haystack.utils.deserialization import deserialize_component_inplace

from shiguan.errors import ShiguanError
from shiguan.support.ranking import as_found

logger = logging.getLogger(__name__)


class _Ranker(Protocol):
    """One of our rankers: it tells in `skipped` why it left the order as it came. Some take `filters` too."""

    def run(self, query: str, documents: list[Document], *, top_k: int | None = None) -> dict[str, Any]:
        """Give `documents`, `ranking`, `skipped` and `warnings`."""


@component
class FallbackRanker:
    """
    Ranks passages with the first of several rankers that can rank them for this question.

    Stands between the parent fetcher and the context, as a ranker does, and is to rankers what Haystack's
    `FallbackChatGenerator` is to generators. A ranker may be unable to rank for good (its weights are not on this
    machine) or for one question (a language that it does not know); it says so in `skipped`, and the next one is asked.
    The answer is then ranked as well as this machine can, so there is no warning: `ranked_by` tells who did it. Only
    where none of them can do passages keep the order of the fusion, and one warning gives every ranker's reason.

    Example in YAML:
    ```yaml
    type: shiguan.retrieval.fallback_ranker.FallbackRanker
    init_parameters:
      rankers:
        - type: shiguan.retrieval.best_window_ranker.BestWindowRanker
          init_parameters: {ranker: {type: haystack.components.rankers.….TransformersSimilarityRanker}}
        - type: shiguan.retrieval.late_interaction_ranker.LateInteractionRanker
          init_parameters: {document_store: {type: shiguan.stores.….QdrantEdgeDocumentStore}, languages: [en]}
    ```
    """

    def __init__(self, rankers: list[_Ranker], *, top_k: int = 5) -> None:
        """
        Name the rankers.

        :param rankers: The best first. Their own `top_k` does not count here.
        :param top_k: How many passages to return.
        :raises ValueError: If there are no rankers or `top_k` is not positive.
        """
        if not rankers:
            raise ValueError("`rankers` must name at least one ranker, got none.")
        if top_k < 1:
            raise ValueError(f"`top_k` must be positive, got {top_k}.")
        self.rankers = rankers
        self.top_k = top_k

    def to_dict(self) -> dict[str, Any]:
        """
        Write the component's parameters; Haystack writes single components inside others, but no lists of them.

        :returns: What `from_dict` takes.
        """
        rankers = [component_to_dict(ranker, f"ranker_{number}") for number, ranker in enumerate(self.rankers)]
        return default_to_dict(self, rankers=rankers, top_k=self.top_k)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """
        Make the component from its parameters.

        :param data: What `to_dict` returned.
        :returns: The component.
        """
        parameters = dict(data.get("init_parameters", {}))
        holders = [{"ranker": ranker} for ranker in parameters.get("rankers") or []]
        for holder in holders:
            deserialize_component_inplace(holder, key="ranker")
        parameters["rankers"] = [holder["ranker"] for holder in holders]
        return default_from_dict(cls, {**data, "init_parameters": parameters})

    def warm_up(self) -> None:
        """Load the models of all rankers, since a question may need any of them; a second call does nothing."""
        for ranker in self.rankers:
            if hasattr(ranker, "warm_up"):
                ranker.warm_up()

    @component.output_types(documents=list[Document], ranking=list[dict[str, Any]], skipped=str, warnings=list[str])
    def run(
        self,
        query: str,
        documents: list[Document],
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
    ) -> dict[str, Any]:
        """
        Rank passages.

        :param query: The question.
        :param documents: Parents in fused order.
        :param filters: The filters that these were found under, from `TenantFilter`, for rankers that read a store.
        :param top_k: How many to return, for this call.
        :returns: What the first ranker that could rank returns: `documents`, `ranking`, `skipped` and `warnings`; the
            last with a sentence for each ranker before it that failed. Where none could, the passages as they came,
            why in `skipped`, and that as one warning.
        :raises ShiguanError: If a ranker finds something wrong that a person must mend, such as vectors of another
            model; another error of a ranker only makes the next one rank.
        """
        limit = self.top_k if top_k is None else top_k
        reasons: list[str] = []
        failures: list[str] = []
        for ranker in self.rankers if documents else ():
            try:
                result = ranker.run(query=query, documents=documents, top_k=limit, **_filters_for(ranker, filters))
            except ShiguanError:
                raise
            except Exception as error:  # a model that breaks down on one question must not cost the answer
                name = type(ranker).__name__
                logger.warning("{ranker} failed: {error}", ranker=name, error=repr(error))
                reasons.append(f"{name} failed ({type(error).__name__})")
                failures.append(f"{name} failed ({type(error).__name__}); the passages were ranked by another ranker.")
                continue
            if not result["skipped"]:
                return {**result, "warnings": [*failures, *result["warnings"]]}
            reasons.append(result["skipped"])
        return as_found(documents, limit, "; ".join(dict.fromkeys(reasons)))


def _filters_for(ranker: Any, filters: dict[str, Any] | None) -> dict[str, Any]:
    return {"filters": filters} if "filters" in ranker.__haystack_input__._sockets_dict else {}
