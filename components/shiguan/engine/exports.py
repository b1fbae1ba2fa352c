"""Exports an answer as notes that can be cited: bibliography entries, texts with footnotes, annotations of an EPUB."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from uuid import NAMESPACE_URL, uuid5

import yaml

from shiguan import __version__
from shiguan.answer.quotations import QUOTING
from shiguan.engine.docx_notes import docx_with_footnotes
from shiguan.engine.receipts import CitedSpan, Receipt
from shiguan.errors import RefusedError
from shiguan.tenants import documents_by_id
from shiguan.text.places import page_words
from shiguan.text.works import PEOPLE, WORK_FIELDS, in_markdown, isbn_of, plain_line, work_of

Form = Literal["csl", "bibtex", "ris", "markdown", "docx", "annotations"]
FORMS: dict[Form, tuple[str, str]] = {
    "csl": ("application/vnd.citationstyles.csl+json", "csl.json"),
    "bibtex": ("application/x-bibtex", "bib"),
    "ris": ("application/x-research-info-systems", "ris"),
    "markdown": ("text/markdown; charset=utf-8", "md"),
    "docx": ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    "annotations": ("application/ld+json", "annotations.json"),
}
"""The media type and the file extension of each form."""

_LARGEST = 1024 * 1024
_LONGEST_QUOTE = 100_000
_DOI = re.compile(r"(?i)(?:doi:|https?://(?:dx\.)?doi\.org/)?(10\.\d{4,9}/\S+)")


@dataclass
class Entry:
    """A source that an answer cites: the work, and each quotation from it with its mark and its place."""

    key: str
    work: dict[str, Any]
    source: str = ""
    quotes: list[tuple[int, str, str]] = field(default_factory=list)

    def fields(self, receipt: str) -> dict[str, list[str]]:
        """Return the fields of a bibliography; `note` has what no other one can hold."""
        found: dict[str, list[str]] = {"ISBN": [], "DOI": [], "URL": [], "other": []}
        for text in self.work.get("identifier", ()):
            doi = _DOI.fullmatch(text)
            kind = "ISBN" if isbn_of(text) else "DOI" if doi else "URL" if re.match("https?://", text) else "other"
            alone = kind not in ("DOI", "URL") or not found[kind]
            found[kind if alone else "other"].append(doi[1] if doi else text)
        quotes = [f"[{number}] {place}: “{quote}”" for number, place, quote in self.quotes]
        identifiers = [f"Identifier: {text}" for text in found.pop("other")]
        work = {name: self.work.get(name, []) for name in WORK_FIELDS if name != "identifier"}
        fields = {name: [value] if isinstance(value, str) else value for name, value in (work | found).items()}
        fields["note"] = [*quotes, *identifiers, _signed(receipt)]
        return {name: values for name, values in fields.items() if values}

    def reference(self, form: Callable[[str], str] = str, title: str = "{}") -> str:
        """Write the reference to the work in one line, as in a footnote."""
        work = {name: ", ".join(value) if isinstance(value, list) else value for name, value in self.work.items()}
        words = {"editor": "ed. by {}", "translator": "trans. by {}", "title": title}
        return ", ".join(words.get(name, "{}").format(form(work[name])) for name in _ORDER if name in work)


_ORDER = ("author", *(name for name in WORK_FIELDS if name != "author"))


def export_answer(receipt: Receipt, parents: Any, form: str, *, own: Mapping[str, Any] | None = None) -> bytes:
    """Write the answer of a receipt with all that it cites; `own` is the user's data of sources, which goes first."""
    if form not in FORMS:
        raise RefusedError(f"Unknown export format `{plain_line(form)}`. Choose one of {', '.join(FORMS)}.")
    entries = cited_entries(receipt, parents, own or {})
    if form == "docx":
        notes = _footnotes(receipt, entries)
        return docx_with_footnotes(_line(receipt.answer.query), _paragraphs(receipt), notes, _signed(receipt.id))
    writers = {"csl": _csl, "bibtex": _bibtex, "ris": _ris, "markdown": _markdown, "annotations": _annotations}
    return writers[form](receipt, entries).encode("utf-8", "replace")


def cited_entries(receipt: Receipt, parents: Any, own: Mapping[str, Any]) -> list[Entry]:
    """Collect the works that an answer cites, in the order of its marks, each once."""
    citations = sorted(receipt.answer.citations, key=lambda citation: (citation.number, citation.start))
    found = documents_by_id(parents, {citation.parent_id for citation in citations}, receipt.tenant_id)
    metas = {name: parent.meta for name, parent in found.items()}
    # A passage that was corrected since is of the same work; in a file of records it may be of another.
    works = [meta for meta in metas.values() if meta.get("file_id") == meta.get("source_id")]
    whole = {(meta.get("source"), meta.get("title")): meta for meta in works}
    entries: dict[tuple[str, str], Entry] = {}
    for citation in citations:
        title = citation.other("title", str)
        meta = metas.get(citation.parent_id) or whole.get((citation.source, title), {})
        known = {"title": title or citation.source, **meta, **meta.get("work", {})}
        work = work_of({**known, **own.get(citation.source, {})})
        key = citation.source, str(meta.get("source_id") or title)
        slug = re.sub("[^a-z0-9]+", "-", Path(citation.source).stem.lower()).strip("-")[:40] or "source"
        entry = entries.setdefault(key, Entry(f"{slug}-{len(entries) + 1}", work, citation.source))
        quote = (citation.number, _place(citation), _line(citation.quote))
        entry.quotes += [quote] if quote not in entry.quotes else []
    return list(entries.values())


def read_sources(path: Path, tenant_id: str) -> dict[str, dict[str, Any]]:
    """Read the user's own data of a tenant's sources (`sources.yml`); empty where there is no such file."""
    wrong = f"Expected, below the tenant and the source's name, {', '.join(WORK_FIELDS)}. See docs/notes.md."
    try:
        if not path.is_file():
            return {}
        if path.stat().st_size > _LARGEST:
            raise RefusedError(f"{path} is larger than 1 MiB. {wrong}")
        tenants = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        # YAML reads a name such as 2024 as a number.
        named = {str(name): own for name, own in tenants.items()} if isinstance(tenants, dict) else None
        sources = None if named is None else named.get(tenant_id) or {}
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise RefusedError(f"{path} cannot be read as YAML ({type(error).__name__}). {wrong}") from error
    if not isinstance(sources, dict):
        raise RefusedError(f"{path} has no sources by their names below `{plain_line(tenant_id)}`. {wrong}")
    for name, work in sources.items():
        unknown = sorted(map(str, work.keys() - set(WORK_FIELDS))) if isinstance(work, dict) else ["no fields"]
        if unknown:
            raise RefusedError(f"{path} says of `{plain_line(str(name))}`: {plain_line(', '.join(unknown))}. {wrong}")
    return {str(name): work for name, work in sources.items()}


def _line(text: str) -> str:
    return plain_line(text, _LONGEST_QUOTE)


def _place(citation: CitedSpan) -> str:
    data = citation.model_dump()
    number = page_words(data) or (f"para. {data['paragraph']}" if data.get("paragraph") else "")
    page = (citation.other("anchor", dict) or {}).get("page")
    repeated = citation.section[:1] == [data.get("title")]
    parts = [*citation.section[repeated:], number or (f"p. {page}" if page else "")]
    return ", ".join(filter(None, map(plain_line, parts))) or "(no place)"


def _signed(receipt: str) -> str:
    return f"Shiguan receipt: {receipt}"


def _csl(receipt: Receipt, entries: list[Entry]) -> str:
    items = []
    for entry in entries:
        item: dict[str, Any] = {"id": entry.key, "type": "book", "title": ""}
        for name, values in entry.fields(receipt.id).items():
            if name in PEOPLE:
                item[name] = [_csl_name(person) for person in values]
            elif name == "year":
                item["issued"] = {"date-parts": [[int(values[0])]]}
            else:
                item[name] = ("\n" if name == "note" else " ").join(values)
        items.append(item)
    return json.dumps(items, ensure_ascii=False, indent=2) + "\n"


def _csl_name(name: str) -> dict[str, str]:
    family, comma, given = name.partition(", ")
    return {"family": family, "given": given} if comma and given and "," not in given else {"literal": name}


# BibTeX counts every brace, even an escaped one.
_SIGNS = {
    "\\": "textbackslash",
    "^": "textasciicircum",
    "~": "textasciitilde",
    "{": "textbraceleft",
    "}": "textbraceright",
}
_LATEX = str.maketrans(
    {char: f"\\{char}" for char in "%&$#_"} | {char: f"\\{sign}{{}}" for char, sign in _SIGNS.items()}
)


def _bibtex(receipt: Receipt, entries: list[Entry]) -> str:
    def person(name: str, text: str) -> str:
        # BibTeX would split a name with `and` or commas into several people.
        return f"{{{text}}}" if re.search(r"\band\b", name) or name.count(",") > 1 else text

    written = []
    for entry in entries:
        lines = []
        for name, values in entry.fields(receipt.id).items():
            texts = [value.translate(_LATEX) for value in values]
            if name in PEOPLE:
                texts = list(map(person, values, texts))
            between = " and " if name in PEOPLE else "\n\n" if name == "note" else " "
            lines.append(f"  {'annote' if name == 'note' else name.lower()} = {{{between.join(texts)}}}")
        written.append("@book{" + ",\n".join([entry.key, *lines]) + "\n}\n")
    return "\n".join(written)


# As Zotero reads the tags of a book.
_RIS = {"title": "TI", "author": "AU", "editor": "A3", "translator": "A4", "edition": "ET", "year": "PY"}
_RIS |= {"publisher": "PB", "ISBN": "SN", "DOI": "DO", "URL": "UR", "note": "N1"}


def _ris(receipt: Receipt, entries: list[Entry]) -> str:
    lines: list[tuple[str, str]] = []
    for entry in entries:
        fields = entry.fields(receipt.id).items()
        lines += [("TY", "BOOK"), *((_RIS[name], value) for name, values in fields for value in values), ("ER", "")]
    return "".join(f"{tag}  - {text}\r\n" for tag, text in lines)


def _footnotes(
    receipt: Receipt, entries: list[Entry], form: Callable[[str], str] = str, title: str = "{}"
) -> dict[int, str]:
    """Write the footnote of each mark: the work, the places, and their words where the answer does not quote them."""
    words = "" if receipt.answer.status in QUOTING else ": “{}”"
    notes: dict[int, str] = {}
    for entry in entries:
        for number in dict.fromkeys(number for number, _, _ in entry.quotes):
            own = ((place, quote) for at, place, quote in entry.quotes if at == number)
            quotes = dict.fromkeys(form(place) + words.format(form(quote)) for place, quote in own)
            notes[number] = f"{entry.reference(form, title)}, {'; '.join(quotes)}"
    return dict(sorted(notes.items()))


def _paragraphs(receipt: Receipt) -> list[tuple[str, int | None]]:
    """Return the paragraphs of an answer: of a quotation the lines and its mark; any other has its marks in it."""
    if receipt.answer.status in QUOTING:
        cited = sorted(receipt.answer.citations, key=lambda citation: (citation.number, citation.start))
        quotes = (("\n".join(filter(None, map(_line, one.quote.split("\n")))), one.number) for one in cited)
        return list(dict.fromkeys(quotes))
    parts = re.split(r"\n\s*\n", receipt.answer.other("answer", str) or "")
    return [(line, None) for part in parts if (line := _line(part))]


# What begins a list or underlines a heading at the start of a line.
_BEGINS = re.compile(r"^(\d{0,9})([.)+=-])")
_ESCAPED_MARK = re.compile(r"\\\[(\d{1,9})\\\]")


def _markdown(receipt: Receipt, entries: list[Entry]) -> str:
    notes = _footnotes(receipt, entries, in_markdown, "*{}*")

    def mark(found: re.Match[str]) -> str:
        return f"[^{found[1]}]" if int(found[1]) in notes else found[0]

    # The brackets of a mark are escaped with the text around it.
    paragraphs = []
    for text, number in _paragraphs(receipt):
        lines = map(in_markdown, text.split("\n"))
        if number is None:
            paragraphs += [_ESCAPED_MARK.sub(mark, line) for line in lines]
        else:
            paragraphs.append("> " + "\\\n> ".join(_BEGINS.sub(r"\1\\\2", line) for line in lines) + f"[^{number}]")
    feet = [f"[^{number}]: {note}" for number, note in notes.items()]
    return (
        "\n\n".join([f"# {in_markdown(_line(receipt.answer.query))}", *paragraphs, *feet, _signed(receipt.id)]) + "\n"
    )


_CONTEXT = "https://www.w3.org/ns/epub-anno.jsonld"
_CFI = "http://www.idpf.org/epub/linking/cfi/epub-cfi.html"
_SOFTWARE = {"id": "urn:x-shiguan", "type": "Software", "name": "Shiguan"}


def _annotations(receipt: Receipt, entries: list[Entry]) -> str:
    """Write EPUB Annotations 1.0 (W3C working draft): a set for each EPUB, a list where there are several."""
    works: dict[str, dict[str, Any]] = {}
    for entry in entries:
        works.setdefault(entry.source, entry.work)
    sets = [found for source, work in works.items() if (found := _annotation_set(receipt, source, work))["items"]]
    if not sets:
        raise RefusedError(
            "The answer cites no place in an EPUB, so nothing can be marked in one. Choose another form."
        )
    return json.dumps(sets[0] if len(sets) == 1 else sets, ensure_ascii=False, indent=2) + "\n"


def _annotation_set(receipt: Receipt, source: str, work: dict[str, Any]) -> dict[str, Any]:
    cited = [citation for citation in receipt.answer.citations if citation.source == source and _href(citation)]
    about = {
        "title": work.get("title") or plain_line(source),
        "publisher": work.get("publisher"),
        "date": work.get("year"),
        "creator": work.get("author"),
        "identifier": [f"urn:isbn:{name}" if isbn_of(name) else name for name in work.get("identifier", ())],
    }
    return {
        "@context": _CONTEXT,
        "id": _urn(receipt, source),
        "type": "AnnotationSet",
        "generator": {**_SOFTWARE, "name": f"Shiguan {__version__}"},
        "generated": receipt.written,
        "title": plain_line(receipt.answer.query),
        "about": {
            "dc:format": "application/epub+zip",
            **{f"dc:{name}": value for name, value in about.items() if value},
        },
        "items": [_annotation(receipt, citation, f"{source} {place}") for place, citation in enumerate(cited)],
    }


def _annotation(receipt: Receipt, citation: CitedSpan, name: str) -> dict[str, Any]:
    quotation = citation.other("selector", dict) or {}
    around = {side: str(quotation.get(side) or "") for side in ("prefix", "suffix")}
    selectors = [{"type": "TextQuoteSelector", "exact": citation.quote, **around}]
    if (cfi := citation.other("cfi", str)) is not None:
        selectors.insert(0, {"type": "FragmentSelector", "conformsTo": _CFI, "value": cfi})
    lines = [receipt.answer.query]
    claim, answer = citation.other("claim", dict) or {}, receipt.answer.other("answer", str) or ""
    start, end = claim.get("start"), claim.get("end")
    if receipt.answer.status == "answered" and isinstance(start, int) and isinstance(end, int):
        lines.append(answer[start:end])
    comment = "\n".join([*(plain_line(line, 10_000) for line in lines), _signed(receipt.id)])
    return {
        "id": _urn(receipt, name),
        "type": "Annotation",
        "motivation": "highlighting",
        "created": receipt.written,
        "creator": _SOFTWARE,
        "target": {"source": _href(citation), "selector": selectors},
        "body": {"type": "TextualBody", "format": "text/plain", "value": comment},
    }


def _href(citation: CitedSpan) -> str:
    """Return the file of the book that a citation points into; empty where it is not in an EPUB."""
    href = (citation.other("anchor", dict) or {}).get("href")
    return href if isinstance(href, str) else ""


def _urn(receipt: Receipt, name: str) -> str:
    return f"urn:uuid:{uuid5(NAMESPACE_URL, f'{receipt.id} {name}')}"
