"""Opens the self-correcting loop: packs everything that its stages need in every round."""

from typing import Any

from haystack import Document, component
from haystack.dataclasses import ChatMessage

from shiguan.grading.attempts import carried_types, first_state


@component
class AttemptStarter:
    """
    Packs the question and whatever else the loop needs into the one value that travels around it.

    In Haystack a component outside a loop delivers to a component inside it only once. From the second round on the
    receiver would not run, and the pipeline would end without an answer; or worse, it would run with a default, and a
    retriever without its tenant's `filters` searches everybody's documents. So every value that a stage inside the
    loop takes from outside is named in `carry`, enters here, and comes out of `AttemptReader` in every round.

        AttemptStarter → BranchJoiner → AttemptReader → … → HallucinationGrader ┬ replies, documents
                              └────────────────────── retry ─────────────────────────┘

    Example in YAML:
    ```yaml
    attempt_starter:
      type: shiguan.grading.attempt_starter.AttemptStarter
      init_parameters: {carry: {filters: dict, language: str}}
    ```
    """

    tenant_role = "starts"

    def __init__(self, carry: dict[str, str] | None = None) -> None:
        """
        Name the values to carry.

        :param carry: Names and types of further values: `str`, `int`, `float`, `bool`, `dict`, `list[str]`,
            `list[float]`, `list[Document]` or `list[ChatMessage]`. Each becomes a mandatory input.
        :raises ValueError: If a name is taken or a type is unknown.
        """
        self.carry = carry
        for name, type_ in carried_types(carry).items():
            component.set_input_type(self, name, type_)

    @component.output_types(state=dict[str, Any])
    def run(
        self,
        query: str,
        queries: list[str] | None = None,
        messages: list[ChatMessage] | None = None,
        read: list[Document] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """
        Open the loop for a question.

        :param query: The person's question, made to stand alone where it was a follow-up.
        :param queries: What to search for in the first round; None for the question alone.
        :param messages: The earlier turns that the prompts begin with, from `EarlierTurnsFetcher`; None for none.
        :param read: The passages that these show.
        :param kwargs: One value for each name in `carry`.
        :returns: `state`, the state of the first round.
        :raises ValueError: If a carried value is missing.
        """
        missing = [name for name in self.carry or {} if name not in kwargs]
        if missing:
            raise ValueError(
                f"The loop carries {', '.join(f'`{name}`' for name in missing)}, which nobody gave. Connect or pass it."
            )
        carried = {name: kwargs[name] for name in self.carry or {}}
        return {"state": first_state(query, queries, carried, messages, read)}
