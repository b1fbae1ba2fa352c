"""The pipeline of a mode, which takes its inputs by the names that its file declares."""

import asyncio
from collections import UserDict
from collections.abc import AsyncIterator, Mapping
from contextlib import nullcontext
from typing import Any

from haystack import Document, logging
from haystack.core.errors import PipelineRuntimeError
from haystack.core.pipeline.base import (
    _COMPONENT_INPUT,
    _COMPONENT_OUTPUT,
    _COMPONENT_VISITS,
    ComponentPriority,
    _validate_component_output_keys,
)
from haystack.core.pipeline.utils import _deepcopy_with_exceptions
from haystack.dataclasses import GeneratedAnswer

from shiguan.haystack_compat import AsyncPipeline
from shiguan.llm.run import current_run
from shiguan.text.passages import SharedDocument

logger = logging.getLogger(__name__)


class ModePipeline(AsyncPipeline):
    """
    Haystack's pipeline, with the inputs of the mode's file.

    The values of a flat call such as `run({"query": "…", "tenant_id": "…", "top_k": 2})` go where the file's `inputs`
    say. Haystack itself would pass each value to every component that has an input of that name, so that `top_k` would
    also shorten the lists of the retrievers, and would drop a name that no component has.

    Each component that runs is a stage of the current `Run`, if there is one.
    """

    @staticmethod
    async def _run_component_async(
        component_name: str,
        component: dict[str, Any],
        component_inputs: dict[str, Any],
        component_visits: dict[str, int],
        parent_span: Any = None,
        **_: Any,
    ) -> Mapping[str, Any]:
        # As Haystack's, but for how inputs are copied: docs/decisions/0035 has the times.
        run, instance = current_run(), component["instance"]
        inputs = {name: _copied(value) for name, value in component_inputs.items()}
        traced = AsyncPipeline._create_component_span(component_name, instance, component_inputs, parent_span)
        with run.stage(component_name) if run else nullcontext() as stage, traced as span:
            span.set_content_tag(_COMPONENT_INPUT, component_inputs)
            logger.info("Running component {component_name}", component_name=component_name)
            try:
                if getattr(instance, "__haystack_supports_async__", False):
                    outputs = await instance.run_async(**inputs)
                else:
                    outputs = await asyncio.to_thread(instance.run, **inputs)
            except Exception as error:
                raise PipelineRuntimeError.from_exception(component_name, type(instance), error) from error
            if not isinstance(outputs, Mapping):
                raise PipelineRuntimeError.from_invalid_output(component_name, type(instance), outputs)
            _validate_component_output_keys(component_name, component, outputs)
            component_visits[component_name] += 1
            span.set_tag(_COMPONENT_VISITS, component_visits[component_name])
            span.set_content_tag(_COMPONENT_OUTPUT, outputs)
            if run and stage:
                run.count_outputs(component_inputs, outputs, stage.started)
        return outputs

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
        async for outputs in super().run_async_generator(nested, include_outputs_from, concurrency_limit):
            yield {component: dict(values) for component, values in outputs.items()}

    @staticmethod
    def _calculate_priority(comp: dict[str, Any], comp_inputs: dict[str, list[dict[str, Any]]]) -> ComponentPriority:
        # Whenever a component ends Haystack looks at all of them, and most are blocked: one that ran and got no new
        # input since, and one that still waits for an input.
        if comp["visits"] and not any(given["sender"] for values in comp_inputs.values() for given in values):
            return ComponentPriority.BLOCKED
        if any(socket.is_mandatory and not comp_inputs.get(name) for name, socket in comp["input_sockets"].items()):
            return ComponentPriority.BLOCKED
        return AsyncPipeline._calculate_priority(comp, comp_inputs)

    def _write_component_outputs(self, **of_component: Any) -> Mapping[str, Any]:
        return _Outputs(super()._write_component_outputs(**of_component))

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
        return [_copied(item) for item in value]
    if kind is dict:
        return {key: _copied(item) for key, item in value.items()}
    if kind is SharedDocument:
        return value.__deepcopy__({})  # the most frequent case; keeping the memo takes half the time of `deepcopy`
    if kind is Document or kind is GeneratedAnswer:
        twin = object.__new__(kind)
        twin.__dict__.update({name: _copied(item) for name, item in vars(value).items()})
        return twin
    return _deepcopy_with_exceptions(value)


_UNCHANGING = frozenset({str, int, float, bool, type(None)})
