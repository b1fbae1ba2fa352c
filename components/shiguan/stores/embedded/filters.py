"""Translate Haystack filters for the engine; docs/options.md lists what they may contain."""

import math
from dataclasses import fields
from typing import Any

from haystack.dataclasses import Document
from haystack.errors import FilterError
from qdrant_edge import FieldCondition, Filter, HasIdCondition, IsEmptyCondition, MatchAny, MatchValue, RangeFloat

from shiguan.errors import RefusedError
from shiguan.stores.embedded.points import meta_path, point_id
from shiguan.tenants import check_conditions

# Up to here a whole number and its double are the same; beyond it the engine would compare rounded values.
_EXACT_NUMBERS = 2**53
_RANGES = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
_DOCUMENT_FIELDS = frozenset(field.name for field in fields(Document)) - {"id"}
_NOTHING = Filter(must=[HasIdCondition(set())])


def translate(filters: dict[str, Any] | None) -> Filter | None:
    """
    Translate a Haystack filter; None for no filter at all.

    The result follows `haystack.utils.filters.document_matches_filter`, except that a value that cannot be compared (a
    text with a number) does not match, and that of a list any element may match.
    """
    if not filters:
        return None
    try:
        check_conditions(filters)
    except RefusedError as error:
        raise FilterError(str(error)) from error
    found = _condition(filters)
    return found if isinstance(found, Filter) else Filter(must=[found])


def _condition(condition: Any) -> Any:
    # Every filter inside another one is asked for each vector that is compared, so none stands there without need.
    if "field" in condition:
        return _comparison(condition)
    operator = condition["operator"]
    parts: list[Any] = [_condition(part) for part in condition["conditions"]]
    if operator == "OR":
        return Filter(should=parts) if parts else _NOTHING
    if operator == "AND":
        return parts[0] if len(parts) == 1 else Filter(must=parts)
    return Filter(must_not=[Filter(must=parts)])


def _comparison(condition: dict[str, Any]) -> Any:
    operator, value, field = condition["operator"], condition["value"], _field(condition["field"])
    if operator in _RANGES:
        return _range(field, operator, value)
    equal = [_equal(field, value)] if operator in ("==", "!=") else _one_of(field, value)
    if operator in ("!=", "not in"):
        return Filter(must_not=equal)
    return equal[0] if len(equal) == 1 else Filter(should=equal) if equal else _NOTHING


def _field(name: str) -> str:
    """Return the payload path of a field, or `id`."""
    if name == "id":
        return name
    root, _, rest = name.partition(".")
    if root in _DOCUMENT_FIELDS and not (root == "meta" and rest):
        raise FilterError(f"Filters look at `id` and at `meta`, got `{name}`. Write `meta.…` for a meta field.")
    field = rest if root == "meta" else name
    if root not in ("meta", name) or '"' in field or "\\" in field:
        raise FilterError(f"A document has no field that a filter could call `{name}`. Write `meta.NAME`.")
    return meta_path(field)


def _equal(field: str, value: Any) -> Any:
    if field == "id":
        return HasIdCondition({point_id(value)} if isinstance(value, str) else set())
    if value is None:
        return IsEmptyCondition(field)
    if isinstance(value, str):
        return FieldCondition(field, match=MatchValue(value))
    number = _number(value, "==")
    return FieldCondition(field, range=RangeFloat(gte=number, lte=number))


def _one_of(field: str, values: list[Any]) -> list[Any]:
    texts = [value for value in values if isinstance(value, str)]
    found = [_equal(field, value) for value in values if not isinstance(value, str)]
    if texts and field == "id":
        found.append(HasIdCondition({point_id(text) for text in texts}))
    elif texts:
        found.append(FieldCondition(field, match=MatchAny(texts)))
    return found


def _range(field: str, operator: str, value: Any) -> Filter:
    if value is None:
        return _NOTHING
    bound = RangeFloat(**{_RANGES[operator]: _number(value, operator)})
    return _NOTHING if field == "id" else Filter(must=[FieldCondition(field, range=bound)])


def _number(value: Any, operator: str) -> float:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain or not math.isfinite(value) or abs(value) >= _EXACT_NUMBERS:
        raise FilterError(
            f"'{operator}' cannot compare with `{type(value).__name__}` {value!r}. Ranges take numbers below 2**53, "
            "and so does equality, beside texts and null."
        )
    return float(value)
