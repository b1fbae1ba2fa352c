"""Chat generators without a server, for what a server cannot play."""

from typing import Any

from haystack import component
from haystack.dataclasses import ChatMessage


@component
class UnavailableGenerator:
    """Says that there is no model, and must not be called."""

    def available(self) -> bool:
        return False

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        raise AssertionError("a generator that is not available was called")


@component
class FailingGenerator:
    """Fails whatever it is asked; has no async twin."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        raise RuntimeError("the generator is broken")
