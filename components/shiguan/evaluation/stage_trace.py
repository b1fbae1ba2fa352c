"""What every stage of one question had in its hands: the lists that passages travel through, by rank."""

from dataclasses import dataclass, field

from haystack import Document, GeneratedAnswer


@dataclass(frozen=True)
class StageTrace:
    """The lists of one run, each best first; None for a stage that the mode does not have."""

    bm25: list[Document] | None
    vectors: list[Document] | None
    fused: list[Document]
    fetched: list[Document]
    ranked: list[Document]
    read: list[Document] | None = None
    answer: GeneratedAnswer | None = None
    asked: list[str] = field(default_factory=list)
