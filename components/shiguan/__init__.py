"""
Shiguan answers questions over books and documents and cites the passage behind every sentence.

    from shiguan import load_pipeline

    pipeline = load_pipeline("embedded", "simple")

Heavy libraries load when the first name is used, so that `import shiguan` and `shiguan --help` stay quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shiguan.errors import ShiguanError

if TYPE_CHECKING:
    from shiguan.engine.loading import load_pipeline
    from shiguan.engine.runner import Runner

__all__ = ["Runner", "ShiguanError", "__version__", "load_pipeline"]
__version__ = "0.2.0"


_HOMES = {"Runner": "shiguan.engine.runner", "load_pipeline": "shiguan.engine.loading"}


def __getattr__(name: str) -> Any:
    """Import the public names on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module `shiguan` has no attribute `{name}`")
    return getattr(import_module(_HOMES[name]), name)
