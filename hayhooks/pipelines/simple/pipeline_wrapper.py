"""The mode `simple` for Hayhooks: `hayhooks run --pipelines-dir hayhooks/pipelines`."""

from hayhooks import BasePipelineWrapper
from shiguan.serving.wrapped_mode import WrappedMode


class PipelineWrapper(WrappedMode, BasePipelineWrapper):
    """Answers at `/simple/run`, as the model `simple`, and as a tool."""

    mode = "simple"
