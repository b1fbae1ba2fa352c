"""Writes the passages of files, and removes those that only an older version of the files had."""

from collections.abc import Container
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from haystack import Document, component
from haystack.document_stores.types import DuplicatePolicy

from shiguan.tenants import all_of, of_tenant, where

_BATCH = 10_000


@component
class PassageWriter:
    """
    Makes the stores have the passages of this run's files, and no others of these files.

    It comes between `ParentChildSplitter` and `VectorWriter`. Parents are written first, children that the store lacks
    next, and what an older version of the files had is removed last, children before parents. So whenever the process
    dies, every child that is found has its parent, and a file is never missing; running again finishes the work. Ids
    are hashes of everything in a document: a child that the store has is not written again and keeps its vector. Files
    without passages in this run, because they could not be read, keep what they had.
    """

    tenant_role = "writes"

    def __init__(self, parent_store: Any, *, child_store: Any) -> None:
        """
        Set the stores.

        :param parent_store: Where the parents are: a store that lists ids (`list_ids`) and deletes by filter.
        :param child_store: Where the children are: a store that also reports which ids it has (`existing_ids`).
        """
        self.parent_store = parent_store
        self.child_store = child_store

    @component.output_types(files=list[dict[str, Any]], new=int, removed=int)
    def run(self, parents: list[Document], children: list[Document]) -> dict[str, Any]:
        """
        Write passages.

        :param parents: All parents of this run's files, stamped with `tenant_id` and `file_id`.
        :param children: All children of these.
        :returns: `files`, for `VectorWriter`: filters for what is now stored of this run's files; `new`, how many
            children the store lacked; `removed`, how many documents of older versions were deleted from both stores.
        """
        self.parent_store.write_documents(parents, policy=DuplicatePolicy.OVERWRITE)
        by_id = {child.id: child for child in children}
        known = self.child_store.existing_ids(list(by_id))
        new = [child for name, child in by_id.items() if name not in known]
        self.child_store.write_documents(new, policy=DuplicatePolicy.OVERWRITE)
        files = _files_of(parents)
        removed = _remove_others(self.child_store, files, by_id.keys())
        removed += _remove_others(self.parent_store, files, {parent.id for parent in parents})
        return {"files": files, "new": len(new), "removed": removed}


def delete_passages(parent_store: Any, child_store: Any, named: dict[str, Any], *, tenant_id: str) -> int:
    """Delete a tenant's passages, children first; what remains of a file states how many children that is."""
    owned = of_tenant(tenant_id, named)
    taken = child_store.count_by_file(owned)
    child_store.delete_by_filter(owned)
    removed = int(parent_store.delete_by_filter(owned))
    for file, (units, _) in taken.items():
        rest = parent_store.filter_documents(of_tenant(tenant_id, where("meta.file_id", "==", file)))
        rest = [
            replace(each, meta=each.meta | {"units": each.meta["units"] - units})
            for each in rest
            if "units" in each.meta
        ]
        parent_store.write_documents(rest, policy=DuplicatePolicy.OVERWRITE)
    return removed


def _files_of(documents: list[Document]) -> list[dict[str, Any]]:
    """Return a filter for each tenant: all passages of the files that documents come from."""
    files = sorted({(document.meta["tenant_id"], document.meta.get("file_id", "")) for document in documents})
    return [
        of_tenant(tenant_id, where("meta.file_id", "in", [file_id for _, file_id in of_one]))
        for tenant_id, of_one in groupby(files, key=itemgetter(0))
    ]


def _remove_others(store: Any, files: list[dict[str, Any]], kept: Container[str]) -> int:
    removed = 0
    for of_files in files:
        others = [each for each in store.list_ids(of_files) if each not in kept]
        for start in range(0, len(others), _BATCH):
            store.delete_by_filter(all_of(of_files, where("id", "in", others[start : start + _BATCH])))
        removed += len(others)
    return removed
