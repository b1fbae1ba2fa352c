"""The mode `agent` for Hayhooks: `hayhooks run --pipelines-dir hayhooks/pipelines`."""

from hayhooks import BasePipelineWrapper
from shiguan.serving.wrapped_mode import WrappedMode


class PipelineWrapper(WrappedMode, BasePipelineWrapper):
    """Answers at `/agent/run`, as the model `agent`, and as a tool."""

    mode = "agent"
