"""Serves the mode `precise` at Hayhooks' own routes: /precise/run, /draw/precise and /status/precise."""

from hayhooks import BasePipelineWrapper
from shiguan.serving.engine import WrappedMode


class PipelineWrapper(WrappedMode, BasePipelineWrapper):
    """The mode `precise` of the deployment that the server's engine has loaded."""

    mode = "precise"
