"""Removes the passages that only an older version of a file had."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Self

from haystack import component

from shiguan.tenants import of_tenant, where


@dataclass(frozen=True)
class ProducedIds:
    """
    The ids of one run's passages, and the files they came from.

    It is passed on instead of the passages themselves; being immutable, it is never copied.
    """

    files: frozenset[tuple[str, str]]
    parents: frozenset[str]
    children: frozenset[str]

    def filters(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each tenant with the filter for all passages of its files."""
        for tenant_id, files in groupby(sorted(self.files), key=itemgetter(0)):
            yield tenant_id, of_tenant(tenant_id, where("meta.file_id", "in", [file_id for _, file_id in files]))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


_BATCH = 10_000


@component
class OrphanRemover:
    """
    Deletes parents and children of this run's files that this run no longer produced.

    It comes after both writers and before the vectors are made: a file's new words are in the stores before its old
    passages are removed, and the work that is left then needs no file. Whenever the process dies, every child that is
    found has its parent. Running again finishes what was interrupted. Files without passages in this run, because they
    could not be read, keep what they had.
    """

    tenant_role = "writes"

    def __init__(self, parent_store: Any, *, child_store: Any) -> None:
        """
        Set the stores.

        :param parent_store: Where the parents are: a store that lists ids (`list_ids`) and deletes by filter.
        :param child_store: Where the children are, a store of the same kind.
        """
        self.parent_store = parent_store
        self.child_store = child_store

    @component.output_types(removed=int)
    def run(self, produced: ProducedIds, parents_written: int, children_written: int) -> dict[str, Any]:
        """
        Remove orphans.

        :param produced: The ids of all passages of this run, written now or known before.
        :param parents_written: The output of the parents' writer; connected so that this runs after it.
        :param children_written: The output of the children's writer, for the same reason.
        :returns: `removed`, how many documents were deleted from both stores.
        """
        del parents_written, children_written
        removed = 0
        # Children first: otherwise a child could be found whose parent is gone.
        for store, kept in ((self.child_store, produced.children), (self.parent_store, produced.parents)):
            for tenant_id, of_files in produced.filters():
                orphans = [each for each in store.list_ids(of_files) if each not in kept]
                for start in range(0, len(orphans), _BATCH):
                    store.delete_by_filter(of_tenant(tenant_id, where("id", "in", orphans[start : start + _BATCH])))
                removed += len(orphans)
        return {"removed": removed}
