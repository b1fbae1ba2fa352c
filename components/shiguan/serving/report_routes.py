"""/api/v1/reports: the pages that `shiguan eval` wrote, for those whose library was measured."""

import asyncio
import html
import re
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from lxml.html import HTMLParser, document_fromstring

from shiguan.resources import utc_time
from shiguan.serving.authentication import Reader
from shiguan.serving.error_replies import ApiError

router = APIRouter(prefix="/api/v1/reports", tags=["library"])

_MOST_REPORTS = 200
_LARGEST_REPORT = 8 * 2**20
_TITLE = re.compile(r"<title>([^<]{1,300})</title>")
_ELEMENTS = frozenset(
    "header section div h1 h2 p strong b small span code table thead tbody tr th td "
    "svg path rect text tspan polygon polyline circle".split()
)
_ATTRIBUTES = frozenset(
    "class data-label viewbox role aria-label d x y width height rx cx cy r points text-anchor transform".split()
)
_SPELLED = {"viewbox": "viewBox"}  # HTML knows no capitals, SVG does


def _reports(folder: Path | None, tenant: str) -> dict[str, Path]:
    """Find a tenant's reports, the newest first: pages in the folder of its name or one below it; no link leads out."""
    if folder is None:
        return {}
    root, own = folder.resolve(), (folder / tenant).resolve()
    if own.parent != root or own.name != tenant or not own.is_dir():
        return {}
    pages = (page for pattern in ("*.html", "*/*.html") for page in own.glob(pattern))
    kept = [page for page in pages if page.resolve().is_relative_to(own) and page.stat().st_size <= _LARGEST_REPORT]
    kept.sort(key=lambda page: page.stat().st_mtime, reverse=True)
    return {page.relative_to(own).as_posix(): page for page in kept[:_MOST_REPORTS]}


def _listed(name: str, page: Path) -> dict[str, str]:
    with page.open(encoding="utf-8", errors="replace") as file:
        title = _TITLE.search(file.read(2_000))
    written = utc_time(page.stat().st_mtime)
    return {"name": name, "title": html.unescape(title[1]) if title else name, "written": written}


@router.get("", summary="List the reports")
async def reports(request: Request, reader: Reader) -> dict[str, Any]:
    """List the reports of `shiguan eval` in the tenant's folder below SHIGUAN_REPORTS_DIR, the newest first."""

    def listed() -> list[dict[str, str]]:
        found = _reports(request.app.state.settings.reports_dir, reader.tenant_id)
        return [_listed(name, page) for name, page in found.items()]

    return {"reports": await asyncio.to_thread(listed)}


@router.get("/{name:path}", summary="Read a report")
async def report(request: Request, name: str, reader: Reader) -> dict[str, Any]:
    """Give a report's `title` and its `body`: texts, and elements as name, attributes and what stands in them."""

    def read() -> dict[str, Any]:
        page = _reports(request.app.state.settings.reports_dir, reader.tenant_id).get(name)
        if page is None:
            raise ApiError("not_found", message="There is no such report.", next_step="GET /api/v1/reports lists them.")
        return {**_listed(name, page), "body": report_body(page)}

    return await asyncio.to_thread(read)


def report_body(page: Path) -> list[Any]:
    """Read what a report says, as texts and the few elements that a report has."""
    root = document_fromstring(page.read_bytes() or b" ", HTMLParser(encoding="utf-8"), ensure_head_body=True)
    main = root.find(".//main")
    return [] if main is None else _parts(main)


def _parts(element: Any) -> list[Any]:
    """Write what stands in an element down; what a report never has is left out with all that stands in it."""
    parts = [element.text or ""]
    for child in element:
        if child.tag in _ELEMENTS:
            given = {_SPELLED.get(key, key): value for key, value in child.items() if key in _ATTRIBUTES}
            parts.append([child.tag, given, *_parts(child)])
        parts.append(child.tail or "")
    return [part for part in parts if part]
