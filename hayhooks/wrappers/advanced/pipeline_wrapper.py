"""Serves the mode `advanced` at Hayhooks' own routes: /advanced/run, /draw/advanced and /status/advanced."""

from hayhooks import BasePipelineWrapper
from shiguan.serving.engine import WrappedMode


class PipelineWrapper(WrappedMode, BasePipelineWrapper):
    """The mode `advanced` of the deployment that the server's engine has loaded."""

    mode = "advanced"
