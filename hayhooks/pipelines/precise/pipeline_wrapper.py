"""The mode `precise` for Hayhooks: `hayhooks run --pipelines-dir hayhooks/pipelines`."""

from hayhooks import BasePipelineWrapper
from shiguan.serving.wrapped_mode import WrappedMode


class PipelineWrapper(WrappedMode, BasePipelineWrapper):
    """Answers at `/precise/run`, as the model `precise`, and as a tool."""

    mode = "precise"
