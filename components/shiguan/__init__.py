"""
Shiguan answers questions over books and documents and cites the passage behind every sentence.

    from shiguan import load_pipeline

    pipeline = load_pipeline("embedded", "simple")

Heavy libraries load when the first name is used, so that `import shiguan` and `shiguan --help` stay quick.
"""

from typing import TYPE_CHECKING, Any

from shiguan.errors import ShiguanError

if TYPE_CHECKING:
    from shiguan.engine.loading import load_pipeline
    from shiguan.engine.runner import Runner

__all__ = ["Runner", "ShiguanError", "__version__", "load_pipeline"]
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """Import the public names on first use (PEP 562)."""
    if name == "load_pipeline":
        from shiguan.engine.loading import load_pipeline  # noqa: PLC0415

        return load_pipeline
    if name == "Runner":
        from shiguan.engine.runner import Runner  # noqa: PLC0415

        return Runner
    raise AttributeError(f"module `shiguan` has no attribute `{name}`")
