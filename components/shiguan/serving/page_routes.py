"""/, /docs, /ui and /openapi.json: the page, and the description of the interface."""

from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from shiguan import __version__
from shiguan.resources import read_yaml, resource_folder
from shiguan.serving.error_replies import KINDS

router = APIRouter(include_in_schema=False)

_HEADERS = {
    # Only files of this server: no inline script, no other origin, no frame around it, no markup made of text.
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
_PAGES = {"/": "index.html", "/docs": "docs.html"}
_FILES = StaticFiles(directory=resource_folder("hayhooks") / "ui", check_dir=False)


@router.api_route("/", methods=["GET", "HEAD"])
@router.api_route("/docs", methods=["GET", "HEAD"])
@router.api_route("/ui/{name}", methods=["GET", "HEAD"])
async def page(request: Request, name: str = "") -> Response:
    response = await _FILES.get_response(_PAGES.get(request.url.path, name), request.scope)
    response.headers.update(_HEADERS)
    return response


def describe(app: FastAPI) -> None:
    """Make the OpenAPI description of an application, with what its routes do not say."""
    table = read_yaml(Path(__file__).with_name("openapi.yaml"))
    app.title, app.version, app.description, app.summary = "Shiguan", __version__, table["about"], None

    def schema() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(FastAPI.openapi(app), table)
        return app.openapi_schema

    app.openapi = schema  # type: ignore[method-assign]


def _described(schema: dict[str, Any], table: dict[str, Any]) -> dict[str, Any]:
    table["error"]["properties"]["error"]["properties"]["type"]["enum"] = sorted(KINDS)
    components = schema.setdefault("components", {})
    components["securitySchemes"] = table["security_schemes"]
    schema["security"] = [{name: []} for name in table["security_schemes"]]
    schemas = components.setdefault("schemas", {})
    # FastAPI's own shape of a failed validation is never sent.
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
    return schema
