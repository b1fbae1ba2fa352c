"""Completes an answer for clients: its sources with their text, and a list of references."""

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from haystack import Document

from shiguan.text.places import page_words
from shiguan.text.terminal import one_line

ReferenceFormat = Literal["plain", "markdown", "html"]

EXCERPT = 200
"""How many characters of each passage an answer carries unless the question says otherwise."""

# Characters that begin a note, a link, an image or an element where a client shows the text as Markdown.
_NO_MARKUP = str.maketrans("[]【】［］〔〕<>`\\", "()()()()‹›'/", "\u00ad\u200b\u2060\ufeff")


def with_sources(
    answer: Mapping[str, Any],
    documents: Sequence[Document],
    *,
    characters: int | None = None,
    form: ReferenceFormat | None = None,
    references: bool | None = None,
) -> dict[str, Any]:
    """Add what clients expect, such as `sources` and `citation_num`; `documents` are those of the answer."""
    longest = EXCERPT if characters is None else characters
    read = [
        {**entry, "content": (document.content or "")[:longest]}
        for entry, document in zip(answer["documents"], documents, strict=True)
    ]
    cited = {citation["parent_id"]: citation["number"] for citation in answer["citations"]}
    written = reference_list(answer["citations"], form or "plain")
    metadata = answer["metadata"]
    return {
        **answer,
        "answer": f"{answer['answer']}\n\n{written}" if references and written else answer["answer"],
        "rewritten_query": metadata["queries"][0],
        "retrieved_count": metadata["retrieved"],
        "generation_time": round(metadata["timings_ms"]["total"] / 1000, 3),
        "citations": [{**c, "citation_num": c["number"], "source_id": c["parent_id"]} for c in answer["citations"]],
        "formatted_citations": written,
        "documents": read,
        "sources": [
            {
                **{name: entry[name] for name in ("id", "content", "score", "source")},
                "title": entry["title"] or entry["source"],
                "citation_id": f"[{cited[entry['id']]}]",
            }
            for entry in read
            if entry["id"] in cited
        ],
    }


def reference_list(citations: Sequence[Mapping[str, Any]], form: ReferenceFormat = "plain") -> str:
    """List the sources that an answer cites, one per line, by number; empty where it cites none."""
    places = {citation["number"]: citation for citation in reversed(citations)}
    lines = [_reference(number, places[number], form) for number in sorted(places)]
    return "\n".join(['<ol class="references">', *lines, "</ol>"] if form == "html" and lines else lines)


def _reference(number: int, citation: Mapping[str, Any], form: ReferenceFormat) -> str:
    source, title = _name(citation["source"], form), _name(citation["title"] or citation["source"], form)
    headings = [_name(heading, form) for heading in citation["section"]]
    place = " > ".join(part for part in (title, *headings[headings[:1] == [title] :]) if part)
    place = ", ".join(filter(None, (place, _name(page_words(citation), form))))
    file = f" ({source})" if source and source != title else ""
    if form == "html":
        return f'<li value="{number}">{html.escape(place + file, quote=False)}</li>'
    return f"{'- ' if form == 'markdown' else ''}[{number}] {place}{file}"


def _name(text: str | None, form: ReferenceFormat) -> str:
    """Write a name from a document in one line without markup, so that it cannot pose as a note or a link."""
    line = one_line(html.unescape(text or ""))
    if form == "html":
        return line
    line = line.translate(_NO_MARKUP)
    return re.sub(r"[*_]", r"\\\g<0>", line) if form == "markdown" else line
