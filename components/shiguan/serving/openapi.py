"""What /openapi.json says beyond the routes: whose interface it is, its keys, its errors, examples."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from shiguan import __version__
from shiguan.serving.error_replies import KINDS

_ABOUT = """\
Answers over a library of books: every sentence with the passage behind it, checked, or a refusal.

The tenant comes from the key. Errors have one shape, and name the next step. `docs/serving.md` walks through it."""

_OPEN = {"/health", "/ready"}

_ERROR = {
    "type": "object",
    "required": ["error", "detail"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["type", "stage", "message", "next_step", "request_id"],
            "properties": {
                "type": {"type": "string", "enum": sorted(KINDS)},
                "stage": {"type": ["string", "null"], "description": "The part of the pipeline where it happened."},
                "message": {"type": "string"},
                "next_step": {"type": "string"},
                "request_id": {"type": ["string", "null"]},
                "fields": {"type": "array", "items": {"type": "object"}, "description": "Which were wrong, and how."},
            },
        },
        "detail": {"type": "string", "description": "Message and next step in one line."},
    },
}
_QUESTION = {"query": "When did An Lushan rise in rebellion?", "mode": "simple"}
_PASSAGE = {
    "id": "0f3a…", "text": "An Lushan rose at Fanyang in the eleventh month of 755.", "source": "tang.epub",
    "source_id": "88b0…", "section": ["1 The Frontier Armies", "The rising"], "position": 7, "language": "en",
}  # fmt: skip
_ANSWER = {
    "answer": "An Lushan rose in rebellion in 755 [1].", "query": _QUESTION["query"], "mode": "simple",
    "status": "answered",
    "citations": [{
        "number": 1, "claim": {"start": 0, "end": 39}, "parent_id": "0f3a…", "source": "tang.epub", "start": 0,
        "end": 55, "quote": _PASSAGE["text"], "confidence": 0.97, "verdict": "supported",
    }],
    "documents": [{"number": 1, "id": "0f3a…", "source": "tang.epub", "section": _PASSAGE["section"], "score": 3.8}],
    "metadata": {"llm_calls": 1, "receipt": "6b1c…", "timings_ms": {"total": 812.4}, "warnings": []},
    "request_id": "5f0e…",
}  # fmt: skip
_BODIES: dict[str, Any] = {
    "/api/v1/feedback": {"receipt": "6b1c…", "kind": "wrong_citation", "note": "It is about another year."},
    "/api/v1/rag/query": _QUESTION,
    "/api/v1/rag/query-stream": {**_QUESTION, "conversation_id": "tang-1", "sources": ["tang.epub"]},
    "/api/v1/rag/batch": {"requests": [_QUESTION]},
    "/api/v1/why": {"question": _QUESTION["query"], "expected": "rose at Fanyang", "mode": "simple"},
}
_REPLIES: dict[tuple[str, str], Any] = {
    ("/api/v1/rag/query", "post"): _ANSWER,
    ("/api/v1/library/passages/{passage_id}", "get"): {"passage": _PASSAGE, "before": [], "after": []},
    ("/api/v1/library/passages", "get"): {"source_id": "88b0…", "passages": [_PASSAGE], "next": None},
    ("/api/v1/library/contents", "get"): {
        "source": "tang.epub",
        "works": [{
            "source": "tang.epub", "source_id": "88b0…", "title": "The Tang", "author": None, "language": "en",
            "passages": 69, "sections": [{"section": _PASSAGE["section"], "first": 7, "last": 7}],
        }],
    },
}  # fmt: skip


def describe(app: FastAPI) -> None:
    """Let an application describe itself as Shiguan, with what its routes do not say themselves."""
    app.title, app.version, app.description, app.summary = "Shiguan", __version__, _ABOUT, None

    def schema() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(
                get_openapi(title=app.title, version=app.version, description=_ABOUT, routes=app.routes)
            )
        return app.openapi_schema

    app.openapi = schema  # type: ignore[method-assign]


def _described(schema: dict[str, Any]) -> dict[str, Any]:
    components = schema.setdefault("components", {})
    components["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "A key of `shiguan keys add`."},
        "header": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same key."},
    }
    schema["security"] = [{"key": []}, {"header": []}]
    schemas = components.setdefault("schemas", {})
    # The framework's own shape of a failed validation is never sent.
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Error"] = _ERROR
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            replies = operation["responses"]
            replies.pop("422", None)
            replies["default"] = {"description": "What went wrong, and what to do.", "content": error}
            if path in _OPEN:
                operation["security"] = []
            if method == "post" and path in _BODIES:
                operation["requestBody"]["content"]["application/json"]["example"] = _BODIES[path]
            if (path, method) in _REPLIES:
                replies["200"]["content"]["application/json"]["example"] = _REPLIES[path, method]
    return schema
