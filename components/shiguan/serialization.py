"""How components and stores are written into a pipeline's file."""

import inspect
from typing import Any, Self

from haystack import default_from_dict, default_to_dict
from haystack.core.serialization import component_to_dict


class Serializable:
    """Writes all parameters of its `__init__`, also components among them, which Haystack's default leaves out."""

    def to_dict(self) -> dict[str, Any]:
        """Write the parameters, without data and without secrets."""
        names = inspect.signature(type(self).__init__).parameters
        return default_to_dict(self, **{name: _written(getattr(self, name), name) for name in names if name != "self"})

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make the object from what `to_dict` wrote."""
        return default_from_dict(cls, data)


def _written(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [_written(one, name) for one in value]
    return component_to_dict(value, name) if hasattr(value, "run") else value
