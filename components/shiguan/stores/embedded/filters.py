"""Translate Haystack filters for the engine, and say where the engine alone cannot decide."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from haystack.dataclasses import Document
from haystack.errors import FilterError
from haystack.utils.filters import COMPARISON_OPERATORS, LOGICAL_OPERATORS, document_matches_filter
from qdrant_edge import FieldCondition, Filter, HasIdCondition, IsEmptyCondition, MatchAny, MatchValue, RangeFloat

from shiguan.stores.embedded.points import BEYOND, COMPOUND, CONTENT, meta_path, point_id

# Up to here a whole number and its double are the same; beyond it the engine would compare rounded values.
_EXACT_NUMBERS = 2**53
_RANGES = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
_NUMBER = re.compile(r"\s*[+-]?\d+(\.\d*)?\s*")
_DOCUMENT_FIELDS = frozenset(field.name for field in fields(Document))
_MISSING_KEY = "'{key}' key missing in {condition}. See the metadata filtering page of Haystack's documentation."


@dataclass(frozen=True)
class EngineFilter:
    """What the engine can do about a filter."""

    condition: Any = None
    exact: bool = True
    nothing: bool = False


_ALL = EngineFilter()
_NONE = EngineFilter(nothing=True)
_UNDECIDED = EngineFilter(exact=False)


def translate(filters: dict[str, Any] | None) -> EngineFilter:
    """
    Translate a Haystack filter.

    The result follows `haystack.utils.filters.document_matches_filter` with one exception: where that function raises
    because the value of some document cannot be compared (a text with a number), the document just does not match,
    so that one document's odd value cannot break the queries of others.
    """
    if not filters:
        return _ALL
    return _comparison(filters) if "field" in filters else _logic(filters)


def matches(filters: dict[str, Any], document: Document) -> bool:
    """Decide on one document, for filters that the engine cannot decide on."""
    if "field" in filters:
        return _lenient(document_matches_filter, filters, document)
    results = (matches(condition, document) for condition in filters["conditions"])
    operator = filters["operator"]
    return any(results) if operator == "OR" else all(results) is (operator == "AND")


def names_embedding(filters: dict[str, Any]) -> bool:
    """Tell whether a filter looks at the documents' embeddings."""
    if "field" in filters:
        return bool(filters["field"] == "embedding")
    return any(names_embedding(condition) for condition in filters["conditions"])


def _logic(condition: dict[str, Any]) -> EngineFilter:
    for key in ("operator", "conditions"):
        if key not in condition:
            raise FilterError(_MISSING_KEY.format(key=key, condition=condition))
    operator = condition["operator"]
    if operator not in LOGICAL_OPERATORS:
        raise FilterError(f"Unknown logical operator '{operator}'. Valid operators are: {sorted(LOGICAL_OPERATORS)}")
    parts = [translate(part) if part else _logic(part) for part in condition["conditions"]]
    if operator == "OR":
        return _any(parts)
    return _all(parts) if operator == "AND" else _not(_all(parts))


def _all(parts: list[EngineFilter]) -> EngineFilter:
    if any(part.nothing for part in parts):
        return _NONE
    conditions = [part.condition for part in parts if part.condition is not None]
    return EngineFilter(Filter(must=conditions) if conditions else None, all(part.exact for part in parts))


def _any(parts: list[EngineFilter]) -> EngineFilter:
    parts = [part for part in parts if not part.nothing]
    if not parts:
        return _NONE
    exact = all(part.exact for part in parts)
    if any(part.condition is None for part in parts):
        decided = any(part.condition is None and part.exact for part in parts)
        return _ALL if decided else _UNDECIDED
    return EngineFilter(Filter(should=[part.condition for part in parts]), exact)


def _not(part: EngineFilter) -> EngineFilter:
    if not part.exact:
        return _UNDECIDED
    if part.nothing:
        return _ALL
    return _NONE if part.condition is None else EngineFilter(Filter(must_not=[part.condition]))


def _comparison(condition: dict[str, Any]) -> EngineFilter:
    for key in ("operator", "value"):
        if key not in condition:
            raise FilterError(_MISSING_KEY.format(key=key, condition=condition))
    operator, value = condition["operator"], condition["value"]
    if operator not in COMPARISON_OPERATORS:
        known = sorted(COMPARISON_OPERATORS)
        raise FilterError(f"Unknown comparison operator '{operator}'. Valid operators are: {known}")
    if operator in ("in", "not in") and not isinstance(value, list):
        raise FilterError(f"The value of '{operator}' must be a `list`, got `{type(value).__name__}` {value!r}.")
    if operator in _RANGES:
        _check_range_value(operator, value)
    field = _field(condition["field"])
    if field is None:
        return _ALL if _compare(operator, None, value) else _NONE
    if operator in _RANGES:
        return _range(field, operator, value)
    equal = _one_of(field, value) if operator in ("in", "not in") else _equal(field, value)
    return equal if operator in ("==", "in") else _not(equal)


def _field(name: str) -> str | None:
    """Give the payload path of a field, `id`, or an empty text where the engine does not know it; None if never set."""
    root, _, rest = name.partition(".")
    if not rest and name not in _DOCUMENT_FIELDS:
        root, rest, keys = "meta", name, [name]
    else:
        keys = rest.split(".") if rest else []
    if root not in _DOCUMENT_FIELDS:
        raise FilterError(f"A document has no field `{root}`, named in `{name}`. Write `meta.{name}` for a meta field.")
    if root == "meta" and keys:
        return "" if any('"' in key or "\\" in key for key in keys) else meta_path(rest)
    if keys or root == "score":
        return None
    return {"id": "id", "content": CONTENT}.get(root, "")


def _equal(field: str, value: Any) -> EngineFilter:
    if field == "id":
        return EngineFilter(HasIdCondition({point_id(value)})) if isinstance(value, str) else _NONE
    if not field:
        return _UNDECIDED
    if value is None:
        return EngineFilter(IsEmptyCondition(field))
    if isinstance(value, str):
        return EngineFilter(FieldCondition(field, match=MatchValue(value)))
    if not _is_exact_number(value):
        return _UNDECIDED
    # Python's 1, 1.0 and True are equal.
    number = EngineFilter(FieldCondition(field, range=RangeFloat(gte=float(value), lte=float(value))))
    return _any([number, _truth(field, bool(value))]) if value in (0, 1) else number


def _truth(field: str, value: bool) -> EngineFilter:
    return EngineFilter(FieldCondition(f'{field}."{COMPOUND}"', match=MatchValue("true" if value else "false")))


def _one_of(field: str, values: list[Any]) -> EngineFilter:
    texts = [value for value in values if isinstance(value, str)]
    others = [_equal(field, value) for value in values if not isinstance(value, str)]
    if texts and field == "id":
        others.append(EngineFilter(HasIdCondition({point_id(text) for text in texts})))
    elif texts and field:
        others.append(EngineFilter(FieldCondition(field, match=MatchAny(texts))))
    elif texts:
        others.append(_UNDECIDED)
    return _any(others)


def _check_range_value(operator: str, value: Any) -> None:
    if value is None or isinstance(value, (bool, int, float, datetime)):
        return
    if not isinstance(value, str):
        raise FilterError(f"'{operator}' compares numbers and dates, got `{type(value).__name__}` {value!r}.")
    if _NUMBER.fullmatch(value):
        # Haystack would read it as a day of the current month, or as a year.
        raise FilterError(f"'{operator}' got the text {value!r}. Write a number without quotes, or a whole ISO date.")
    # Two texts are comparable as dates only: this raises FilterError where the text is none.
    COMPARISON_OPERATORS[operator](datetime(1970, 1, 1), value)


def _range(field: str, operator: str, value: Any) -> EngineFilter:
    if value is None:
        return _NONE
    if not field or field == "id":
        return _UNDECIDED
    if not _is_exact_number(value):
        # Dates: what is not there cannot match, the rest is for Python.
        return EngineFilter(Filter(must_not=[IsEmptyCondition(field)]), exact=False)
    bound = RangeFloat(**{_RANGES[operator]: float(value)})
    parts = [EngineFilter(FieldCondition(field, range=bound))]
    parts += [_truth(field, truth) for truth in (True, False) if _compare(operator, truth, value)]
    sign = 1 if operator in (">", ">=") else -1
    beyond = FieldCondition(f'{field}."{BEYOND}"', match=MatchValue(sign))
    return _any([*parts, EngineFilter(beyond)] if field != CONTENT else parts)


def _is_exact_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) and math.isfinite(value) and abs(value) < _EXACT_NUMBERS


def _compare(operator: str, value: Any, filter_value: Any) -> bool:
    return _lenient(COMPARISON_OPERATORS[operator], value, filter_value)


def _lenient(decide: Callable[..., bool], *values: Any) -> bool:
    try:
        return bool(decide(*values))
    except (FilterError, TypeError, ValueError, OverflowError):
        return False
