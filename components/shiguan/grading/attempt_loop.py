"""Opens each round of the self-correcting loop, and passes its stages everything that they take from outside."""

from typing import Any

from haystack import Document, component
from haystack.core.component.types import GreedyVariadic
from haystack.dataclasses import ChatMessage

from shiguan.errors import ConfigurationError
from shiguan.grading.attempts import Attempt
from shiguan.tenants import require_filters


@component
class AttemptLoop:
    """
    Opens each round of a self-correcting loop.

    In Haystack a component outside a loop sends to a component inside it only once. In later rounds the receiver would
    not run, or run with a default: a retriever without its tenant's `filters` would search everybody's documents. So
    all that stages inside the loop take from outside comes in here, is kept in the `Attempt`, and goes out each round.

        QueryRewriter → AttemptLoop → … → RelevanceGrader → … → HallucinationGrader → replies
                             └──────────── retry ──┴────────── retry ───┘
    """

    tenant_role = "loops"

    @component.output_types(
        attempt=Attempt,
        query=str,
        word_queries=list[str],
        vector_queries=list[str],
        use_hyde=bool,
        filters=dict[str, Any],
        retriever_kwargs=dict[str, Any],
        shown=list[Document],
    )
    def run(
        self,
        start: GreedyVariadic[Any],
        filters: dict[str, Any] | None = None,
        analysis: dict[str, Any] | None = None,
        messages: list[ChatMessage] | None = None,
        *,
        shown: list[Document] | None = None,
        retrieval: str = "hybrid",
    ) -> dict[str, Any]:
        """
        Open a round.

        :param start: In the first round the queries of `QueryRewriter`, the standalone question first; in later ones
            the `Attempt` that a grader's `retry` sent.
        :param filters: What may be found, from `TenantFilter`, for all rounds.
        :param analysis: The analysis of the question, from `QueryRewriter`; `use_hyde` is read from it.
        :param messages: The earlier turns that the prompts begin with, from `ConversationReader`.
        :param shown: The passages that already have a number.
        :param retrieval: `words` or `vectors` to search in only one way.
        :returns: `attempt`, for the graders and the prompt; `query`, what this round searches for; `word_queries` and
            `vector_queries`, that and its wordings, for the retrievers, absent for one that is not to search;
            `use_hyde`; `filters`, also as `retriever_kwargs`; and `shown`.
        :raises RefusedError: If the first round comes without filters.
        """
        first = next(iter(start), None)
        if isinstance(first, Attempt):
            attempt = first
        elif isinstance(first, list) and first:
            attempt = Attempt(
                question=first[0],
                queries=tuple(first),
                filters=require_filters(filters, type(self).__name__),
                analysis=dict(analysis or {}),
                retrieval=retrieval,
                messages=tuple(messages or ()),
                shown=tuple(shown or ()),
            )
        else:
            raise ConfigurationError(
                f"`AttemptLoop.start` got {type(first).__name__}. Expected the queries of `QueryRewriter`, or what the "
                "`retry` of a grader sends. Connect these."
            )
        ways = {"word_queries": ("hybrid", "words"), "vector_queries": ("hybrid", "vectors")}
        again = attempt.number > 1 or attempt.searched_again
        return {
            "attempt": attempt,
            "query": attempt.query,
            **{name: list(attempt.queries) for name, kinds in ways.items() if attempt.retrieval in kinds},
            # A search for what an answer lacked needs no hypothetical passage.
            "use_hyde": bool(attempt.analysis.get("use_hyde")) and not again,
            "filters": attempt.filters,
            "retriever_kwargs": {"filters": attempt.filters},
            "shown": list(attempt.shown),
        }
