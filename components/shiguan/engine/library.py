"""The library of a tenant: ingesting, listing, reading and deleting sources."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haystack import Document
from haystack.core.errors import PipelineRuntimeError
from haystack.dataclasses import ByteStream

from shiguan.checking.definition import VECTOR_WRITER
from shiguan.engine.loading import load_ingest, load_pipeline, load_stores
from shiguan.engine.mode_pipeline import Results, value_at, warnings_of
from shiguan.errors import RefusedError, ShiguanError, SourceError, error_behind
from shiguan.ingest.conversion import Conversion
from shiguan.ingest.passage_writer import delete_passages
from shiguan.llm.run import raise_if_cancelled
from shiguan.tenants import MAX_FILTER_VALUES, of_tenant, where
from shiguan.text.passages import SharedDocument

if TYPE_CHECKING:  # ingesting reads no question
    from shiguan.reading.question import AskedChapter

SUFFIXES = tuple(".epub .pdf .docx .html .htm .xhtml .mhtml .mht .md .markdown .txt .jsonl .jsonl.gz".split())
"""The kinds of files that are ingested from a folder."""

MOST_NEIGHBOURS = 10
_SHOWN_FIELDS = "source source_id record_id title author section position language kind anchor blocks".split()

Progress = Callable[[str, int, int], None]
"""A function called with a stage, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class IngestedFile:
    """The result of ingesting one file."""

    file: str
    sources: int = 0
    parents: int = 0
    children: int = 0
    new: int = 0
    vectors: int = 0
    missing: int = 0
    removed: int = 0
    skipped: list[dict[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class Library:
    """
    The sources of one deployment, by tenant: `tenant_id` is always whose library is meant.

    :param deployment: A folder of `pipelines/`.
    :param data_dir: Where the embedded stores keep their data; None for $SHIGUAN_DATA_DIR or the user's data folder.
    """

    def __init__(self, deployment: str = "embedded", *, data_dir: str | Path | None = None) -> None:
        self.deployment = deployment
        self.data_dir = data_dir
        self.stores = load_stores(deployment, data_dir=data_dir)

    def ingest(
        self, files: Sequence[Path | ByteStream], *, tenant_id: str, progress: Progress | None = None
    ) -> Iterator[IngestedFile]:
        """
        Ingest files one after the other; each is completely in the library before the next begins.

        A file on disk is recognized by its path and replaces what came from there; a byte stream replaces whatever the
        tenant has under its name. Files on disk of the same name are kept apart, with a warning.

        :param files: Files on disk, or byte streams with `file_name` in their meta.
        :param progress: A function called with how far the current file is, and which process it waits for.
        :yields: The result of each file, in order. A file that fails is reported and the next one goes on.
        :raises StoreLockedError: If another process has been writing a file of this name for more than a minute.
        """
        # Fails before a file is read if the library cannot be reached.
        self.count(tenant_id=tenant_id)
        reading, pipeline = load_ingest(self.deployment, data_dir=self.data_dir)
        conversion = Conversion(reading)
        inputs, outputs = pipeline.metadata["inputs"], pipeline.metadata["outputs"]
        stages = pipeline.stages_with("warnings", "skipped") | {target.split(".")[0] for target in outputs.values()}
        for file in files:
            answer = conversion.convert(file, waiting=lambda: progress and progress("words", 0, 0))
            given = {"documents": _documents_of(answer), "tenant_id": tenant_id, "progress": progress}
            data = pipeline.by_component({name: value for name, value in given.items() if name in inputs})
            try:
                with self._turn(tenant_id, _file_name(file), progress):
                    results = {"conversion": answer, **pipeline.run(data, include_outputs_from=stages)}
                    done = _ingested_file(file, results, outputs)
                    done = self._of_one_name(file, done, value_at(results, outputs["parents"]) or [])
            except PipelineRuntimeError as error:
                yield IngestedFile(file=_file_name(file), skipped=[_failure_of(file, error)])
                continue
            yield done

    def _of_one_name(self, file: Path | ByteStream, done: IngestedFile, parents: list[Document]) -> IngestedFile:
        """Delete what a byte stream replaces, or warn that files from several places go by one name."""
        for meta in (parent.meta for parent in parents[:1]):
            name = meta["source"]
            own = where("meta.file_id", "!=", meta["file_id"])
            others = of_tenant(meta["tenant_id"], where("meta.source", "in", _spelled([name])), own)
            if isinstance(file, ByteStream):
                deleted = sum(self.stores[store].delete_by_filter(others) for store in ("children", "parents"))
                return replace(done, removed=done.removed + deleted)
            if self.stores["parents"].count_documents_by_filter(others):
                twins = f"{name}: the library has another source of this name, from another place. Both are kept, "
                return replace(done, warnings=[*done.warnings, f"{twins}and `shiguan delete` deletes both."])
        return done

    def resume(self, *, tenant_id: str, progress: Progress | None = None) -> IngestedFile:
        """
        Compute the vectors that a tenant's passages lack, from what is in the library; files are not needed.

        Where the library has vectors of another embedder, those of all tenants are deleted first: the two are never
        mixed.

        :param progress: A function called with how far the work is.
        :returns: How many `vectors` were made, how many are `missing`, and `warnings`; its `file` is empty. `skipped`
            names the sources of which only a part is there: an ingest was interrupted, and only the file has the rest.
        """
        pipeline = load_pipeline(self.deployment, "index", data_dir=self.data_dir)
        writer: Any = pipeline.get_component(VECTOR_WRITER)
        done = writer.complete(of_tenant(tenant_id), replace_others=True, progress=progress)
        skipped = [
            SourceError(
                source["source"],
                f"only {source['words']:,} of its {source['units']:,} retrieval units are there: an ingest broke off",
                "Ingest the file again",
            ).record
            for source in self.sources(tenant_id=tenant_id)
            if source["words"] < source["units"]
        ]
        written, missing, warnings = done["written"], done["missing"], done["warnings"]
        return IngestedFile(file="", vectors=written, missing=missing, skipped=skipped, warnings=warnings)

    def _turn(self, tenant_id: str, name: str, progress: Progress | None = None) -> AbstractContextManager[None]:
        """Lock a source, so that others cannot write or delete it meanwhile."""
        held: AbstractContextManager[None] = self.stores["parents"].turn(
            tenant_id, Path(name).name, lambda process: progress and progress(f"waiting for {process}", 0, 0)
        )
        return held

    def sources(self, *, tenant_id: str) -> list[dict[str, Any]]:
        """
        List a tenant's sources, and how complete they are.

        :returns: For each source file, sorted by name, `source`, `title`, `language`, `records` (sources in it),
            `passages`, `units` (children that the file has), `words` and `vectors` (how many of these are found by
            their words and by their vectors), `complete`, and `left_out`: what is not body text, in characters by
            kind. With fewer words than units an ingest was interrupted: ingest the file again. With fewer vectors than
            units, that or `resume` makes them.
        """
        owned = of_tenant(tenant_id)
        counts = self.stores["children"].count_by_file(owned)
        other = self.stores["children"].other_vectors()
        by_name: dict[str, list[dict[str, Any]]] = {}
        for file in self.stores["parents"].list_files(owned):
            by_name.setdefault(file["source"], []).append(file)
        return [_source(name, by_name[name], counts, vectors=not other) for name in sorted(by_name)]

    def passage(self, id: str, *, tenant_id: str, neighbours: int = 0) -> dict[str, Any] | None:  # noqa: A002
        """
        Read a passage with its neighbours.

        :param id: A passage's id, a citation's `parent_id`.
        :param neighbours: How many passages before it and after it, at most 10.
        :returns: `passage`, and those `before` and `after` it in its source, in order; None where there is none.
        """
        found = self.stores["parents"].filter_documents(of_tenant(tenant_id, where("id", "==", id)))
        if not found:
            return None
        at, count = int(found[0].meta["position"]), min(max(neighbours, 0), MOST_NEIGHBOURS)
        around = self.passages(found[0].meta["source_id"], tenant_id=tenant_id, first=at - count, last=at + count)
        return {
            "passage": shown_passage(found[0]),
            "before": [passage for passage in around if passage["position"] < at],
            "after": [passage for passage in around if passage["position"] > at],
        }

    def passages(self, source_id: str, *, tenant_id: str, first: int = 0, last: int = 0) -> list[dict[str, Any]]:
        """Read the passages of a work from one position to another, in order, each as `passage` returns it."""
        within = where("meta.position", ">=", first), where("meta.position", "<=", last)
        of_work = of_tenant(tenant_id, where("meta.source_id", "==", source_id), *within)
        found = self.stores["parents"].filter_documents(of_work)
        return [shown_passage(parent) for parent in sorted(found, key=lambda parent: int(parent.meta["position"]))]

    def contents(self, source: str, *, tenant_id: str) -> list[dict[str, Any]]:
        """
        Read the contents of a source.

        :param source: A source's file name, record id or `source_id`.
        :returns: The works in it, each with `source`, `source_id`, `title`, `author`, `language`, `passages` (how
            many) and `sections`: `section` (its headings from the outermost), `first` and `last` (positions).
        """
        fields = ["source", "source_id", "record_id", "title", "author", "language", "section", "position"]
        works: dict[str, list[dict[str, Any]]] = {}
        for meta in self.stores["parents"].list_meta(of_tenant(tenant_id, _named(source)), fields):
            works.setdefault(meta["source_id"], []).append(meta)
        return [_work(sorted(metas, key=lambda meta: int(meta["position"]))) for metas in works.values()]

    def text(self, source: str, *, tenant_id: str) -> list[Document]:
        """Read the passages of a source file, by its name, in reading order."""
        found = self.stores["parents"].filter_documents(of_tenant(tenant_id, where("meta.source", "==", source)))
        return sorted(found, key=lambda parent: (str(parent.meta["source_id"]), int(parent.meta["position"])))

    def read(self, file: Path, *, tenant_id: str) -> list[Document]:
        """Read a file on disk into passages as an ingest does, without storing any; one without text is refused."""
        reading, pipeline = load_ingest(self.deployment, outputs=["parents"])
        results = pipeline.run({"documents": _read(file, reading), "tenant_id": tenant_id})
        parents: list[Document] = value_at(results, pipeline.metadata["outputs"]["parents"])
        return parents

    def narrowed(
        self, sources: Sequence[str] | None, sections: Sequence[str] | None, *, tenant_id: str
    ) -> dict[str, Any] | None:
        """Build the filter of some sources and sections, None for all; one that is not there is refused."""
        conditions: list[dict[str, Any]] = []
        if sources:
            self._check_sources(sources, tenant_id)
            conditions.append(where("meta.source", "in", _spelled(sources)))
        if sections:
            wanted = {_heading(name): name for name in sections}
            found = self.stores["parents"].list_meta(of_tenant(tenant_id, *conditions), ["section"])
            headings = dict.fromkeys(heading for meta in found for heading in meta.get("section") or ())
            if missing := wanted.keys() - set(map(_heading, headings)):
                name = wanted[min(missing)][:80]
                near = ", ".join(f"`{one}`" for one in get_close_matches(name, headings, n=5, cutoff=0))
                others = f"Name a heading, such as: {near}" if near else "They have no headings"
                raise RefusedError(f"There is no section `{name}` in the sources that are asked. {others}.")
            conditions.append(where("meta.section", "in", sorted(one for one in headings if _heading(one) in wanted)))
        return {"operator": "AND", "conditions": conditions} if conditions else None

    def find_chapter(
        self, chapter: "AskedChapter", sources: Sequence[str] | None, *, tenant_id: str
    ) -> dict[str, list[str]]:
        """Find the `sources` and `sections` of a chapter to be summed up; nothing where none has it, or too many do."""
        condition = [where("meta.source", "in", _spelled(sources))] if sources else []
        paths = set()
        for meta in self.stores["parents"].list_meta(of_tenant(tenant_id, *condition), ["source", "title", "section"]):
            if chapter.is_of(meta):
                paths.add((meta["source"], *(meta.get("section") or ())))
        places = chapter.headings_among(paths)
        names = [sorted({place[at] for place in places}) for at in (0, 1)]
        return {"sources": names[0], "sections": names[1]} if 0 < len(places) <= MAX_FILTER_VALUES // 3 else {}

    def _check_sources(self, names: Sequence[str], tenant_id: str) -> None:
        count = self.stores["parents"].count_documents_by_filter
        for name in names:
            if not count(of_tenant(tenant_id, where("meta.source", "in", _spelled([name])))):
                files = self.stores["parents"].list_files(of_tenant(tenant_id))
                near = get_close_matches(name, {file["source"] for file in files}, n=1)
                meant = f"Did you mean `{near[0]}`? " if near else ""
                raise RefusedError(f"There is no source `{name}` in this library. {meant}`shiguan sources` lists them.")

    def delete(self, source: str, *, tenant_id: str) -> int:
        """
        Delete a source: its children first, so that no child is found without its parent.

        :param source: A source's file name, record id or `source_id`.
        :returns: How many passages were deleted; 0 where there is no such source.
        """
        named, (parents, children) = _named(source), (self.stores[store] for store in ("parents", "children"))
        names = {Path(file["source"]).name for file in parents.list_files(of_tenant(tenant_id, named))}
        with ExitStack() as turns:
            for name in sorted(names):
                turns.enter_context(self._turn(tenant_id, name))
            return delete_passages(parents, children, named, tenant_id=tenant_id)

    def count(self, *, tenant_id: str) -> int:
        """Count a tenant's passages (parents)."""
        return int(self.stores["parents"].count_documents_by_filter(of_tenant(tenant_id)))


def read_file(file: Path | ByteStream, deployment: str) -> list[Document]:
    """Read a file as an ingest does, without storing anything; one without text is refused."""
    return _read(file, load_ingest(deployment, outputs=["parents"])[0])


def _read(file: Path | ByteStream, reading: dict[str, Any]) -> list[Document]:
    answer = Conversion(reading).convert(file, waiting=raise_if_cancelled)
    if not answer["documents"]:
        skipped = (answer["skipped"] or [{"cause": "it has no text", "next_step": "Name another file"}])[0]
        name = Path(_file_name(file)).name
        raise RefusedError(f"{name} cannot be read: {skipped['cause']}. {skipped['next_step']}.")
    return _documents_of(answer)


def _documents_of(answer: dict[str, Any]) -> list[Document]:
    return [SharedDocument(id=name, content=text, meta=meta) for name, text, meta in answer["documents"]]


def _file_name(file: Path | ByteStream) -> str:
    """Return the name by which a file is recognized when it is ingested again."""
    return str(file.meta.get("file_name", "")) if isinstance(file, ByteStream) else str(file)


def _failure_of(file: Path | ByteStream, error: PipelineRuntimeError) -> dict[str, str]:
    """Describe why a stage could not take a file; an error of our own is raised unchanged."""
    if (ours := error_behind(error, ShiguanError)) is not None:
        raise ours
    reason = error.__cause__ or error
    return {
        "source": Path(_file_name(file)).name,
        "stage": error.component_name or "unknown",
        "cause": f"the stage `{error.component_name}` failed: {type(reason).__name__}: {reason}",
        "next_step": "Run again; nothing that was in the library is lost",
    }


def _ingested_file(file: Path | ByteStream, results: Results, outputs: dict[str, str]) -> IngestedFile:
    """Read the result of ingesting a file from the outputs of the index."""
    parents = value_at(results, outputs["parents"]) or []
    skipped = [entry for stage in results.values() for entry in stage.get("skipped", [])]
    return IngestedFile(
        file=_file_name(file),
        sources=len({parent.meta["source_id"] for parent in parents}),
        parents=len(parents),
        children=len(value_at(results, outputs["children"]) or []),
        **{name: value_at(results, outputs[name]) or 0 for name in ("new", "vectors", "missing", "removed")},
        skipped=[{"source": Path(_file_name(file)).name, **entry} for entry in skipped],
        warnings=warnings_of(results),
    )


def _named(source: str) -> dict[str, Any]:
    fields = ("source", "source_id", "record_id")
    return {"operator": "OR", "conditions": [where(f"meta.{field}", "in", _spelled([source])) for field in fields]}


def _spelled(names: Sequence[str]) -> list[str]:
    # macOS writes the accents of a file's name as characters of their own.
    forms = (unicodedata.normalize(form, name) for name in names for form in ("NFC", "NFD"))
    return list(dict.fromkeys([*names, *forms]))


def _heading(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def shown_passage(document: Document) -> dict[str, Any]:
    """Return a stored passage as callers read it: its text, its place, its first page and the kinds of its blocks."""
    shown = {name: document.meta.get(name) for name in _SHOWN_FIELDS}
    page = next((label for at, label in document.meta.get("pages") or () if at == 0 and label), None)
    return {"id": document.id, "text": document.content or "", **shown, "section": shown["section"] or [], "page": page}


def _work(metas: list[dict[str, Any]]) -> dict[str, Any]:
    sections = []
    for path, inside in groupby(metas, key=lambda meta: meta.get("section") or []):
        positions = [int(meta["position"]) for meta in inside]
        sections.append({"section": path, "first": positions[0], "last": positions[-1]})
    shown = {name: metas[0].get(name) for name in ("source", "source_id", "record_id", "title", "author")}
    language = Counter(meta.get("language", "und") for meta in metas).most_common(1)[0][0]
    return {**shown, "language": language, "passages": len(metas), "sections": sections}


def _source(
    name: str, files: list[dict[str, Any]], counts: dict[str, tuple[int, int]], *, vectors: bool
) -> dict[str, Any]:
    records = sum(file["records"] for file in files)
    languages = sum((Counter(file["languages"]) for file in files), Counter())
    # An older library has no `units`: what is there counts as complete.
    units = {file["file_id"]: file.get("units") for file in files}
    found = {file: counts.get(file, (0, 0)) for file in units}
    words = sum(count for count, _ in found.values())
    embedded = sum(count for _, count in found.values()) if vectors else 0
    total = sum(found[file][0] if unit is None else unit for file, unit in units.items())
    return {
        "source": name,
        "title": files[0].get("title") if records == 1 else None,
        "language": languages.most_common(1)[0][0] if languages else "und",
        "records": records,
        "passages": sum(file["passages"] for file in files),
        "units": total,
        "words": words,
        "vectors": embedded,
        "complete": words == embedded == total,
        "left_out": dict(sum((Counter(file.get("left_out") or {}) for file in files), Counter())),
    }
