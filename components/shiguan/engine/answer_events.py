"""What a listener is told while an answer is being made."""

from dataclasses import dataclass, field
from typing import Any, Final

QUERY_REWRITTEN: Final = "query_rewritten"
DOCUMENTS_RETRIEVED: Final = "documents_retrieved"
GENERATION_START: Final = "generation_start"
TOKEN: Final = "token"  # noqa: S105
CLAIM: Final = "claim"
DRAFT_REJECTED: Final = "draft_rejected"
GENERATION_COMPLETE: Final = "generation_complete"
ERROR: Final = "error"

EVENTS: Final = {
    QUERY_REWRITTEN: "`query` (what is searched for, standing alone), `queries` (all of them) and `method`.",
    DOCUMENTS_RETRIEVED: "`documents`: the numbered passages that the model reads, as in the answer object; `attempt`.",
    GENERATION_START: "`attempt`: the model begins to write; from 1.",
    TOKEN: "`text`: the next piece of the answer.",
    CLAIM: "A finished sentence as in `metadata.claims`, with its `index` there and its `citations`, each with the "
    "exact span of the passage.",
    DRAFT_REJECTED: "`attempt`, `verdicts` (how many of each), `feedback` (why) and `queries` (what is searched for "
    "next; empty after the last attempt). Nothing of a rejected draft was a `token`.",
    GENERATION_COMPLETE: "The answer object. Terminal.",
    ERROR: "What went wrong. Terminal.",
}
"""Every event by name, with what its data has."""

TERMINAL: Final = frozenset({GENERATION_COMPLETE, ERROR})
"""The events that end a stream; exactly one of them comes, and it comes last."""


@dataclass(frozen=True)
class AnswerEvent:
    """One event."""

    name: str
    data: dict[str, Any]
    id: int
    error: Exception | None = field(default=None, compare=False)

    @property
    def is_terminal(self) -> bool:
        """Whether nothing comes after it."""
        return self.name in TERMINAL
