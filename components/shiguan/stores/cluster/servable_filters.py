"""Filters that mean the same on Elasticsearch, on Qdrant and on the embedded store; all others are refused."""

from collections.abc import Collection
from typing import Any

from shiguan.errors import RefusedError

KEYWORD_FIELDS = ("tenant_id", "source_id", "file_id", "parent_id", "source", "record_id", "title", "language", "kind")
"""Meta fields that hold one text each, by which both servers can filter."""

NUMBER_FIELDS = ("position", "start", "end", "tokens")
"""Meta fields that hold one whole number each."""

_LOGIC = ("AND", "OR", "NOT")
_EQUALITY = ("==", "!=")
_MEMBERSHIP = ("in", "not in")
_RANGES = (">", ">=", "<", "<=")


def servable(filters: dict[str, Any] | None, keyword_fields: Collection[str] = ()) -> dict[str, Any]:
    """
    Check a filter, and write it so that both servers' conversions give it Haystack's meaning.

    The conversions of the two integrations differ from `haystack.utils.filters` and from each other: Qdrant reads a
    NOT of several conditions as "none of them" where Haystack means "not all of them", an empty list as no condition
    at all, and a field without `meta.` as another field; Elasticsearch finds nothing under a field that it has no
    index for, so that `!=` finds everything. What can be written otherwise is; the rest is refused by name.
    """
    return _servable(filters, {*KEYWORD_FIELDS, *keyword_fields}) if filters else {}


def _servable(condition: Any, keywords: set[str]) -> dict[str, Any]:
    if not isinstance(condition, dict) or "operator" not in condition:
        raise RefusedError(
            f"`filters` is not a Haystack filter: {condition!r}. Expected `field`, `operator` and `value`, or "
            "`operator` (AND, OR, NOT) and `conditions`."
        )
    if "field" in condition:
        return _comparison(condition, keywords)
    operator, conditions = condition["operator"], condition.get("conditions")
    if operator not in _LOGIC or not isinstance(conditions, list) or not conditions:
        raise RefusedError(
            f"`filters` has the operator {operator!r} over {conditions!r}. Expected AND, OR or NOT over a list with at "
            "least one condition."
        )
    parts = [_servable(part, keywords) for part in conditions]
    if operator == "NOT" and len(parts) > 1:
        parts = [{"operator": "AND", "conditions": parts}]
    return {"operator": operator, "conditions": parts}


def _comparison(condition: dict[str, Any], keywords: set[str]) -> dict[str, Any]:
    operator = condition["operator"]
    if "value" not in condition or operator not in (*_EQUALITY, *_MEMBERSHIP, *_RANGES):
        raise RefusedError(
            f"`filters` has a condition that is none: {condition!r}. Expected a `value` and one of "
            f"{', '.join((*_EQUALITY, *_MEMBERSHIP, *_RANGES))}."
        )
    field = str(condition["field"])
    name = field.removeprefix("meta.")
    is_number = name in NUMBER_FIELDS
    if field == "id":
        name = "id"
    elif name == "section":
        raise RefusedError(
            "This deployment cannot limit a question to `sections`: its servers hold headings as words to search by, "
            "not as values to filter by. Limit it to `sources`, or ask a library of the deployment `embedded`."
        )
    elif not is_number and name not in keywords:
        raise RefusedError(
            f"This deployment cannot filter by `{field}`: neither server has an index for it. It can by id, "
            f"{', '.join(f'meta.{known}' for known in (*sorted(keywords), *NUMBER_FIELDS))}. Use one of these, or add "
            "the field to `keyword_fields` of every store in the deployment's files and ingest anew."
        )
    value = condition["value"]
    if operator in _RANGES:
        _check_range(field, operator, value, is_number=is_number)
    else:
        _check_values(field, operator, value, is_number=is_number)
    return {"field": "id" if name == "id" else f"meta.{name}", "operator": operator, "value": value}


def _check_range(field: str, operator: str, value: Any, *, is_number: bool) -> None:
    if not is_number or isinstance(value, bool) or not isinstance(value, int | float):
        raise RefusedError(
            f"This deployment cannot compare `{field}` with `{operator} {value!r}`. `{operator}` works on whole-number "
            f"fields ({', '.join(NUMBER_FIELDS)}) and takes a number."
        )


def _check_values(field: str, operator: str, value: Any, *, is_number: bool) -> None:
    if operator in _MEMBERSHIP and (not isinstance(value, list) or not value):
        raise RefusedError(
            f"`{operator}` on `{field}` has the value {value!r}; expected a list with at least one value."
        )
    expected = int if is_number else str
    for single in value if operator in _MEMBERSHIP else [value]:
        if isinstance(single, bool) or not isinstance(single, expected):
            kind = "a whole number" if is_number else "a text"
            raise RefusedError(
                f"This deployment cannot compare `{field}` with {single!r}: the field holds {kind}, and Elasticsearch "
                f"and Qdrant would not agree on the answer. Compare it with {kind}."
            )
