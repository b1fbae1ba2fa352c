"""The pipeline of a mode, which takes its inputs by the names that its file declares."""

from collections import UserDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import nullcontext
from copy import deepcopy
from itertools import repeat
from typing import Any

from haystack import Document
from haystack.core.component import Component
from haystack.dataclasses import GeneratedAnswer
from haystack.tools import Tool, Toolset

from shiguan.haystack_compat import ObservedPipeline
from shiguan.llm.calls import run_to_end
from shiguan.llm.run import current_run
from shiguan.tenants import asked_by
from shiguan.text.passages import SharedDocument, changed


class ModePipeline(ObservedPipeline):
    """
    Haystack's pipeline, with the inputs of the mode's file.

    The values of a flat call such as `run({"query": "…", "tenant_id": "…", "top_k": 2})` go where the file's `inputs`
    say. Haystack itself would pass each value to every component that has an input of that name, so that `top_k` would
    also shorten the lists of the retrievers, and would drop a name that no component has.

    Each component that runs is a stage of the current `Run`, if there is one.
    """

    async def run_component(
        self,
        name: str,
        inputs: Mapping[str, Any],
        run: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]],
    ) -> Mapping[str, Any]:
        """Run a component as a stage, with copies of its inputs that take less time: docs/decisions/0035."""
        question = current_run()
        with question.stage(name) if question else nullcontext() as stage:
            outputs = await run(_Inputs(inputs))
            if question and stage:
                question.count_outputs(inputs, outputs, stage.started)
        return _Outputs(outputs)

    def run(
        self, data: dict[str, Any], include_outputs_from: set[str] | None = None, concurrency_limit: int = 4
    ) -> dict[str, Any]:
        """
        Run as `run_async` does: Haystack 3 has a second way, which neither reads the file's `inputs` nor binds stores.

        :param data: Values by the names of the file's `inputs`, or by component and socket.
        :param include_outputs_from: Components whose outputs are part of the result even if others take them.
        :param concurrency_limit: How many components may run at once.
        :returns: The outputs of the components that no other takes, by component.
        :raises ValueError: If a name is not an input of the file.
        """
        found: dict[str, Any] = run_to_end(self.run_async(data, include_outputs_from, concurrency_limit))
        return found

    async def run_async_generator(
        self, data: dict[str, Any], include_outputs_from: set[str] | None = None, concurrency_limit: int = 4
    ) -> AsyncIterator[dict[str, Any]]:
        """
        Run, yielding the outputs of each component as they come.

        :param data: Values by the names of the file's `inputs`, or by component and socket.
        :param include_outputs_from: Components whose outputs are part of the result even if others take them.
        :param concurrency_limit: How many components may run at once.
        :yields: The outputs of each component, and at last those of the whole run.
        :raises ValueError: If a name is not an input of the file.
        """
        nested = self.by_component(data)
        with asked_by(self._tenant_of(nested)):
            async for outputs in super().run_async_generator(nested, include_outputs_from, concurrency_limit):
                yield {component: dict(values) for component, values in outputs.items()}

    def _tenant_of(self, nested: dict[str, Any]) -> str:
        """Return the tenant of the question, or of the value that goes where the file's input `tenant_id` does."""
        if (question := current_run()) is not None and question.tenant_id:
            return question.tenant_id
        targets = (target.split(".") for target in (self.metadata.get("inputs") or {}).get("tenant_id", ()))
        values = (nested.get(component, {}).get(socket) for component, socket in targets)
        return next((value for value in values if isinstance(value, str)), "")

    def by_component(self, data: dict[str, Any]) -> dict[str, Any]:
        """Map values to the components and sockets that the file's `inputs` name for them."""
        inputs: dict[str, list[str]] = self.metadata.get("inputs") or {}
        if not inputs or all(name in self.graph and isinstance(value, dict) for name, value in data.items()):
            return data
        unknown = [name for name in data if name not in inputs]
        if unknown:
            raise ValueError(
                f"The pipeline has no input `{unknown[0]}`. Its inputs: {', '.join(inputs)}. Name one of these, or "
                "give a mapping of components to their own inputs."
            )
        nested: dict[str, dict[str, Any]] = {}
        for name, value in data.items():
            for target in inputs[name]:
                component, socket = target.split(".")
                nested.setdefault(component, {})[socket] = value
        return nested


class _Inputs(UserDict[str, Any]):
    """The inputs of a component, which Haystack copies before the component gets them."""

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return _copied(dict(self))  # type: ignore[no-any-return]

    def to_dict(self) -> dict[str, Any]:
        """Return the inputs as a tracer records them."""
        return dict(self)


class _Outputs(UserDict[str, Any]):
    """The outputs of a component, for the caller: the next components get copies of their own."""

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return dict(self)


def _copied(value: Any) -> Any:
    """
    Copy an input, so that no component can change what another one sees, with the result that Haystack would get.

    Haystack checks for every number of a vector and every hit of a list whether it is a component.
    """
    kind = type(value)
    if kind in _UNCHANGING:
        return value
    if kind is list:
        return _copied_all(value)
    if kind is dict:
        return dict(zip(value, _copied_all(value.values()), strict=True))
    if kind is SharedDocument:
        return deepcopy(value)
    if kind is Document or kind is GeneratedAnswer:
        twin = object.__new__(kind)
        twin.__dict__.update(zip(vars(value), _copied_all(vars(value).values()), strict=True))
        return twin
    return _copied_otherwise(value)


def _copied_all(values: Collection[Any]) -> list[Any]:
    """Copy values without a call for each: a question copies hundreds of documents and a thousand values."""
    kinds = set(map(type, values))
    if kinds == {SharedDocument}:
        return changed(values, repeat({}))
    if kinds <= _UNCHANGING:
        return list(values)
    return [value if type(value) in _UNCHANGING else _copied(value) for value in values]


def _copied_otherwise(value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_copied, value))
    if isinstance(value, list | tuple | set):
        return type(value)(map(_copied, value))
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, Component | Tool | Toolset):
        return value
    try:
        return deepcopy(value)
    except Exception:  # a client, a lock: passed on as it is
        return value


_UNCHANGING = frozenset({str, int, float, bool, type(None)})
