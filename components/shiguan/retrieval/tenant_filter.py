"""Puts the tenant before everything that retrieves."""

import reprlib
from typing import Any

from haystack import component

from shiguan.errors import RefusedError

_LOGIC = ("AND", "OR", "NOT")
_COMPARISONS = ("==", "!=", ">", ">=", "<", "<=", "in", "not in")
# A store works through nested conditions by recursion.
_MAX_DEPTH = 20


@component
class TenantFilter:
    """
    Makes sure that an answer is built from the asking tenant's documents only.

    Stands first in every pipeline. It joins the tenant and the caller's own filters by AND, and every retriever and
    the parent fetcher take their `filters` from here, so that nothing a caller writes into a filter (an OR, a
    condition on `meta.tenant_id` itself) can widen what is seen.

        TenantFilter().run(tenant_id="library", filters={"field": "meta.title", "operator": "==", "value": "舊唐書"})
        # {"filters": {"operator": "AND", "conditions": [
        #     {"field": "meta.tenant_id", "operator": "==", "value": "library"},
        #     {"field": "meta.title", "operator": "==", "value": "舊唐書"}]}}
    """

    tenant_role = "filters"

    @component.output_types(filters=dict[str, Any])
    def run(self, tenant_id: str, filters: dict[str, Any] | None = None) -> dict[str, Any]:
        """
        Join the tenant and the caller's filters.

        :param tenant_id: Whose documents may be seen; never empty, never guessed.
        :param filters: The caller's own conditions in Haystack's filter format; None or `{}` for none.
        :returns: `filters`, for every retriever and the parent fetcher.
        :raises RefusedError: If the tenant is missing or the filters are not in Haystack's format.
        """
        if not isinstance(tenant_id, str) or not tenant_id.strip():
            raise RefusedError(
                f"A question came without a tenant (`tenant_id` is {tenant_id!r}). Every request names whose documents "
                "it may see; pass the tenant's id."
            )
        conditions: list[dict[str, Any]] = [{"field": "meta.tenant_id", "operator": "==", "value": tenant_id}]
        if filters:
            _check(filters)
            conditions.append(filters)
        return {"filters": {"operator": "AND", "conditions": conditions}}


def _check(filters: Any, depth: int = 1) -> None:
    """Refuse what no store could understand, before a store guesses at it."""
    problem = _problem(filters) if depth <= _MAX_DEPTH else f"nested deeper than {_MAX_DEPTH} levels"
    if problem is not None:
        raise RefusedError(
            f"`filters` is not a Haystack filter, {problem}: {reprlib.repr(filters)}. Expected `field`, `operator` and "
            "`value`, or `operator` (AND, OR, NOT) and `conditions`; for example "
            '{"field": "meta.source", "operator": "==", "value": "book.epub"}.'
        )
    for condition in filters.get("conditions", []):
        _check(condition, depth + 1)


def _problem(filters: Any) -> str | None:
    if not isinstance(filters, dict):
        return "no mapping"
    if "field" in filters and "conditions" in filters:
        return "both a comparison and a list of conditions"
    operator = filters.get("operator")
    if "field" in filters:
        if not isinstance(filters["field"], str) or not filters["field"]:
            return "its `field` is no name"
        if operator not in _COMPARISONS:
            return f"its `operator` is none of {' '.join(_COMPARISONS)}"
        if "value" not in filters:
            return "it has no `value`"
        needs_list = operator in ("in", "not in")
        return "its `value` is no list" if needs_list and not isinstance(filters["value"], list) else None
    if operator not in _LOGIC:
        return f"its `operator` is none of {' '.join(_LOGIC)}"
    return None if isinstance(filters.get("conditions"), list) else "its `conditions` are no list"
