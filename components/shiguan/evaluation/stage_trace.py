"""What every stage of one question had in its hands: the lists that passages travel through, by rank."""

from dataclasses import dataclass, field

from haystack import Document, GeneratedAnswer


@dataclass(frozen=True)
class StageTrace:
    """
    The lists of one run, each best first; None for a stage that the mode does not have.

    :param bm25: Children found by words, over all queries.
    :param vectors: Children found by vectors; None too where the embedder was not asked, for it does not know the
        question's language.
    :param fused: Children after the fusion.
    :param fetched: Parents that were fetched for them.
    :param ranked: Parents in the mode's final order, as many as it reads.
    :param read: Passages in the context, as they were read.
    :param answer: The answer; None for a run without one.
    :param asked: The queries that were searched.
    """

    bm25: list[Document] | None
    vectors: list[Document] | None
    fused: list[Document]
    fetched: list[Document]
    ranked: list[Document]
    read: list[Document] | None = None
    answer: GeneratedAnswer | None = None
    asked: list[str] = field(default_factory=list)
