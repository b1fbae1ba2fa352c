"""Where the parts of a mode stand that a run has to know: read from the pipeline's own graph, not from names."""

from dataclasses import dataclass
from typing import Any

from haystack import AsyncPipeline


@dataclass(frozen=True)
class PipelineMap:
    """What a pipeline's graph tells about it."""

    warning: frozenset[str]
    reading: frozenset[str]
    generator: str
    sources: str
    graders: tuple[str, ...]


def map_of(pipeline: AsyncPipeline, answers: str) -> PipelineMap:
    """
    Read the map of a pipeline.

    The generator is found by going back from the answer along the sockets named `replies`; whoever stands on the way
    may reject a draft.
    """
    inputs = pipeline.inputs(include_components_with_connected_inputs=True)
    outputs = pipeline.outputs(include_components_with_connected_outputs=True)
    generator, sources, graders = "", "", []
    stage = answers.partition(".")[0]
    while stage:
        before = _sender(pipeline, stage, "replies")
        if not before or before.partition(".")[0] in graders:
            break
        sources = _sender(pipeline, stage, "documents")
        stage = before.partition(".")[0]
        if "streaming_callback" in inputs.get(stage, {}):
            generator = stage
            break
        graders.append(stage)
    return PipelineMap(
        warning=frozenset(name for name, sockets in outputs.items() if "warnings" in sockets),
        reading=frozenset(
            name for name, sockets in outputs.items() if "documents" in sockets and "filters" in inputs.get(name, {})
        ),
        generator=generator,
        sources=sources,
        graders=tuple(graders) if generator else (),
    )


def _sender(pipeline: AsyncPipeline, receiver: str, socket: str) -> str:
    edges: list[tuple[str, str, dict[str, Any]]] = list(pipeline.graph.in_edges(receiver, data=True))
    return next(
        (f"{sender}.{edge['from_socket'].name}" for sender, _, edge in edges if edge["to_socket"].name == socket), ""
    )
