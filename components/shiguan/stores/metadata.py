"""What the meta fields of many documents hold."""

import json
from collections.abc import Iterable
from typing import Any

_Metas = Iterable[dict[str, Any]]


def count_unique(metas: _Metas, names: list[str]) -> dict[str, int]:
    """
    Count the different values of fields.

    :param metas: The documents' meta.
    :param names: The fields, with or without `meta.` before them.
    :returns: For each field, without `meta.`, how many values it has; `None` is none.
    """
    keys = [name.removeprefix("meta.") for name in names]
    seen: dict[str, set[Any]] = {key: set() for key in keys}
    for meta in metas:
        for key in keys:
            if meta.get(key) is not None:
                seen[key].add(_hashable(meta[key]))
    return {key: len(values) for key, values in seen.items()}


def fields_info(metas: _Metas) -> dict[str, dict[str, str]]:
    """
    Name the fields and their types.

    :param metas: The documents' meta.
    :returns: For each field its `type`: `boolean`, `int`, `float` or `keyword`, by its last value.
    """
    types: dict[str, dict[str, str]] = {}
    for meta in metas:
        for key, value in meta.items():
            if value is not None:
                types[key] = {"type": _type(value)}
    return types


def min_max(metas: _Metas, name: str) -> dict[str, Any]:
    """
    Give the least and the greatest value of a field.

    :param metas: The documents' meta.
    :param name: The field, with or without `meta.` before it.
    :returns: `min` and `max`; both `None` if there is no value, or they cannot be compared.
    """
    key = name.removeprefix("meta.")
    values = [meta[key] for meta in metas if isinstance(meta.get(key), (int, float, str))]
    try:
        return {"min": min(values), "max": max(values)}
    except (TypeError, ValueError):
        return {"min": None, "max": None}


def unique_values(metas: _Metas, name: str) -> tuple[list[str], int]:
    """
    List the values of a field.

    :param metas: The documents' meta.
    :param name: The field, with or without `meta.` before it.
    :returns: The values as texts, sorted, and how many they are.
    """
    key = name.removeprefix("meta.")
    values = sorted({str(meta[key]) for meta in metas if meta.get(key) is not None})
    return values, len(values)


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "int"
    return "float" if isinstance(value, float) else "keyword"


def _hashable(value: Any) -> Any:
    return json.dumps(value, sort_keys=True) if isinstance(value, (list, dict)) else value
