"""A store shows and removes nothing unless it is told whose: the last fence, whatever stands before it."""

import inspect
import reprlib
from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Any, Self

from shiguan.errors import RefusedError

TENANT_FIELD = "meta.tenant_id"
_SAFE = frozenset(
    "build_index close drop_vectors existing_ids from_dict get_distance other_vectors set_up status to_dict unscoped "
    "write_documents write_vectors".split()
)
"""What a store does without showing, counting or removing a document; every other public method needs a tenant."""

_SEARCHES = frozenset({"_bm25_retrieval", "_embedding_retrieval", "_query_by_embedding"})
"""Haystack's retrievers call these of their stores."""


def names_tenant(filters: Any) -> bool:
    """Tell whether a filter holds a tenant in its outermost AND, so that nothing else in it can widen what is seen."""
    if not isinstance(filters, dict):
        return False
    if "field" in filters:
        value = filters.get("value")
        named = isinstance(value, str) and bool(value.strip())
        return filters["field"] == TENANT_FIELD and filters.get("operator") == "==" and named
    conditions = filters.get("conditions")
    return (
        filters.get("operator") == "AND"
        and isinstance(conditions, list)
        and any(names_tenant(condition) for condition in conditions)
    )


def tenant_of(filters: dict[str, Any]) -> str:
    """Read the tenant from filters that name exactly one."""
    conditions = [filters] if "field" in filters else filters.get("conditions", [])
    found = {condition["value"] for condition in conditions if "field" in condition and names_tenant(condition)}
    if not names_tenant(filters) or len(found) != 1:
        raise RefusedError(
            f"Filters name no tenant, or several: {reprlib.repr(filters)}. Expected those of a `TenantFilter`. Connect "
            "`TenantFilter.filters`."
        )
    return str(found.pop())


def require_filters(filters: dict[str, Any] | None, asked: str) -> dict[str, Any]:
    """Refuse to look anything up without filters: a second run of a component that got them once comes without."""
    if not filters:
        raise RefusedError(
            f"`{asked}` was asked to read the library without `filters`, so that nobody knows whose documents it may "
            "show. Expected the `filters` of a `TenantFilter` with every call; a pipeline that calls it twice, after a "
            "`BranchJoiner` or in a loop, sends them once. Connect `TenantFilter.filters`, in a loop through "
            "`AttemptStarter` and `AttemptReader`."
        )
    return filters


class TenantGuarded:
    """
    A document store that refuses to search, fetch, count or delete without a tenant at the top of an AND.

    Every public method of a class that inherits from this is a door, also those that a later version of Haystack adds:
    it takes `filters` that name a tenant, or is refused. Maintenance of a whole store goes through `unscoped`.
    """

    _scoped = True

    def unscoped(self) -> Self:
        """Give the same store for maintenance, over all tenants; never hand it to a pipeline."""
        view = copy(self)
        view._scoped = False
        return view

    def __init_subclass__(cls, **options: Any) -> None:
        """Put the guard before every door of the class."""
        super().__init_subclass__(**options)
        for name in dir(cls):
            if name in _SEARCHES or not (name.startswith("_") or name in _SAFE or name.removesuffix("_async") in _SAFE):
                method = inspect.getattr_static(cls, name)
                if inspect.isfunction(method) and not hasattr(method, "guards_tenant"):
                    setattr(cls, name, _guarded(name, method))


def _guarded(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @wraps(method)
    def guarded(self: TenantGuarded, *arguments: Any, **words: Any) -> Any:
        if self._scoped:
            given = signature.bind(self, *arguments, **words).arguments
            filters = given.get("filters", given.get("options", {}).get("filters"))
            if not names_tenant(filters):
                raise RefusedError(
                    f"`{type(self).__name__}.{name}` was called without a tenant: filters are {reprlib.repr(filters)}. "
                    f'Expected {{"field": "{TENANT_FIELD}", "operator": "==", "value": …}}, alone or among the '
                    "conditions of the outermost AND, as `TenantFilter` makes it. To maintain all tenants' documents, "
                    "call it on `store.unscoped()`."
                )
        return method(self, *arguments, **words)

    guarded.guards_tenant = True  # type: ignore[attr-defined]
    return guarded
