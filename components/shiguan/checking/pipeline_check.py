"""Asks every check about a file and gathers what they find."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shiguan.checking.definition import Definition
from shiguan.checking.parameters import (
    SETTING,
    check_allowed_types,
    check_code_in_parameters,
    check_reachable_parameters,
    extensions,
)
from shiguan.checking.reading import Finding, PipelineFile, UnreadableFile, read_pipeline_file
from shiguan.checking.sections import check_budget, check_cache, check_models, check_promise, check_structure
from shiguan.checking.templates import check_templates
from shiguan.checking.tenants import check_tenant_reads, check_tenant_writes
from shiguan.errors import ConfigurationError, UnsafePipelineError

TEXT_CHECKS = (check_allowed_types, check_code_in_parameters, check_templates, check_models, check_budget, check_cache)
"""What must hold before anything is built."""

_UNSAFE_HAYSTACK = "HAYSTACK_UNSAFE_DESERIALIZATION"


@dataclass(frozen=True)
class Report:
    """What became of a file."""

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
        """Give the report as plain data, for programs."""
        return {
            "file": self.name,
            "ok": not self.findings,
            "findings": [finding.as_dict() for finding in self.findings],
            "notes": self.notes,
        }


def check_pipeline(
    path: Path, name: str, *, allow_types: list[str] | None = None, promise: bool = False, build: bool = True
) -> Report:
    """
    Decide whether a file may be built, by its text, then by what Haystack makes of it; and what a mode promises.

    Without `build` its text alone is judged, for who builds nothing of it but stores.
    """
    refuse_unsafe_environment()
    try:
        file = read_pipeline_file(path)
    except UnreadableFile as unreadable:
        return Report(name, [replace(finding, check="reading") for finding in unreadable.findings])
    _unpack_metadata(file.content)
    found = _placed(file, file.content, [check_structure])
    if found:
        return Report(name, found, content=file.content)
    definition = Definition(file, extensions(allow_types))
    notes = []
    if types := ", ".join(definition.allowed_types):
        notes.append(f"Types below {types} are allowed beyond Shiguan's own list, by `--allow-type` or ${SETTING}.")
    found = _placed(file, definition, TEXT_CHECKS)
    if build and not found:
        # A file that is refused for its text shall not wait for Haystack.
        from shiguan.checking import building  # noqa: PLC0415

        built = building.BuiltPipeline(definition)
        notes += built.notes
        graph = (building.check_building, building.check_connections, building.check_starvation)
        found = _placed(file, built, (*graph, check_reachable_parameters, check_tenant_reads, check_tenant_writes))
    if promise:
        found += _placed(file, file, [check_promise])
    # A store behind an anchor stands in several places and is wrong once.
    once = {(finding.line, finding.problem): finding for finding in reversed(found)}
    ordered = sorted(once.values(), key=lambda finding: finding.line or 0)
    return Report(name, ordered, notes, file.content, definition.allowed_types)


def _placed(file: PipelineFile, subject: Any, checks: Iterable[Callable[[Any], Iterable[Finding]]]) -> list[Finding]:
    return [
        replace(finding, check=check.__name__.removeprefix("check_"), line=finding.line or file.line(finding.place))
        for check in checks
        for finding in check(subject)
    ]


def _unpack_metadata(content: dict[str, Any]) -> None:
    """Put back in its place what `load_pipeline` keeps in the metadata, where Haystack's `dumps` writes it."""
    metadata = content.get("metadata")
    for section in ("inputs", "outputs", "explain", "budget", "cache"):
        if isinstance(metadata, dict) and section in metadata:
            content.setdefault(section, metadata[section])


def refuse_unsafe_environment() -> None:
    """Refuse to go on where Haystack is told to load anything."""
    if os.environ.get(_UNSAFE_HAYSTACK):
        raise UnsafePipelineError(
            f"{_UNSAFE_HAYSTACK} is set to `{os.environ[_UNSAFE_HAYSTACK]}`, which lets a pipeline file load any code. "
            "Expected an environment without it. Unset it and try again."
        )
