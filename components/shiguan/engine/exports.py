"""Exports an answer as notes that can be cited: bibliography entries, and texts with footnotes."""

import html
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from shiguan.answer.quotations import QUOTING
from shiguan.engine.annotations import annotation_sets
from shiguan.engine.docx_notes import MARK, docx_with_footnotes
from shiguan.engine.receipts import CitedSpan, Receipt
from shiguan.errors import RefusedError
from shiguan.tenants import of_tenant, where
from shiguan.text.places import page_words
from shiguan.text.works import PEOPLE, WORK_FIELDS, isbn_of, plain_line, work_of

Form = Literal["csl", "bibtex", "ris", "markdown", "html", "docx", "annotations"]
FORMS: dict[Form, tuple[str, str]] = {
    "csl": ("application/vnd.citationstyles.csl+json", "csl.json"),
    "bibtex": ("application/x-bibtex", "bib"),
    "ris": ("application/x-research-info-systems", "ris"),
    "markdown": ("text/markdown; charset=utf-8", "md"),
    "html": ("text/html; charset=utf-8", "html"),
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
    disputes: list[str] = field(default_factory=list)

    def identifiers(self) -> dict[str, list[str]]:
        kinds: dict[str, list[str]] = {"ISBN": [], "DOI": [], "URL": [], "": []}
        for text in self.work.get("identifier", ()):
            doi = _DOI.fullmatch(text)
            kind = "ISBN" if isbn_of(text) else "DOI" if doi else "URL" if re.match("https?://", text) else ""
            kinds[kind].append(doi[1] if doi else text)
        return {**kinds, "": kinds["DOI"][1:] + kinds["URL"][1:] + kinds[""]}

    def notes(self, receipt: str) -> list[str]:
        """Write what no bibliography field can hold, one line each."""
        quotes = [f"[{number}] {place}: “{quote}”" for number, place, quote in self.quotes]
        return [*quotes, *self.disputes, *(f"Identifier: {name}" for name in self.identifiers()[""]), _signed(receipt)]

    def reference(self, form: Callable[[str], str] = str, title: str = "{}") -> str:
        """Write the reference to the work in one line, as in a footnote."""
        work = {name: ", ".join(value) if isinstance(value, list) else value for name, value in self.work.items()}
        words = {"editor": "ed. by {}", "translator": "trans. by {}", "title": title}
        return ", ".join(words.get(name, "{}").format(form(work[name])) for name in _ORDER if name in work)


_ORDER = ("author", *(name for name in WORK_FIELDS if name != "author"))


def export_answer(receipt: Receipt, parents: Any, form: str, *, own: Mapping[str, Any] | None = None) -> bytes:
    """
    Write the answer of a receipt with everything that it cites.

    :param receipt: How the answer came about.
    :param parents: The store of the passages, which has the data of their sources.
    :param form: One of `FORMS`.
    :param own: The user's own data of sources, by name, which take precedence over those of their files.
    :returns: The content of the file.
    :raises RefusedError: If there is no such form, or `annotations` are asked for and no EPUB is cited.
    """
    if form not in FORMS:
        raise RefusedError(f"There is no form `{plain_line(form)}` to export to. Choose one of {', '.join(FORMS)}.")
    entries = cited_entries(receipt, parents, own or {})
    if form == "docx":
        return docx_with_footnotes(_line(receipt.answer.query), *_paragraphs(receipt, entries), _signed(receipt.id))
    if form == "annotations":
        works = {entry.source: entry.work for entry in reversed(entries)}
        return annotation_sets(receipt, list(works.items())[::-1]).encode("utf-8", "replace")
    writers = {"csl": _csl, "bibtex": _bibtex, "ris": _ris, "markdown": _markdown, "html": _html}
    return writers[form](receipt, entries).encode("utf-8", "replace")


def cited_entries(receipt: Receipt, parents: Any, own: Mapping[str, Any]) -> list[Entry]:
    """Collect the works that an answer cites, in the order of its marks, each once."""
    citations = sorted(receipt.answer.citations, key=lambda citation: (citation.number, citation.start))
    ids = sorted({citation.parent_id for citation in citations})
    found = parents.filter_documents(of_tenant(receipt.tenant_id, where("id", "in", ids))) if ids else []
    metas = {parent.id: parent.meta for parent in found}
    entries: dict[tuple[str, str], Entry] = {}
    for citation in citations:
        meta, title = metas.get(citation.parent_id, {}), citation.model_dump().get("title")
        known = {"title": title or citation.source, **meta, **meta.get("work", {})}
        work = work_of({**known, **own.get(citation.source, {})})
        key = citation.source, str(meta.get("source_id") or title)
        slug = re.sub("[^a-z0-9]+", "-", Path(citation.source).stem.lower()).strip("-")[:40] or "source"
        entry = entries.setdefault(key, Entry(f"{slug}-{len(entries) + 1}", work, citation.source))
        quote = (citation.number, _place(citation), _line(citation.quote))
        entry.quotes += [quote] if quote not in entry.quotes else []
    for line, places in _disputes(receipt):
        numbers = {place.number for place in places}
        for entry in entries.values():
            if line not in entry.disputes and any(number in numbers for number, _, _ in entry.quotes):
                entry.disputes.append(line)
    return list(entries.values())


class _Dispute(BaseModel):
    """A disagreement of the answer object; checked, because a receipt may be anybody's file."""

    kind: Literal["number", "date", "name"]
    places: Annotated[list[CitedSpan], Field(min_length=2, max_length=2)]


_DISPUTES = {
    "en": (
        "The sources give different {}: {}",
        {"number": "numbers", "date": "dates", "name": "names"},
        "“{}”[{}]",
        "; ",
    ),
    "zh": ("各书{}不同：{}", {"number": "数字", "date": "年代", "name": "人名地名"}, "“{}”[{}]", "；"),
}


def _disputes(receipt: Receipt) -> list[tuple[str, list[CitedSpan]]]:
    """Write the disagreements of the sources, one line each, with the marks of both quotations."""
    metadata = receipt.answer.model_dump().get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    try:
        found = TypeAdapter(list[_Dispute]).validate_python(metadata.get("disagreements") or [])
    except ValidationError:
        return []
    frame, kinds, quote, between = _DISPUTES["zh" if metadata.get("language") == "zh" else "en"]
    return [
        (frame.format(kinds[d.kind], between.join(quote.format(_line(p.quote), p.number) for p in d.places)), d.places)
        for d in found
    ]


def read_sources(path: Path, tenant_id: str) -> dict[str, dict[str, Any]]:
    """Read the user's own data of a tenant's sources (`sources.yml`); empty where there is no such file."""
    wrong = f"Expected, below the tenant and the source's name, {', '.join(WORK_FIELDS)}. See docs/notes.md."
    try:
        if not path.is_file():
            return {}
        if path.stat().st_size > _LARGEST:
            raise RefusedError(f"{path} is larger than 1 MiB. {wrong}")
        tenants = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        sources = (tenants.get(tenant_id) or {}) if isinstance(tenants, dict) else None
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise RefusedError(f"{path} cannot be read as YAML ({type(error).__name__}). {wrong}") from error
    if not isinstance(sources, dict):
        raise RefusedError(f"{path} has no sources by their names below `{plain_line(tenant_id)}`. {wrong}")
    for name, work in sources.items():
        unknown = sorted(map(str, work.keys() - set(WORK_FIELDS))) if isinstance(work, dict) else ["no fields"]
        if unknown:
            raise RefusedError(f"{path} says of `{plain_line(str(name))}`: {plain_line(', '.join(unknown))}. {wrong}")
    return sources


def _line(text: str) -> str:
    return plain_line(text, _LONGEST_QUOTE)


def _place(citation: CitedSpan) -> str:
    data = citation.model_dump()
    number = page_words(data) or (f"para. {data['paragraph']}" if data.get("paragraph") else "")
    page = (data.get("anchor") or {}).get("page")
    parts = [*citation.section, number or (f"p. {page}" if page else "")]
    return ", ".join(filter(None, map(plain_line, parts))) or "(no place)"


def _signed(receipt: str) -> str:
    return f"Shiguan receipt: {receipt}"


def _csl(receipt: Receipt, entries: list[Entry]) -> str:
    items = []
    for entry in entries:
        work, ids = entry.work, entry.identifiers()
        item: dict[str, Any] = {"id": entry.key, "type": "book", "title": work.get("title", "")}
        for name in PEOPLE:
            if people := work.get(name):
                item[name] = [_csl_name(person) for person in people]
        item |= {name: work[name] for name in ("edition", "publisher") if name in work}
        if "year" in work:
            item["issued"] = {"date-parts": [[int(work["year"])]]}
        item |= {"ISBN": " ".join(ids["ISBN"])} if ids["ISBN"] else {}
        item |= {name: ids[name][0] for name in ("DOI", "URL") if ids[name]}
        items.append({**item, "note": "\n".join(entry.notes(receipt.id))})
    return json.dumps(items, ensure_ascii=False, indent=2) + "\n"


def _csl_name(name: str) -> dict[str, str]:
    family, comma, given = name.partition(", ")
    return {"family": family, "given": given} if comma and given and "," not in given else {"literal": name}


# BibTeX counts every brace, even an escaped one.
_LATEX = {char: f"\\{char}" for char in "%&$#_"} | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}"}
_LATEX |= {"~": r"\textasciitilde{}", "{": r"\textbraceleft{}", "}": r"\textbraceright{}"}


def _bibtex(receipt: Receipt, entries: list[Entry]) -> str:
    def value(text: str) -> str:
        return re.sub(r"[\\^~{}%&$#_]", lambda found: _LATEX[found[0]], text)

    def people(names: list[str]) -> str:
        # BibTeX would split a name with `and` or commas into several people.
        return " and ".join(
            f"{{{value(name)}}}" if re.search(r"\band\b", name) or name.count(",") > 1 else value(name)
            for name in names
        )

    written = []
    for entry in entries:
        work, ids = entry.work, entry.identifiers()
        fields: dict[str, str] = {name: people(work[name]) for name in PEOPLE if name in work}
        fields |= {name: value(work[name]) for name in ("title", "edition", "year", "publisher") if name in work}
        fields |= {"isbn": value(" ".join(ids["ISBN"]))} if ids["ISBN"] else {}
        fields |= {name.lower(): value(ids[name][0]) for name in ("DOI", "URL") if ids[name]}
        fields["annote"] = "\n\n".join(map(value, entry.notes(receipt.id)))
        lines = ",\n".join(f"  {name} = {{{text}}}" for name, text in fields.items())
        written.append(f"@book{{{entry.key},\n{lines}\n}}\n")
    return "\n".join(written)


def _ris(receipt: Receipt, entries: list[Entry]) -> str:
    tags = {"title": "TI", "author": "AU", "editor": "A3", "translator": "A4"}  # as Zotero reads the tags of a book
    tags |= {"edition": "ET", "year": "PY", "publisher": "PB"}
    lines: list[tuple[str, str]] = []
    for entry in entries:
        lines.append(("TY", "BOOK"))
        for name, tag in tags.items():
            values = entry.work.get(name, [])
            lines += [(tag, value) for value in ([values] if isinstance(values, str) else values)]
        ids = entry.identifiers()
        lines += [("SN", isbn) for isbn in ids["ISBN"]] + [("DO", doi) for doi in ids["DOI"][:1]]
        lines += [("UR", url) for url in ids["URL"][:1]] + [("N1", note) for note in entry.notes(receipt.id)]
        lines.append(("ER", ""))
    return "".join(f"{tag}  - {text}\r\n" for tag, text in lines)


def _footnotes(entries: list[Entry], form: Callable[[str], str] = str, title: str = "{}") -> dict[int, str]:
    """Write the footnote of each mark of an answer: the work and all its quotations under that mark."""
    notes: dict[int, str] = {}
    for entry in entries:
        for number in dict.fromkeys(number for number, _, _ in entry.quotes):
            quotes = [f"{form(place)}: “{form(quote)}”" for at, place, quote in entry.quotes if at == number]
            notes[number] = f"{entry.reference(form, title)}, {'; '.join(quotes)}"
    return dict(sorted(notes.items()))


def _paragraphs(receipt: Receipt, entries: list[Entry]) -> tuple[list[tuple[str, bool]], dict[int, str]]:
    """Return the paragraphs of an answer, each with whether it is a quotation, and the footnotes of its marks."""
    answer = receipt.answer.model_dump()
    disputes = [(line, False) for line, _ in _disputes(receipt)]
    if answer["status"] in QUOTING:
        quotes = [(number, quote) for entry in entries for number, _, quote in entry.quotes]
        quoted = [(f"{quote}[{number}]", True) for number, quote in sorted(quotes)]
        return quoted + disputes, _footnotes(entries)
    parts = re.split(r"\n\s*\n", str(answer.get("answer") or ""))
    return [*((line, False) for part in parts if (line := _line(part))), *disputes], _footnotes(entries)


def _markdown(receipt: Receipt, entries: list[Entry]) -> str:
    def escape(text: str) -> str:
        return re.sub(r"([\\`*_{}\[\]<>#|!~&$^])", r"\\\1", text)

    notes = _footnotes(entries, escape, "*{}*")
    known = {str(number) for number in notes}
    parts = []
    for text, quoted in _paragraphs(receipt, entries)[0]:
        pieces = MARK.split(text)
        shown = "".join(
            escape(piece) if at % 2 == 0 else f"[^{piece}]" if piece in known else escape(f"[{piece}]")
            for at, piece in enumerate(pieces)
        )
        parts.append(f"> {shown}" if quoted else shown)
    feet = "\n\n".join(f"[^{number}]: {note}" for number, note in notes.items())
    title = f"# {escape(_line(receipt.answer.query))}"
    return "\n\n".join(filter(None, [title, *parts, feet, _signed(receipt.id)])) + "\n"


def _html(receipt: Receipt, entries: list[Entry]) -> str:
    notes = _footnotes(entries, html.escape, "<cite>{}</cite>")

    def shown(text: str) -> str:
        def mark(found: re.Match[str]) -> str:
            known = int(found[1]) in notes
            return f'<sup><a href="#n{found[1]}">{found[1]}</a></sup>' if known else found[0]

        return MARK.sub(mark, html.escape(text))

    paragraphs = [
        f"<blockquote><p dir=auto>{shown(text)}</p></blockquote>" if quoted else f"<p dir=auto>{shown(text)}</p>"
        for text, quoted in _paragraphs(receipt, entries)[0]
    ]
    feet = [f'<li dir=auto id="n{number}" value="{number}">{note}</li>' for number, note in notes.items()]
    title = html.escape(_line(receipt.answer.query))
    style = "body{max-width:38rem;margin:3rem auto;padding:0 1rem;font:1.05rem/1.6 Georgia,'Songti SC',serif}"
    head = f'<meta charset="utf-8"><title>{title}</title><style>{style}</style>'
    body = [f"<h1 dir=auto>{title}</h1>", *paragraphs, "<hr>", "<ol>", *feet, "</ol>"]
    end = f"<p><small>{_signed(receipt.id)}</small></p></body></html>\n"
    return "\n".join([f"<!doctype html>\n<html><head>{head}</head><body>", *body, end])
