"""/, /docs and /ui: the page to read in and that of the interface, from files of the package."""

import hashlib
from functools import lru_cache

from fastapi import APIRouter, Request
from starlette.responses import Response

from shiguan.resources import resource_folder
from shiguan.serving.error_replies import ApiError

router = APIRouter(include_in_schema=False)

_HEADERS = {
    # Nothing but files of this server: no inline script, no other origin, no frame around it, no text made into markup.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-cache",
}
_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
_PAGES = {"/": "index.html", "/docs": "docs.html"}


@lru_cache(maxsize=64)
def _file(name: str) -> tuple[bytes, str, str] | None:
    """Give a file of the page with its type and its tag; only what lies flat in the folder is one."""
    found = {path.name: path for path in (resource_folder("hayhooks") / "ui").iterdir() if path.suffix in _TYPES}
    if name not in found:
        return None
    content = found[name].read_bytes()
    kind = _TYPES[found[name].suffix]
    return content, f"{kind}; charset=utf-8", f'"{hashlib.sha256(content).hexdigest()[:32]}"'


@router.api_route("/", methods=["GET", "HEAD"])
@router.api_route("/docs", methods=["GET", "HEAD"])
@router.api_route("/ui/{name}", methods=["GET", "HEAD"])
async def page(request: Request, name: str = "") -> Response:
    found = _file(_PAGES.get(request.url.path, name))
    if found is None:
        raise ApiError("not_found")
    content, kind, tag = found
    headers = {**_HEADERS, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=kind, headers=headers)
