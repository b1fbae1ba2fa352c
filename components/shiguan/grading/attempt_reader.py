"""Feeds the stages inside the self-correcting loop, in every round anew."""

from typing import Any

from haystack import Document, component
from haystack.dataclasses import ChatMessage

from shiguan.grading.attempts import carried_types


@component
class AttemptReader:
    """
    Unpacks the state of a round for the stages of the loop.

    Stands behind the `BranchJoiner` in which the first state (from `AttemptStarter`) and the retries (from
    `HallucinationGrader` and `RelevanceGrader`) meet. Everything inside the loop takes its inputs from here or from
    another stage inside, never from outside.

    Example in YAML:
    ```yaml
    attempt:
      type: shiguan.grading.attempt_reader.AttemptReader
      init_parameters: {carry: {filters: dict, language: str}}  # the same as of the starter
    ```
    """

    tenant_role = "carries"

    def __init__(self, carry: dict[str, str] | None = None) -> None:
        """
        Name the values that the starter carries.

        :param carry: The same names and types as `AttemptStarter` has; each becomes an output.
        :raises ValueError: If a name is taken or a type is unknown.
        """
        self.carry = carry
        component.set_output_types(
            self,
            state=dict[str, Any],
            query=str,
            queries=list[str],
            question=str,
            search=int,
            attempt=int,
            documents=list[Document],
            feedback=str,
            messages=list[ChatMessage],
            read=list[Document],
            **carried_types(carry),
        )

    def run(self, state: dict[str, Any]) -> dict[str, Any]:
        """
        Unpack a state.

        :param state: The state of this round.
        :returns: `state`, for the graders; `query` and `queries`, what to search for in this round, joined and one by
            one; `question`, the person's question; `search` and `attempt`, which search this is and for which answer,
            both from 1; `documents`, the passages of earlier rounds; `feedback`, what to tell the generator (empty in
            the first round); `messages`, what its prompt begins with, and `read`, the passages that these show; and
            every carried value.
        :raises ValueError: If a carried value is missing: the starter's `carry` differs.
        """
        carried = state["carried"]
        missing = [name for name in self.carry or {} if name not in carried]
        if missing:
            raise ValueError(
                f"The state does not carry {', '.join(f'`{name}`' for name in missing)}. Give `AttemptStarter` the "
                "same `carry` as `AttemptReader`."
            )
        names = ("query", "queries", "question", "attempt", "documents", "feedback", "messages", "read")
        return {
            "state": state,
            "search": state["attempt"] + state["reformulated"],
            **{name: state[name] for name in names},
            **{name: carried[name] for name in self.carry or {}},
        }
