"""What the Elasticsearch store reads and writes, apart from where it is and what its index looks like."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from elasticsearch import helpers
from haystack.dataclasses import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.document_stores.elasticsearch import ElasticsearchDocumentStore
from haystack_integrations.document_stores.elasticsearch.filters import _normalize_filters

from shiguan.errors import StoreError
from shiguan.stores.cluster.elasticsearch_schema import ElasticsearchSchema
from shiguan.stores.cluster.servable_filters import servable
from shiguan.stores.cluster.server import Server

_PAGE = 1_000  # passages in one answer
_ID_PAGE = 10_000  # ids in one answer, the most that an index gives by default
_BULK_SECONDS = 60.0
_NAMED = 5
# Haystack writes meta beside these fields of a document, so that a meta key of the same name would replace one.
_DOCUMENT_KEYS = frozenset(
    ("id", "content", "meta", "score", "blob", "embedding", "sparse_embedding", "dataframe", "content_type")
)


class ElasticsearchOperations(ElasticsearchDocumentStore):
    """The reading and writing methods of `ElasticsearchStore`, which says where the index is and what it looks like."""

    index: str
    timeout: float
    server: Server
    schema: ElasticsearchSchema

    def write_documents(  # type: ignore[override]  # the time of the refresh is not the caller's choice
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Store passages in batches; when it returns, they are found."""
        for document in documents:
            clashes = _DOCUMENT_KEYS & document.meta.keys()
            if clashes:
                raise StoreError(
                    f"The passage `{document.id}` of {document.meta.get('source', 'an unnamed source')} has meta "
                    f"named {', '.join(sorted(clashes))}, which Elasticsearch keeps for the passage itself. Rename "
                    "these fields in the source and ingest it again."
                )
        self._ensure_initialized()
        if not documents:
            return 0
        bare = [replace(document, embedding=None, sparse_embedding=None) for document in documents]
        if policy != DuplicatePolicy.OVERWRITE:
            with self.server.reporting():
                return int(super().write_documents(bare, policy=policy, refresh=True))
        actions = (
            {
                "_op_type": "index",
                "_id": document.id,
                "_source": {key: value for key, value in document.to_dict().items() if value is not None},
            }
            for document in bare
        )
        return self._bulk(actions, "write", len(documents))

    def delete_documents(self, document_ids: list[str]) -> None:  # type: ignore[override]  # as above
        """Delete passages; ids that are not stored are no error."""
        self._ensure_initialized()
        if document_ids:
            actions = ({"_op_type": "delete", "_id": document_id} for document_id in document_ids)
            self._bulk(actions, "delete", len(document_ids))

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Give the passages that match; up to a thousand, such as parents by id, come in one request."""
        return [self._deserialize_document(hit) for hit in self._hits(filters, _PAGE, source=True)]

    def get_documents_by_id(self, document_ids: list[str]) -> list[Document]:
        """Give passages by id."""
        found: dict[str, Document] = {}
        for start in range(0, len(document_ids), _PAGE - 1):
            ids = document_ids[start : start + _PAGE - 1]
            by_id = {"field": "id", "operator": "in", "value": ids}
            found |= {document.id: document for document in self.filter_documents(by_id)}
        return [found[document_id] for document_id in document_ids if document_id in found]

    def list_ids(self, filters: dict[str, Any] | None = None) -> list[str]:
        """Give the ids of the passages that match, without reading the passages."""
        return [hit["_id"] for hit in self._hits(filters, _ID_PAGE, source=False)]

    def list_meta(self, filters: dict[str, Any] | None, fields: list[str]) -> list[dict[str, Any]]:
        """Give some meta fields of the passages that match, without reading the passages."""
        return [hit.get("_source") or {} for hit in self._hits(filters, _ID_PAGE, source={"includes": fields})]

    def existing_ids(self, document_ids: list[str]) -> set[str]:
        """Tell which passages are stored, also those written a moment ago."""
        self._ensure_initialized()
        found: set[str] = set()
        with self.server.reporting():
            for start in range(0, len(document_ids), _ID_PAGE):
                ids = document_ids[start : start + _ID_PAGE]
                answer = self.client.mget(index=self.index, ids=ids, source=False)
                found |= {entry["_id"] for entry in answer["docs"] if entry.get("found")}
        return found

    def count_documents(self) -> int:
        """Count the passages."""
        with self.server.reporting():
            return int(super().count_documents())

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """Count the passages that match."""
        checked = servable(filters, self.schema.keyword_fields)
        with self.server.reporting():
            return int(super().count_documents_by_filter(checked) if checked else super().count_documents())

    def delete_by_filter(self, filters: dict[str, Any]) -> int:  # type: ignore[override]  # as above
        """Delete the passages that match."""
        if not filters:
            raise ValueError("`filters` must name what to delete, got none.")
        checked = servable(filters, self.schema.keyword_fields)
        with self.server.reporting():
            return int(super().delete_by_filter(checked, refresh=True))

    async def write_documents_async(  # type: ignore[override]  # as above
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """See `write_documents`."""
        return await asyncio.to_thread(self.write_documents, documents, policy)

    async def filter_documents_async(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """See `filter_documents`."""
        return await asyncio.to_thread(self.filter_documents, filters)

    def _hits(
        self, filters: dict[str, Any] | None, page: int, *, source: bool | dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        checked = servable(filters, self.schema.keyword_fields)
        query = {"bool": {"filter": _normalize_filters(checked)}} if checked else {"match_all": {}}
        self._ensure_initialized()
        after: list[Any] | None = None
        while True:
            # Ids never change, so that going on after the last one neither repeats nor misses what stays.
            with self.server.reporting():
                answer = self.client.search(
                    index=self.index,
                    query=query,
                    size=page,
                    sort=[{"id": "asc"}],
                    search_after=after,
                    source=source,
                    track_total_hits=False,
                )
            hits = answer["hits"]["hits"]
            yield from hits
            if len(hits) < page:
                return
            after = hits[-1]["sort"]

    def _bulk(self, actions: Iterator[dict[str, Any]], verb: str, count: int) -> int:
        refused: list[dict[str, Any]] = []
        with self.server.reporting():
            client = self.client.options(request_timeout=max(self.timeout, _BULK_SECONDS))
            for done, item in helpers.streaming_bulk(
                client, actions, index=self.index, raise_on_error=False, max_retries=3, initial_backoff=1
            ):
                entry = next(iter(item.values()))
                if not done and not (verb == "delete" and entry.get("status") == 404):
                    refused.append(entry)
            client.indices.refresh(index=self.index)
        if refused:
            named = "; ".join(
                f"`{entry['_id']}` (status {entry['status']}: {_cause(entry)})" for entry in refused[:_NAMED]
            )
            more = f" and {len(refused) - _NAMED:,} more" if len(refused) > _NAMED else ""
            raise StoreError(
                f"{self.server.place} refused to {verb} {len(refused):,} of {count:,} passages in {self.index}: "
                f"{named}{more}. The others are done. See to the cause and run the same again; only what is missing "
                "is repeated."
            )
        return count


def _cause(entry: dict[str, Any]) -> str:
    error = entry.get("error")
    if isinstance(error, dict):
        return f"{error.get('type')}: {error.get('reason')}"
    return str(error or "no reason given")
