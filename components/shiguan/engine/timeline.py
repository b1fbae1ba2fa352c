"""Lists what a library says by year: a line for each passage and time, with its place and its converted date."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from haystack import Document

from shiguan.answer.answerability_gate import matched_coverage
from shiguan.engine.library import Library
from shiguan.llm.run import raise_if_cancelled
from shiguan.reading.passage import Passage
from shiguan.reading.question import read_question, years_between
from shiguan.tenants import documents_by_id, during, of_tenant
from shiguan.text.places import place_of
from shiguan.text.times import When, day_number, times_in, western_of

MOST_LINES = 200
SEARCH = {"top_k": 50, "retrieval": "words"}
"""How a question limits the lines: sorted by year, whatever is merely near to it would stand before what it names."""
_AS_MANY = 0.5
"""The share of the words of the passage with most of them that others need: one character of a name is not enough."""
_EVER = (-9999, 9999)
# Times known only to the month or the year are sorted after more exact ones.
_AFTER_DAYS, _AFTER_MONTHS = 10**8, 13


def timeline(
    library: Library,
    *,
    tenant_id: str,
    when: str | None = None,
    sources: list[str] | None = None,
    children: Collection[str] | None = None,
) -> dict[str, Any]:
    """List the earliest 200 dated places and how many there are; docs/dates.md and the route describe a line."""
    first, last = _EVER if when is None else years_between(when)
    named = library.narrowed(sources, None, tenant_id=tenant_id) if sources else None
    filters = of_tenant(tenant_id, during(first, last), *([named] if named else []))
    store = library.stores["children"]
    found: list[tuple[When, dict[str, Any]]] = []
    for row in store.list_meta(filters, ["id", "source_id", "position", "when"]):
        raise_if_cancelled()
        if children is None or row["id"] in children:
            times = [time for entry, time in zip(row["when"], times_in(row), strict=True) if not entry.get("open")]
            found += [(time, row) for time in times if time.first <= last and time.last >= first]
    found.sort(key=_order)
    shown = found[:MOST_LINES]
    texts = documents_by_id(store, {row["id"] for _, row in shown}, tenant_id)
    parents = documents_by_id(
        library.stores["parents"], {child.meta["parent_id"] for child in texts.values()}, tenant_id
    )
    lines = []
    for time, row in shown:
        if (child := texts.get(row["id"])) is None or (parent := parents.get(child.meta["parent_id"])) is None:
            continue  # deleted meanwhile
        start, end = span = (int(child.meta["start"]), int(child.meta["end"]))
        western = western_of(time) if time.calendar == "reign" else None
        dated = {"from": time.first, "to": time.last, "as": time.label, "western": western}
        dated |= {"precision": time.precision, "how": time.how, "text": child.content, "passage": parent.id}
        place = {field: parent.meta.get(field) for field in ("source", "title", "section")}
        page = place_of(parent.meta, parent.content or "", span).get("page")
        lines.append({**dated, "start": start, "end": end, "page": page, **place})
    return {"lines": lines, "count": len(found)}


def _order(found: tuple[When, dict[str, Any]]) -> tuple[Any, ...]:
    """Sort by time, less exact times last, and then by place."""
    time, row = found
    exactly = time.first, time.month or _AFTER_MONTHS, day_number(time) or _AFTER_DAYS
    return *exactly, str(row["source_id"]), row["position"], row["id"]


def matched(question: str, parents: Sequence[Document]) -> set[str]:
    """Return the ids of the children by which a search found passages, if they have enough of the question's words."""
    asked = read_question(question)
    shares = [matched_coverage(asked, passage, passage.language) for passage in map(Passage, parents)]
    least = _AS_MANY * max(shares, default=0.0)
    kept = (parent for parent, share in zip(parents, shares, strict=True) if share >= least)
    return {match["child_id"] for parent in kept for match in parent.meta.get("matches", [])}


def time_words(line: Mapping[str, Any]) -> str:
    """Write the time of a line with its conversion, in brackets where it comes from before the passage."""
    western = line["western"]
    if line["how"] == "carried":
        return f"[{line['as']}]" + (f", {western}" if western else "")
    return f"{line['as']}, {western}" if western else str(line["as"])
