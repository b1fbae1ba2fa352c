"""The mode `advanced` for Hayhooks: `hayhooks run --pipelines-dir hayhooks/pipelines`."""

from hayhooks import BasePipelineWrapper
from shiguan.serving.wrapped_mode import WrappedMode


class PipelineWrapper(WrappedMode, BasePipelineWrapper):
    """Answers at `/advanced/run`, as the model `advanced`, and as a tool."""

    mode = "advanced"
