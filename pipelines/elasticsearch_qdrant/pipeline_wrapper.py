"""Ends `hayhooks run` and `hayhooks mcp run` in this folder with the sentence that says which server to start."""

from shiguan.errors import ConfigurationError
from shiguan.serving.engine import current_engine

try:
    current_engine()
except ConfigurationError as error:
    raise SystemExit(str(error)) from None
