"""Documents that pass from component to component without being copied character by character."""

from typing import Any, Self

from haystack import Document

ENGINE_META = frozenset(
    "tenant_id source_id file_id source file_path file_name source_key title section kind language anchor notes "
    "record_id line start end position tokens blocks parent_id units number matches cut kept ranked_by relevance "
    "summary docx encoding".split()
)
"""Every key of a document's meta that the engine itself writes or reads; nobody else's value may stand under one."""


class SharedDocument(Document):
    """
    A document whose deep copies share its content, embedding and nested meta, and own only the meta dictionary.

    Haystack deep-copies every component's inputs, so that no component can change what another one sees; for the
    thousands of passages of a book that costs more than reading it. Components do not change a document's content or
    embedding in place, nor what hangs below its meta, and so these may be shared; a component that sets a meta key of
    its own copy still changes nobody else's.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.__dict__["meta"] = dict(self.meta)
        return twin
