"""Adds the tenant to the filters of everything that retrieves."""

from typing import Any

from haystack import component

from shiguan.errors import RefusedError
from shiguan.tenants import check_filters, of_tenant


@component
class TenantFilter:
    """
    Makes sure that an answer is built only from the asking tenant's documents.

    It comes first in every pipeline. It joins the tenant and the caller's own filters by AND, and every retriever and
    the parent fetcher take their `filters` from here (Haystack's `MultiQueryTextRetriever` as `retriever_kwargs`), so
    that nothing a caller writes into a filter (an OR, a condition on `meta.tenant_id` itself) can widen what is seen.

        TenantFilter().run(tenant_id="library", filters={"field": "meta.title", "operator": "==", "value": "舊唐書"})
        # {"filters": {"operator": "AND", "conditions": [
        #     {"field": "meta.tenant_id", "operator": "==", "value": "library"},
        #     {"field": "meta.title", "operator": "==", "value": "舊唐書"}]}}
    """

    tenant_role = "filters"

    @component.output_types(filters=dict[str, Any], retriever_kwargs=dict[str, Any])
    def run(self, tenant_id: str, filters: dict[str, Any] | None = None) -> dict[str, Any]:
        """
        Join the tenant and the caller's filters.

        :param tenant_id: Whose documents may be seen; never empty, never guessed.
        :param filters: The caller's own conditions in Haystack's filter format; None or `{}` for none.
        :returns: `filters`, for every retriever and the parent fetcher; `retriever_kwargs`, the same as arguments of a
            retriever inside another one.
        :raises RefusedError: If the tenant is missing, or the filters are too large or not in Haystack's format.
        """
        if not isinstance(tenant_id, str) or not tenant_id.strip():
            raise RefusedError(
                f"A question came without a tenant (`tenant_id` is {tenant_id!r}). Every request names whose documents "
                "it may see; pass the tenant's id."
            )
        if filters:
            check_filters(filters)
        allowed = of_tenant(tenant_id, *([filters] if filters else []))
        return {"filters": allowed, "retriever_kwargs": {"filters": allowed}}
