"""What differs between Haystack 2.31 and 3, and each private name of Haystack that is used: nothing else has them."""

from typing import Any

try:
    from haystack import AsyncPipeline
except ImportError:  # Haystack 3, where every pipeline can run asynchronously
    from haystack import Pipeline as AsyncPipeline  # type: ignore[assignment]

__all__ = ["AsyncPipeline", "allow_types"]


def allow_types(checked: Any) -> None:
    """Let Haystack 3 load the classes of a file that our own check has passed; Haystack 2 loads any class."""
    try:
        from haystack.core.serialization import allow_deserialization_module  # noqa: PLC0415
    except ImportError:
        return
    if isinstance(checked, dict) and isinstance(type_ := checked.get("type"), str) and "." in type_:
        allow_deserialization_module(type_.rpartition(".")[0])
    for inner in checked.values() if isinstance(checked, dict) else checked if isinstance(checked, list) else ():
        allow_types(inner)
