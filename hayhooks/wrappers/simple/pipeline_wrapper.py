"""Serves the mode `simple` at Hayhooks' own routes: /simple/run, /draw/simple and /status/simple."""

from hayhooks import BasePipelineWrapper
from shiguan.serving.engine import WrappedMode


class PipelineWrapper(WrappedMode, BasePipelineWrapper):
    """The mode `simple` of the deployment that the server's engine has loaded."""

    mode = "simple"
