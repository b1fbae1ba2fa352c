"""Reading from the engine: filters, pages, and searches with a stable order."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
from haystack.dataclasses import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from qdrant_edge import (
    CountRequest,
    EdgeShard,
    FacetRequest,
    FieldCondition,
    Filter,
    HasIdCondition,
    HasVectorCondition,
    IdfParams,
    IsEmptyCondition,
    MatchAny,
    MatchValue,
    PayloadSelector,
    QuantizationSearchParams,
    Query,
    QueryRequest,
    RangeFloat,
    ScrollRequest,
    SearchParams,
    SparseVector,
)

from shiguan.errors import RefusedError
from shiguan.stores import HIT_FIELDS
from shiguan.stores.embedded import points
from shiguan.tenants import all_of, check_conditions, tenant_condition, where
from shiguan.text.passages import without_text
from shiguan.text.terms import term_indices

_PAGE = 1000
_LIGHT = PayloadSelector.Include([points.ID, *map(points.meta_path, HIT_FIELDS)])
_OF_FILE = PayloadSelector.Include(
    list(
        map(points.meta_path, ("tenant_id", "source", "source_id", "file_id", "title", "language", "units", "left_out"))
    )
)
_TEXT = PayloadSelector.Include([points.CONTENT])
_LANGUAGE = PayloadSelector.Include([points.meta_path("language")])
_FEW = 20
# Three times as many as asked for are found by four bits of each number and compared by all of them.
_BY_QUANTIZED = SearchParams(quantization=QuantizationSearchParams(rescore=True, oversampling=3.0))
# So many more are asked for at first: one list of words in seven ends among equal scores, none of 358 among eleven.
_SPARE = 10
# Among more documents than this with the same score, the engine chooses which ones come first.
_MOST_TIES = 5000


def existing_ids(edge: EdgeShard, document_ids: list[str]) -> set[str]:
    """Find which documents are stored."""
    by_point = {points.point_id(document_id): document_id for document_id in document_ids}
    records = edge.retrieve(list(by_point), with_payload=False, with_vector=False)
    return {by_point[str(record.id)] for record in records}


def without_duplicates(edge: EdgeShard, documents: list[Document], policy: DuplicatePolicy) -> list[Document]:
    """Choose the documents that a policy lets be written."""
    stored = existing_ids(edge, [document.id for document in documents])
    fresh: dict[str, Document] = {}
    for document in documents:
        if document.id not in stored and document.id not in fresh:
            fresh[document.id] = document
        elif policy != DuplicatePolicy.SKIP:
            raise DuplicateDocumentError(
                f"The document `{document.id}` is stored already or comes twice; none of {len(documents)} was written. "
                "Use the policy OVERWRITE to replace it or SKIP to keep it."
            )
    return list(fresh.values())


def count_vectors(edge: EdgeShard) -> int:
    """Count the documents that have a vector."""
    return int(edge.count(CountRequest(exact=True, filter=Filter(must=[HasVectorCondition(points.DENSE)]))))


def without_vector(filters: dict[str, Any] | None) -> Filter:
    """Make a filter of the engine for documents that match and have no vector."""
    condition = translate(filters)
    return Filter(must=[condition] if condition else None, must_not=[HasVectorCondition(points.DENSE)])


def count_values(edge: EdgeShard, field: str, condition: Filter | None) -> dict[str, int]:
    """Count the documents by a meta field that is indexed."""
    request = FacetRequest(points.meta_path(field), limit=10_000_000, exact=True, filter=condition)
    return {str(hit.value): hit.count for hit in edge.facet(request).hits}


def list_files(edge: EdgeShard, filters: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Describe each file by one of its documents and by counts; by all of them where files have few documents each."""
    passages = count_values(edge, "file_id", translate(filters))
    if len(passages) * _FEW > sum(passages.values()):
        return _grouped([record.payload.get(points.META) or {} for record in pages(edge, translate(filters), _OF_FILE)])

    def only(field: str, value: str) -> Filter | None:
        return translate(all_of(filters, where(f"meta.{field}", "==", value)))

    languages = count_values(edge, "language", translate(filters))
    files_in = dict.fromkeys(languages, passages)
    if len(languages) > 1:  # one book may have several
        files_in = {code: count_values(edge, "file_id", only("language", code)) for code in languages}
    files = []
    for file, count in passages.items():
        condition = only("file_id", file)
        records, _ = edge.scroll(ScrollRequest(limit=1, filter=condition, with_payload=_OF_FILE))
        meta = (records[0].payload or {})[points.META]
        # In a file of records each is a source; else the file is the source.
        sources = 1 if meta["source_id"] == file else len(count_values(edge, "source_id", condition))
        own = {code: within[file] for code, within in files_in.items() if file in within}
        files.append(meta | {"passages": count, "records": sources, "languages": own})
    return files


def _grouped(metas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_file: dict[str, list[dict[str, Any]]] = {}
    for meta in metas:
        by_file.setdefault(meta.get("file_id", ""), []).append(meta)
    return [
        {
            **found[0],
            "passages": len(found),
            "records": len({meta["source_id"] for meta in found}),
            "languages": Counter(meta.get("language", "und") for meta in found),
        }
        for found in by_file.values()
    ]


def search_terms(
    edge: EdgeShard, query: str, filters: dict[str, Any] | None, *, top_k: int, also: Mapping[str, float] | None = None
) -> list[Document]:
    """Find documents by words; see `QdrantEdgeDocumentStore.bm25_retrieval`."""
    vector = points.bm25_query_vector(query, also)
    if vector is None:
        translate(filters)  # a malformed filter is an error whatever the question
        return []
    # The rarity of a word counts only the tenant's own documents: a score reveals nothing about another's. Left to
    # itself the engine would also count deleted ones.
    params = SearchParams(idf=IdfParams(corpus=translate(tenant_condition(filters)) or Filter()))
    return _search(edge, Query.Nearest(vector, using=points.BM25), translate(filters), params, top_k=top_k)


def known_terms(edge: EdgeShard, terms: Iterable[str], language: str, filters: dict[str, Any] | None) -> set[str]:
    """Find the terms that any document in a language has."""
    anywhere = translate(filters)
    there = translate(all_of(filters, where("meta.language", "==", language)))
    best = partial(QueryRequest, limit=1, with_payload=_LANGUAGE)
    known, asked = set[str](), list(terms)
    for term, number in zip(asked, term_indices(asked), strict=True):
        query = Query.Nearest(SparseVector([number], [1.0]), using=points.BM25)
        found: list[Any] = edge.query(best(query=query, filter=anywhere))
        if found and (found[0].payload.get(points.META) or {}).get("language") != language:
            # The filter by language takes twenty times as long, and mostly a word is of one language.
            found = edge.query(best(query=query, filter=there))
        if found:
            known.add(term)
    return known


def texts_with(edge: EdgeShard, terms: Iterable[str], filters: dict[str, Any] | None) -> list[str]:
    """Read the texts of documents that have any of some terms, at most twenty."""
    numbers = list(set(term_indices(terms)))
    query = Query.Nearest(SparseVector(numbers, [1.0] * len(numbers)), using=points.BM25)
    request = QueryRequest(query=query, limit=_FEW, filter=translate(filters), with_payload=_TEXT)
    hits: list[Any] = edge.query(request)
    return [hit.payload.get(points.CONTENT) or "" for hit in hits]


def search_vectors(
    edge: EdgeShard, vector: list[float], filters: dict[str, Any] | None, *, quantized: bool, top_k: int
) -> list[Document]:
    """Find documents by an embedding; see `QdrantEdgeDocumentStore.embedding_retrieval`."""
    params = _BY_QUANTIZED if quantized else SearchParams(exact=True)
    return _search(edge, Query.Nearest(vector, using=points.DENSE), translate(filters), params, top_k=top_k)


def _search(
    edge: EdgeShard, query: Query, condition: Filter | None, params: SearchParams | None, *, top_k: int
) -> list[Document]:
    if top_k < 1:
        raise ValueError(f"`top_k` must be positive, got {top_k}")
    # More than asked for show whether the last one has equals; then all of them are needed to choose by id.
    limit = top_k + _SPARE
    while True:
        request = QueryRequest(query=query, limit=limit, filter=condition, params=params, with_payload=_LIGHT)
        hits: list[Any] = edge.query(request)
        tied = len(hits) == limit and hits[-1].score == hits[top_k - 1].score
        if not tied or limit >= top_k + _MOST_TIES:
            break
        limit = min(4 * limit, top_k + _MOST_TIES)
    rows = [(hit.score, hit.payload) for hit in hits]
    rows.sort(key=lambda row: (-row[0], row[1][points.ID]))
    return without_text((one[points.ID], score, one.get(points.META) or {}) for score, one in rows[:top_k])


def pages(edge: EdgeShard, condition: Filter | None, with_payload: Any, with_vector: Any = False) -> Iterator[Any]:
    """Read the records that match, page by page."""
    offset = None
    while True:
        records, offset = page(edge, offset, condition, with_payload, with_vector)
        yield from records
        if offset is None:
            return


def page(
    edge: EdgeShard, offset: Any, condition: Filter | None, with_payload: Any, with_vector: Any = False
) -> tuple[list[Any], Any]:
    """Read the page at an offset; also return the offset of the next page, or None."""
    found: tuple[list[Any], Any] = edge.scroll(
        ScrollRequest(offset=offset, limit=_PAGE, filter=condition, with_payload=with_payload, with_vector=with_vector)
    )
    return found


# Up to here a whole number and its double are the same; beyond it the engine would compare rounded values.
_EXACT_NUMBERS = 2**53
_RANGES = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
_DOCUMENT_FIELDS = frozenset(field.name for field in fields(Document)) - {"id"}
_NOTHING = Filter(must=[HasIdCondition(set())])


def translate(filters: dict[str, Any] | None) -> Filter | None:
    """Translate a filter as Haystack means it, but what cannot be compared does not match, and any of a list may."""
    if not filters:
        return None
    try:
        check_conditions(filters)
    except RefusedError as error:
        raise FilterError(str(error)) from error
    found = _condition(filters)
    return found if isinstance(found, Filter) else Filter(must=[found])


def _condition(condition: Any) -> Any:
    # Every filter inside another one is asked for each vector that is compared, so none stands there without need.
    if "field" in condition:
        return _comparison(condition)
    operator = condition["operator"]
    parts: list[Any] = [_condition(part) for part in condition["conditions"]]
    if operator == "OR":
        return Filter(should=parts) if parts else _NOTHING
    if operator == "AND":
        return parts[0] if len(parts) == 1 else Filter(must=parts)
    return Filter(must_not=[Filter(must=parts)])


def _comparison(condition: dict[str, Any]) -> Any:
    operator, value, field = condition["operator"], condition["value"], _field(condition["field"])
    if operator in _RANGES:
        return _range(field, operator, value)
    equal = [_equal(field, value)] if operator in ("==", "!=") else _one_of(field, value)
    if operator in ("!=", "not in"):
        return Filter(must_not=equal)
    return equal[0] if len(equal) == 1 else Filter(should=equal) if equal else _NOTHING


def _field(name: str) -> str:
    """Return the payload path of a field, or `id`."""
    if name == "id":
        return name
    root, _, rest = name.partition(".")
    if root in _DOCUMENT_FIELDS and not (root == "meta" and rest):
        raise FilterError(f"Filters look at `id` and at `meta`, got `{name}`. Write `meta.…` for a meta field.")
    field = rest if root == "meta" else name
    if root not in ("meta", name) or '"' in field or "\\" in field:
        raise FilterError(f"A document has no field that a filter could call `{name}`. Write `meta.NAME`.")
    return points.meta_path(field)


def _equal(field: str, value: Any) -> Any:
    if field == "id":
        return HasIdCondition({points.point_id(value)} if isinstance(value, str) else set())
    if value is None:
        return IsEmptyCondition(field)
    if isinstance(value, str):
        return FieldCondition(field, match=MatchValue(value))
    if isinstance(value, bool):
        truth: Any = np.bool_(value)  # Python's own would become 0 or 1
        return FieldCondition(field, match=MatchValue(truth))
    number = _number(value, "==")
    return FieldCondition(field, range=RangeFloat(gte=number, lte=number))


def _one_of(field: str, values: list[Any]) -> list[Any]:
    texts = [value for value in values if isinstance(value, str)]
    found = [_equal(field, value) for value in values if not isinstance(value, str)]
    if texts and field == "id":
        found.append(HasIdCondition({points.point_id(text) for text in texts}))
    elif texts:
        found.append(FieldCondition(field, match=MatchAny(texts)))
    return found


def _range(field: str, operator: str, value: Any) -> Filter:
    if value is None:
        return _NOTHING
    bound = RangeFloat(**{_RANGES[operator]: _number(value, operator)})
    return _NOTHING if field == "id" else Filter(must=[FieldCondition(field, range=bound)])


def _number(value: Any, operator: str) -> float:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain or not math.isfinite(value) or abs(value) >= _EXACT_NUMBERS:
        raise FilterError(
            f"'{operator}' cannot compare with `{type(value).__name__}` {value!r}. Ranges take numbers below 2**53, "
            "and so does equality, beside texts, booleans and null."
        )
    return float(value)
