"""/, /docs, /ui and /openapi.json: the page to read in, and the interface as it describes itself."""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from starlette.responses import Response

from shiguan import __version__
from shiguan.resources import read_table, resource_folder
from shiguan.serving.error_replies import KINDS, ApiError

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


def describe(app: FastAPI) -> None:
    """Let an application describe itself as Shiguan, with what its routes do not say themselves."""
    table = read_table(Path(__file__).with_name("openapi.yaml"))
    app.title, app.version, app.description, app.summary = "Shiguan", __version__, table["about"], None

    def schema() -> dict[str, Any]:
        if app.openapi_schema is None:
            routes = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            app.openapi_schema = _described(routes, table)
        return app.openapi_schema

    app.openapi = schema  # type: ignore[method-assign]


def _described(schema: dict[str, Any], table: dict[str, Any]) -> dict[str, Any]:
    table["error"]["properties"]["error"]["properties"]["type"]["enum"] = sorted(KINDS)
    components = schema.setdefault("components", {})
    components["securitySchemes"] = table["security_schemes"]
    schema["security"] = [{name: []} for name in table["security_schemes"]]
    schemas = components.setdefault("schemas", {})
    # The framework's own shape of a failed validation is never sent.
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Error"] = table["error"]
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            replies = operation["responses"]
            replies.pop("422", None)
            replies["default"] = {"description": "What went wrong, and what to do.", "content": error}
            if path in table["open"]:
                operation["security"] = []
            if method == "post" and path in table["forms"]:
                operation["requestBody"] = table["forms"][path]
            if method == "post" and path in table["bodies"]:
                operation["requestBody"]["content"]["application/json"]["example"] = table["bodies"][path]
            if example := table["replies"].get(path, {}).get(method):
                replies["200"]["content"]["application/json"]["example"] = example
    return schema
