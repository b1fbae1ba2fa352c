"""Haystack's Elasticsearch document store, for passages."""

import json
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from haystack.dataclasses import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.document_stores.elasticsearch import ElasticsearchDocumentStore
from haystack_integrations.document_stores.elasticsearch.document_store import BM25_SCALING_FACTOR

from shiguan.errors import StoreError
from shiguan.haystack_compat import ElasticsearchHooks, elasticsearch_filter
from shiguan.stores import HIT_FIELDS, PipelineStore
from shiguan.stores.cluster.elasticsearch_index import ElasticsearchIndex, cause
from shiguan.stores.cluster.schema import passage_fields, servable, word_settings
from shiguan.tenants import TenantGuarded
from shiguan.text.passages import SharedDocument

_PAGE = 1_000  # passages in one answer
_ID_PAGE = 10_000  # ids in one answer, the most that an index gives by default
# Haystack writes meta beside these fields of a document, so that a meta key of the same name would replace one.
_DOCUMENT_KEYS = frozenset(
    ("id", "content", "meta", "score", "blob", "embedding", "sparse_embedding", "dataframe", "content_type")
)


class ElasticsearchStore(
    TenantGuarded, ElasticsearchIndex, ElasticsearchHooks, PipelineStore, ElasticsearchDocumentStore
):
    """
    Keeps passages, by their words or by id alone, in one index of an Elasticsearch cluster.

    Haystack's store and its `ElasticsearchBM25Retriever` do the retrieval; this adds what they lack. The address and
    the key come from the environment. The index is made by `set_up` (`shiguan stores init`) and never by a write,
    because an index made by a write would lack its analysis. Words match exactly, and filters are checked. Reading goes
    past 10,000 passages, and passages by id come in one request. A write names each passage that the server refused.
    Every error names the server and the next step.

    Scores are BM25 (from 0, higher is better). Hits have no content, and only the meta that the fetcher of parents
    needs. Embeddings are not sent: vectors are in Qdrant.
    """

    def __init__(
        self,
        index: str,
        *,
        searched: bool = True,
        bm25_fields: list[str] | None = None,
        keyword_fields: list[str] | None = None,
        shards: int = 1,
        settings: dict[str, Any] | None = None,
    ) -> None:
        """
        Describe the index; nothing is opened yet.

        :param index: Its name.
        :param searched: Whether passages are found by their words; if not, by id and filters alone.
        :param bm25_fields: Meta fields whose words are searched with the content, such as `title`.
        :param keyword_fields: More meta fields that filters may name.
        :param shards: In how many parts the index is made.
        :param settings: Other settings that the index is made with, such as `refresh_interval`: see docs/operating.md.
        :raises ValueError: If a parameter is out of its range.
        """
        if not index or index != index.lower() or index[0] in "-_+." or not set(index).isdisjoint(' "*\\<|,>/?#:'):
            raise ValueError(f"`index` must be a lower-case Elasticsearch index name, got {index!r}.")
        if shards < 1:
            raise ValueError(f"`shards` must be positive, got {shards}.")
        self.searched = searched
        self.bm25_fields = bm25_fields
        self.keyword_fields = keyword_fields
        self.shards = shards
        self.settings = settings
        fields = passage_fields(searched=searched, keyword_fields=keyword_fields or (), bm25_fields=bm25_fields or ())
        self._on(index, fields)
        self._languages = lru_cache(1_000)(lambda filters, _: self._count_by("language", json.loads(filters)))
        super().__init__(index=index, api_key=None, api_key_id=None)

    def _words(self) -> dict[str, Any]:
        return word_settings(self.bm25_fields or ()) if self.searched else {}

    def write_documents(  # type: ignore[override]  # the time of the refresh is not the caller's choice
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Store passages; when it returns, they are found."""
        for document in documents:
            clashes = _DOCUMENT_KEYS & document.meta.keys()
            if clashes:
                raise StoreError(
                    f"The passage `{document.id}` of {document.meta.get('source', 'an unnamed source')} has meta "
                    f"named {', '.join(sorted(clashes))}, which Elasticsearch keeps for the passage itself. Rename "
                    "these fields in the source and ingest it again."
                )
        if not documents:
            return 0
        with self.server.connected() as client:
            self._check(client)  # it may have been deleted since
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
        return self._write(actions, verb="write")

    def delete_documents(self, document_ids: list[str]) -> None:  # type: ignore[override]  # as above
        """Delete passages; ids that are not stored are ignored."""
        self._delete(document_ids)

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return the passages that match; up to a thousand, such as parents by id, come in one request."""
        return [_passage(hit) for hit in self._hits(filters, _PAGE, source=True)]

    def iter_ids(self, filters: dict[str, Any] | None = None, *, after: str | None = None) -> Iterator[str]:
        """Return the ids of the passages that match, page by page in their order; or those after an id."""
        return (hit["_id"] for hit in self._hits(filters, _ID_PAGE, source=False, after=after))

    def list_meta(self, filters: dict[str, Any] | None, fields: list[str]) -> list[dict[str, Any]]:
        """Return some meta fields of the passages that match, without reading the passages."""
        return [hit.get("_source") or {} for hit in self._hits(filters, _ID_PAGE, source={"includes": fields})]

    def existing_ids(self, document_ids: list[str]) -> set[str]:
        """Return which passages are stored, also those written a moment ago."""
        found: set[str] = set()
        with self.server.connected() as client:
            for start in range(0, len(document_ids), _ID_PAGE):
                ids = document_ids[start : start + _ID_PAGE]
                answer = client.mget(index=self.index, ids=ids, source=False)
                for entry in answer["docs"]:
                    if "error" in entry:
                        raise self.server.refusal("read", [(entry["_id"], cause(entry))], len(ids), self.index)
                    if entry.get("found"):
                        found.add(entry["_id"])
        return found

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        with self.server.connected() as client:
            return int(self.server.whole(client.count(index=self.index, query=self._query(filters)))["count"])

    def count_by_file(self, filters: dict[str, Any] | None = None) -> dict[str, int]:
        """Count the passages of each file."""
        return self._count_by("file_id", filters)

    def _count_by(self, field: str, filters: dict[str, Any] | None) -> dict[str, int]:
        return {bucket["key"]["by"]: bucket["doc_count"] for bucket in self._buckets(filters, field, {})}

    def count_languages(self, filters: dict[str, Any] | None = None) -> dict[str, int]:
        """Count the passages in each language, once a minute for the same filters: every question asks for it."""
        return self._languages(json.dumps(filters, sort_keys=True, default=str), int(time.monotonic() / 60))

    def list_files(self, filters: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return for each file what its passages say, without reading all of them."""
        fields = ["source", "file_id", "tenant_id", "title", "units", "left_out"]
        inside: dict[str, Any] = {
            "records": {"cardinality": {"field": "source_id", "precision_threshold": 40_000}},
            "languages": {"terms": {"field": "language", "size": 100}},
            "one": {"top_hits": {"size": 1, "_source": {"includes": fields}}},
        }
        return [
            {
                **bucket["one"]["hits"]["hits"][0]["_source"],
                "passages": bucket["doc_count"],
                "records": bucket["records"]["value"],
                "languages": {found["key"]: found["doc_count"] for found in bucket["languages"]["buckets"]},
            }
            for bucket in self._buckets(filters, "file_id", inside)
        ]

    def delete_by_filter(self, filters: dict[str, Any]) -> int:  # type: ignore[override]  # as above
        """Delete the passages that match, a page at a time: no request takes long, however many there are."""
        if not filters:
            raise ValueError("`filters` must name what to delete, got none.")
        return self._delete(self.iter_ids(filters))

    def bm25_retrieval(
        self,
        query: str,
        *,
        filters: dict[str, Any] | None = None,
        fuzziness: str = "AUTO",
        top_k: int = 10,
        scale_score: bool = False,
    ) -> list[Document]:
        """Find passages by their words; what Haystack's retriever calls."""
        # It sends AUTO by default, with which 2024 finds 2023.
        exact = "0" if fuzziness == "AUTO" else fuzziness
        if top_k < 1:
            raise ValueError(f"`top_k` must be positive, got {top_k}.")
        checked = servable(filters, self.keyword_fields or ())
        if not query.strip():
            return []
        words = {"query": query, "fuzziness": exact, "type": "most_fields", "operator": "OR"}
        wanted: dict[str, Any] = {"must": [{"multi_match": words}]}
        if checked:
            wanted["filter"] = elasticsearch_filter(checked)
        found = self._search(
            query={"bool": wanted}, size=top_k, source={"includes": ["id", *HIT_FIELDS]}, track_total_hits=False
        )
        documents = [_passage(hit) for hit in found["hits"]["hits"]]
        if not scale_score:
            return documents
        return [replace(one, score=1 / (1 + math.exp(-(one.score or 0.0) / BM25_SCALING_FACTOR))) for one in documents]

    def _query(self, filters: dict[str, Any] | None) -> dict[str, Any]:
        checked = servable(filters, self.keyword_fields or ())
        return {"bool": {"filter": elasticsearch_filter(checked)}} if checked else {"match_all": {}}

    def _search(self, **body: Any) -> Any:
        with self.server.connected() as client:
            return self.server.whole(client.search(index=self.index, allow_partial_search_results=False, **body))

    def _hits(
        self, filters: dict[str, Any] | None, page: int, *, source: bool | dict[str, Any], after: str | None = None
    ) -> Iterator[dict[str, Any]]:
        # Ids never change, so that going on after the last one neither repeats nor misses what stays.
        place = None if after is None else [after]
        return self._entries(self._query(filters), sort=[{"id": "asc"}], page=page, source=source, after=place)

    def _buckets(self, filters: dict[str, Any] | None, field: str, inside: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Return what matches by the values of a field, without reading a passage."""
        after: dict[str, Any] = {}
        while True:
            composite = {"size": _PAGE, "sources": [{"by": {"terms": {"field": field}}}], **after}
            groups = {"groups": {"composite": composite, "aggs": inside}}
            answer = self._search(query=self._query(filters), size=0, aggs=groups, track_total_hits=False)
            found = answer["aggregations"]["groups"]
            yield from found["buckets"]
            if len(found["buckets"]) < _PAGE:
                return
            after = {"after": found["after_key"]}


def _passage(hit: dict[str, Any]) -> Document:
    fields = dict(hit["_source"])
    return SharedDocument(id=fields.pop("id"), content=fields.pop("content", None), meta=fields, score=hit["_score"])
