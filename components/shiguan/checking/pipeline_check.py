"""Runs all checks on a file, in this process or in one with limits."""

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from shiguan.checking.definition import Definition
from shiguan.checking.parameters import (
    SETTING,
    check_allowed_types,
    check_code_in_parameters,
    check_templates,
    extensions,
)
from shiguan.checking.reading import Finding, PipelineFile, UnreadableFile, check_structure, read_pipeline_file
from shiguan.checking.tenants import check_tenants
from shiguan.errors import ConfigurationError, UnsafePipelineError
from shiguan.resources import read_table

_SECONDS, _MEMORY, _ANSWER = 2.0, 256 * 1024**2, 4 * 1024**2
"""Limits of checking a file, without imports; the shipped files take a tenth."""

_UNSAFE_HAYSTACK = "HAYSTACK_UNSAFE_DESERIALIZATION"


@dataclass(frozen=True)
class Report:
    """The result of checking a file."""

    name: str
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    content: dict[str, Any] | None = None
    allowed_types: tuple[str, ...] = ()

    @property
    def error(self) -> ConfigurationError | None:
        """The findings as an error; None if there are none."""
        if not self.findings:
            return None
        kind = UnsafePipelineError if any(finding.unsafe for finding in self.findings) else ConfigurationError
        if len(self.findings) == 1:
            return kind(f"{self.name} is refused. {self.findings[0]}")
        lines = "\n".join(f"- {finding}" for finding in self.findings)
        return kind(f"{self.name} is refused for {len(self.findings)} reasons:\n{lines}")

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        findings = [finding.as_dict() for finding in self.findings]
        return {"file": self.name, "ok": not findings, "findings": findings, "notes": self.notes}


def check_pipeline(path: Path, name: str, *, allow_types: list[str] | None = None, build: bool = True) -> Report:
    """Check a file's text and, with `build`, the graph that Haystack makes of it; its stores alone need no graph."""
    refuse_unsafe_environment()
    try:
        file = read_pipeline_file(path)
    except UnreadableFile as unreadable:
        return Report(name, [_advised(finding, "reading") for finding in unreadable.findings])
    _unpack_metadata(file.content)
    found = _placed(file, file.content, [check_structure])
    if found:
        return Report(name, found, content=file.content)
    _update_edges(file.content)
    definition = Definition(file, extensions(allow_types))
    notes = []
    if types := ", ".join(definition.allowed_types):
        notes.append(f"Types below {types} are allowed beyond Shiguan's own list, by `--allow-type` or ${SETTING}.")
    found = _placed(file, definition, [check_allowed_types, check_code_in_parameters, check_templates])
    if build and not found:
        # A file that is refused for its text does not wait for Haystack.
        from shiguan.checking import building  # noqa: PLC0415

        built = building.BuiltPipeline(definition)
        notes += built.notes
        graph = (building.check_building, building.check_connections, building.check_names, building.check_starvation)
        found = _placed(file, built, (*graph, building.check_reachable_parameters, check_tenants))
    # An anchored store appears in several places, but is reported once.
    once = {(finding.line, finding.problem): finding for finding in reversed(found)}
    ordered = sorted(once.values(), key=lambda finding: finding.line or 0)
    return Report(name, ordered, notes, file.content, definition.allowed_types)


def check_in_process(path: Path, name: str, *, allow_types: list[str] | None = None) -> Report:
    """Run `check_pipeline` in a process with limits of time and memory."""
    from shiguan.limited_process import LimitError, Limits, run_limited  # noqa: PLC0415

    refuse_unsafe_environment()
    limits, ready = Limits(_SECONDS, _MEMORY, _ANSWER), (_load_haystack, "")
    try:
        plain = run_limited(_judged, str(path), name, extensions(allow_types), limits=limits, prepare=ready)
    except LimitError as error:
        expected = "Expected a file that is checked in a moment."
        step = "Remove what grows while the pipeline is built, or do not use the file."
        return Report(name, [Finding((), f"Checking the file {error}.", expected, step, check="building")])
    findings = [Finding(**{**one, "place": tuple(one["place"])}) for one in plain["findings"]]
    return Report(name, findings, plain["notes"])


def _load_haystack(_: str) -> None:
    from shiguan.checking import building  # noqa: F401, PLC0415


def _judged(path: str, name: str, allow_types: list[str]) -> dict[str, Any]:
    report = check_pipeline(Path(path), name, allow_types=list(allow_types))
    return {"findings": [asdict(finding) for finding in report.findings], "notes": report.notes}


def _placed(file: PipelineFile, subject: Any, checks: Iterable[Callable[[Any], Iterable[Finding]]]) -> list[Finding]:
    return [
        replace(_advised(finding, check.__name__.removeprefix("check_")), line=finding.line or file.line(finding.place))
        for check in checks
        for finding in check(subject)
    ]


def _advised(finding: Finding, check: str) -> Finding:
    own = {name: text for name in ("expected", "next_step") if (text := getattr(finding, name))}
    return replace(finding, check=check, **{**read_table(Path(__file__).with_name("checks.yaml"))[check], **own})


def _unpack_metadata(content: dict[str, Any]) -> None:
    """Restore the sections that `load_pipeline` keeps in the metadata, where Haystack's `dumps` writes them."""
    metadata = content.get("metadata")
    for section in ("inputs", "outputs", "budget"):
        if isinstance(metadata, dict) and section in metadata:
            content.setdefault(section, metadata[section])


def _update_edges(content: dict[str, Any]) -> None:
    """Read an `index.yml` of version 0.2, where `vector_writer` took documents, whichever component sent them."""
    for edge in content.get("connections") or []:
        if edge == {"sender": "passage_writer.children", "receiver": "vector_writer.children"}:
            edge.update(sender="passage_writer.files", receiver="vector_writer.files")


def refuse_unsafe_environment() -> None:
    """Refuse an environment in which Haystack loads any class."""
    if os.environ.get(_UNSAFE_HAYSTACK):
        raise UnsafePipelineError(
            f"{_UNSAFE_HAYSTACK} is set to `{os.environ[_UNSAFE_HAYSTACK]}`, which lets a pipeline file load any code. "
            "Expected an environment without it. Unset it and try again."
        )
