"""Filters: what a caller may say in them; and stores, which show and remove nothing unless they name a tenant."""

import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import wraps
from typing import Any, Protocol, Self, runtime_checkable

from shiguan.errors import RefusedError, shown

TENANT_FIELD = "meta.tenant_id"
_SAFE = frozenset(
    "close drop_vectors embedder existing_ids from_dict get_distance other_vectors set_up turn to_dict unscoped "
    "write_vectors".split()
)
"""What a store does without showing, counting or removing a document; every other public method needs a tenant."""

_WRITES = {"write_documents", "write_documents_async"}

_asking: ContextVar[str] = ContextVar("asking_tenant", default="")

_SEARCHES = re.compile(r"_\w+_retrieval\w*|_query_\w+")
"""Haystack's retrievers call these of their stores."""


MAX_FILTER_VALUES = 256
"""The most conditions and values of a filter together: Haystack copies each of them for every stage that reads them."""
MAX_FILTER_DEPTH = 10
MAX_FILTER_BYTES = 64 * 1024
_LOGIC = ("AND", "OR", "NOT")
_COMPARISONS = ("==", "!=", ">", ">=", "<", "<=", "in", "not in")


def check_filters(filters: Any) -> None:
    """
    Refuse filters that are too large or that no store could understand, before anything copies or searches them.

    Counted level by level and given up at the first limit, so that a hostile filter costs no more than a large one.
    """
    level, depth, count, size = [filters], 0, 1, 0
    while level:
        depth += 1
        _limit(depth, MAX_FILTER_DEPTH, "levels")
        below: list[Any] = []
        for node in level:
            _check_condition(node)
            inner = node.get("conditions", node.get("value"))
            several = isinstance(inner, (list, tuple, set, frozenset))
            count += len(inner) if several else 1
            _limit(count, MAX_FILTER_VALUES, "conditions and values")
            if "conditions" in node:
                below += inner
                continue
            for value in (node["field"], *(inner if several else (inner,))):
                nested = isinstance(value, (dict, list, tuple, set, frozenset))
                odd = "a list or mapping inside of a value" if nested else odd_value(value)
                if odd:
                    raise RefusedError(f"`filters` has {odd}. Give texts, numbers, booleans, null, or a list of them.")
                size += len(value.encode()) if isinstance(value, str) else 0
                _limit(size, MAX_FILTER_BYTES, "bytes of text")
        level = below


def _limit(found: int, limit: int, unit: str) -> None:
    if found > limit:
        raise RefusedError(f"`filters` has at least {found:,} {unit}, the limit is {limit:,}. Shorten it.")


def odd_value(value: Any) -> str:
    """Return why a value of JSON is one that stores and libraries break on; empty for a good one."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return "a text that is no Unicode (a lone surrogate)"
    elif isinstance(value, int) and value.bit_length() > 63:
        return f"a whole number of {value.bit_length():,} bits, the limit is 63"
    elif isinstance(value, float) and not math.isfinite(value):
        return f"the number {value}"
    return ""


def check_conditions(filters: Any) -> None:
    """Refuse filters in which anything is neither a comparison nor a list of conditions under an operator."""
    waiting = [filters]
    while waiting:
        node = waiting.pop()
        _check_condition(node)
        waiting += node.get("conditions", ())


def _check_condition(node: Any) -> None:
    problem = _problem(node)
    if problem is not None:
        raise RefusedError(
            f"`filters` is not a Haystack filter, {problem}: {shown(node)}. Expected `field`, `operator` and "
            "`value`, or `operator` (AND, OR, NOT) and `conditions`; for example "
            '{"field": "meta.source", "operator": "==", "value": "book.epub"}.'
        )


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
        if len(filters) > 3:
            return "it has more than `field`, `operator` and `value`"
        needs_list = operator in ("in", "not in")
        return "its `value` is no list" if needs_list and not isinstance(filters["value"], list) else None
    if operator not in _LOGIC:
        return f"its `operator` is none of {' '.join(_LOGIC)}"
    if len(filters) > 2:
        return "it has more than `operator` and `conditions`"
    return None if isinstance(filters.get("conditions"), list) else "its `conditions` are no list"


def where(field: str, operator: str, value: Any) -> dict[str, Any]:
    """Write one condition of a filter."""
    return {"field": field, "operator": operator, "value": value}


def all_of(*conditions: dict[str, Any] | None) -> dict[str, Any]:
    """Write the filter for what meets all of the conditions that are given."""
    return {"operator": "AND", "conditions": [condition for condition in conditions if condition]}


def during(first: int, last: int) -> dict[str, Any]:
    """Write the filter for what happened, in part at least, between two years."""
    return all_of(where("meta.when_from", "<=", last), where("meta.when_to", ">=", first))


def of_tenant(tenant_id: str, *conditions: dict[str, Any]) -> dict[str, Any]:
    """Write the filter that leaves a tenant's documents, and of these what meets the conditions."""
    return all_of(where(TENANT_FIELD, "==", tenant_id), *conditions)


def documents_by_id(store: Any, ids: Collection[str], tenant_id: str) -> dict[str, Any]:
    """Read a tenant's documents of a store by their ids; one that is gone is left out."""
    found = store.filter_documents(of_tenant(tenant_id, where("id", "in", sorted(ids)))) if ids else []
    return {document.id: document for document in found}


def names_tenant(filters: Any) -> bool:
    return tenant_condition(filters) is not None


def tenant_condition(filters: Any) -> dict[str, Any] | None:
    """Return the condition of a tenant in a filter's outermost AND, beside which nothing can widen what is seen."""
    if not isinstance(filters, dict):
        return None
    if "field" in filters:
        value = filters.get("value")
        named = isinstance(value, str) and bool(value.strip())
        return filters if filters["field"] == TENANT_FIELD and filters.get("operator") == "==" and named else None
    conditions = filters.get("conditions")
    if filters.get("operator") != "AND" or not isinstance(conditions, list):
        return None
    return next(filter(None, map(tenant_condition, conditions)), None)


def tenant_of(filters: dict[str, Any]) -> str:
    conditions = [filters] if "field" in filters else filters.get("conditions", [])
    found = {condition["value"] for condition in conditions if "field" in condition and names_tenant(condition)}
    if not names_tenant(filters) or len(found) != 1:
        raise RefusedError(
            f"Filters name no tenant, or several: {shown(filters)}. Expected those of a `TenantFilter`. Connect "
            "`TenantFilter.filters`."
        )
    return str(found.pop())


@contextmanager
def asked_by(tenant_id: str) -> Iterator[None]:
    """Have guarded stores refuse, inside the block, every tenant but this one; an empty one leaves it as it is."""
    before = _asking.get()
    _asking.set(tenant_id or before)
    try:
        yield
    finally:
        _asking.set(before)  # no token: an asynchronous generator may be closed in another context


def require_filters(filters: dict[str, Any] | None, asked: str) -> dict[str, Any]:
    """Refuse to look anything up without filters: a second run of a component that got them once comes without."""
    if not filters:
        raise RefusedError(
            f"`{asked}` was asked to read the library without `filters`. Expected those of a `TenantFilter` with every "
            "call; a pipeline that calls it twice, after a `BranchJoiner` or in a loop, sends them once. Connect "
            "`TenantFilter.filters`, in a loop through `AttemptLoop`."
        )
    return filters


@runtime_checkable
class LibraryStore(Protocol):
    """What stages ask of a store beyond Haystack's `DocumentStore`; where a store is another one, they do without."""

    def list_meta(self, filters: dict[str, Any] | None, fields: list[str]) -> list[dict[str, Any]]:
        """Read some meta fields, or `id`, of the documents that match, without the documents themselves."""
        ...

    def count_languages(self, filters: dict[str, Any] | None = None) -> dict[str, int]:
        """Count the documents in each language."""
        ...

    def count_without_vector(self, filters: dict[str, Any] | None = None) -> int:
        """Count the documents without a vector."""
        ...


@runtime_checkable
class FileStore(Protocol):
    """A store of passages that also knows which files they are of."""

    def list_files(self, filters: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Describe each file: its id, name, title and number of passages."""
        ...


@runtime_checkable
class TermStore(LibraryStore, Protocol):
    """A store that also knows which terms, of `shiguan.text.terms`, its documents have."""

    def known_terms(self, terms: Iterable[str], language: str, filters: dict[str, Any] | None = None) -> set[str]:
        """Find the terms that any document in a language has."""
        ...

    def texts_with(self, terms: list[str], filters: dict[str, Any] | None = None) -> list[str]:
        """Read the texts of documents that have any of some terms."""
        ...


class TenantGuarded:
    """
    A document store that refuses to search, fetch, count or delete without a tenant at the top of an AND.

    Every public method of a class that inherits from this is a door, also those that a later version of Haystack adds:
    it takes `filters` that name a tenant, or is refused. While a pipeline runs for a tenant, any other one is refused
    too, also in what is written. Maintenance of a whole store goes through `unscoped`.
    """

    _scoped = True

    def unscoped(self) -> Self:
        """Return the same store for maintenance, over all tenants; never hand it to a pipeline."""
        view = copy(self)
        view._scoped = False
        return view

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        names = [name for name in dir(cls) if not (name.startswith("_") or name.removesuffix("_async") in _SAFE)]
        guard_methods(cls, _WRITES & set(dir(cls)), TenantGuarded._check_owners)
        guard_methods(cls, [*names, *filter(_SEARCHES.fullmatch, dir(cls))], TenantGuarded._check_tenant)

    def _check_owners(self, name: str, given: dict[str, Any]) -> None:
        asking = _asking.get()
        owners = {document.meta.get("tenant_id") for document in given["documents"]} if self._scoped else set()
        for owner in sorted(owners - {asking}, key=str) if asking else ():
            raise RefusedError(
                f"`{type(self).__name__}.{name}` was given a document of the tenant {shown(owner)} while the "
                f"pipeline runs for {asking!r}. Send all documents through the `SourceStamper`."
            )

    def _check_tenant(self, name: str, given: dict[str, Any]) -> None:
        if not self._scoped:
            return
        asking = _asking.get()
        filters = given.get("filters", given.get("options", {}).get("filters"))
        named = tenant_condition(filters)
        if named is not None and asking not in ("", named["value"]):
            raise RefusedError(
                f"`{type(self).__name__}.{name}` was called for the tenant {named['value']!r} while the pipeline runs "
                f"for {asking!r}. Connect `TenantFilter.filters`, and `tenant_id` to the `TenantFilter` alone."
            )
        if named is None:
            raise RefusedError(
                f"`{type(self).__name__}.{name}` was called without a tenant: filters are {shown(filters)}. "
                f'Expected {{"field": "{TENANT_FIELD}", "operator": "==", "value": …}}, alone or among the '
                "conditions of the outermost AND, as `TenantFilter` makes it. To maintain all tenants' documents, "
                "call it on `store.unscoped()`."
            )


def guard_methods(cls: type, names: Iterable[str], check: Callable[[Any, str, dict[str, Any]], None]) -> None:
    """Have methods of a class call `check` first, with the object, their name and their arguments by name."""
    for name in names:
        method = inspect.getattr_static(cls, name)
        if inspect.isfunction(method) and not hasattr(method, "guards_tenant"):
            setattr(cls, name, _guarded(name, method, check))


def _guarded(
    name: str, method: Callable[..., Any], check: Callable[[Any, str, dict[str, Any]], None]
) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @wraps(method)
    def guarded(self: Any, *arguments: Any, **words: Any) -> Any:
        check(self, name, signature.bind(self, *arguments, **words).arguments)
        return method(self, *arguments, **words)

    guarded.guards_tenant = True  # type: ignore[attr-defined]
    return guarded
