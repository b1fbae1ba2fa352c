"""The page with a server that says what a test wants, and waits where the test wants it to."""

import asyncio
import json
import threading
from dataclasses import dataclass, field
from typing import Any, Self

import uvicorn
from fastapi import FastAPI, Request
from haystack import Document
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from shiguan.engine.exports import FORMS, export_answer
from shiguan.engine.receipts import Receipt, ShownAnswer
from shiguan.serving.current_request import in_request
from shiguan.serving.error_replies import ApiError, error_response
from shiguan.serving.page_routes import router as page_router

WAIT = "wait"
CUT = "cut"
VERDICTS = ("supported", "partial", "unsupported", "contradicted")


def passage(position: int, text: str, **more: Any) -> dict[str, Any]:
    """A passage of the book `tang.epub`."""
    return {
        "id": f"p{position}", "text": text, "source": "tang.epub", "source_id": "s1", "title": "The Tang",
        "author": "Shi Guan", "section": ["1 War"], "position": position, "language": "en", "blocks": None, **more,
    }  # fmt: skip


@dataclass
class Script:
    """An answer of sentences, each with a verdict and a passage, as the server tells it."""

    sentences: list[str]
    verdicts: tuple[str, ...] = VERDICTS
    query: str = "Who rose?"
    quote: tuple[int, int] = (0, 9)
    changes: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    # Whether a sentence ends before its marks, as where these stand behind the full stop.
    marks_behind: bool = False

    def claims(self) -> list[dict[str, Any]]:
        at, made = 0, []
        for index, text in enumerate(self.sentences):
            whole = f"{text} [1]"
            verdict = self.verdicts[index % len(self.verdicts)]
            own = text if self.marks_behind else whole
            made.append({
                "start": at, "end": at + len(own), "text": own, "numbers": [1], "verdict": verdict, "score": 0.9,
                "reason": f"reason {index}", "change": "",
            })  # fmt: skip
            at += len(whole) + 1
        return made

    def citations(self, claim: dict[str, Any]) -> list[dict[str, Any]]:
        return [{
            "number": 1, "claim": {"start": claim["start"], "end": claim["end"]}, "parent_id": "p1",
            "source": "tang.epub", "title": "The Tang", "section": ["1 War"], "start": self.quote[0],
            "end": self.quote[1], "quote": "An Lushan", "verdict": claim["verdict"], "confidence": 0.9,
        }]  # fmt: skip

    def answer(self) -> dict[str, Any]:
        claims = self.claims()
        return {
            "answer": " ".join(f"{text} [1]" for text in self.sentences), "query": self.query, "mode": "simple",
            "status": "answered", "citations": [one for claim in claims for one in self.citations(claim)],
            "documents": [], "request_id": "r-1",
            "metadata": {
                "llm_calls": 1, "timings_ms": {"bm25_retriever": 12.5, "generator": 800.0, "total": 820.0},
                "usage": {"total_tokens": 321}, "receipt": "ab" * 32, "claims": claims, "changes": self.changes,
                "warnings": self.warnings, "model": "stand-in",
            },
        }  # fmt: skip

    def quotations(self, status: str, **metadata: Any) -> dict[str, Any]:
        """The answer where nothing is said in other words: `quoted`, `closest` or `not_found`."""
        answer = self.answer()
        quoted = {**answer["citations"][0], "verdict": "quoted", "sentence": [*self.quote], "words": []}
        answer["metadata"] |= {"claims": [], "llm_calls": 0, "model": "", **metadata}
        return answer | {
            "status": status, "citations": [] if status == "not_found" else [quoted],
            "answer": "The sources do not answer this question." if status == "not_found" else "> An Lushan",
        }  # fmt: skip

    def events(self) -> list[tuple[str, Any]]:
        """The whole stream; a test puts `(WAIT, None)` and `(CUT, None)` between."""
        told: list[tuple[str, Any]] = [
            ("query_rewritten", {"query": self.query, "queries": [self.query], "method": "none"}),
            ("documents_retrieved", {"attempt": 1, "documents": [{**passage(0, ""), "id": "p1", "number": 1}]}),
            ("generation_start", {"attempt": 1}),
        ]
        for index, (claim, text) in enumerate(zip(self.claims(), self.sentences, strict=True)):
            told += [("token", {"text": part}) for part in (text[:9], f"{text[9:]} [1] ")]
            told.append(("claim", {"index": index, **claim, "citations": self.citations(claim)}))
        return [*told, ("generation_complete", self.answer())]


def refused(error, request_id):
    with in_request(id=request_id):
        return error_response(error)


class PageSite:
    """
    The site; set what it says before a test opens it, and `go.set()` where a stream waits.

        with PageSite() as site:
            page.goto(site.url)
    """

    def __init__(self) -> None:
        self.keys: set[str] | None = None
        self.model = True
        self.script: list[tuple[str, Any]] = Script(["An Lushan rose in 755."]).events()
        self.pause = 0.0  # seconds between two events
        self.refusal: ApiError | None = None
        self.sources: list[dict[str, Any]] = [source("tang.epub", "The Tang")]
        self.passages = [passage(0, "Before."), passage(1, "An Lushan rose at Fanyang in 755."), passage(2, "After.")]
        self.receipts: dict[str, Any] = {}
        self.conversations: list[dict[str, Any]] = []
        self.job: dict[str, Any] | None = None
        self.go = threading.Event()
        self.asked: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self.judged: list[dict[str, Any]] = []
        self.seen: list[str] = []

    def __enter__(self) -> Self:
        self._server = uvicorn.Server(uvicorn.Config(self._app(), port=0, log_level="error", lifespan="off"))
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        pause = threading.Event()
        while not self._server.started:
            pause.wait(0.01)
        self.url = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self.go.set()
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)

    def _app(self) -> FastAPI:  # noqa: C901
        app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
        app.router.routes.extend(page_router.routes)

        @app.middleware("http")
        async def key(request: Request, forward: Any) -> Response:
            self.seen.append(f"{request.method} {request.url.path}")
            given = request.headers.get("authorization", "").removeprefix("Bearer ")
            if request.url.path.startswith("/api") and self.keys is not None and given not in self.keys:
                return refused(ApiError("unauthenticated"), "r-2")
            return await forward(request)

        @app.get("/api/v1/rag/health")
        async def health() -> Any:
            modes = ["advanced", "agent", "precise", "simple"]
            return {"modes": modes, "model": self.model, "role": "write", "limits": {"upload_bytes": 100 * 2**20}}

        @app.post("/api/v1/rag/query-stream")
        async def ask(request: Request) -> Response:
            self.asked.append(await request.json())
            if self.refusal is not None:
                return refused(self.refusal, "r-3")
            return StreamingResponse(self._stream(), media_type="text/event-stream")

        @app.get("/api/v1/documents")
        async def documents() -> Any:
            return {"sources": [one for one in self.sources if one["source"] not in self.deleted]}

        @app.post("/api/v1/documents")
        async def upload(request: Request) -> Any:
            await request.body()
            return JSONResponse({**(self.job or {}), "state": "queued"}, status_code=202)

        @app.get("/api/v1/documents/jobs/{job_id}")
        async def job(job_id: str) -> Any:
            return self.job

        @app.delete("/api/v1/documents/{name:path}")
        async def delete(name: str) -> Any:
            self.deleted.append(name)
            return {"source": name, "deleted": 1}

        @app.get("/api/v1/library/passages/{passage_id}")
        async def one(passage_id: str) -> Any:
            at = next((at for at, one in enumerate(self.passages) if one["id"] == passage_id), None)
            if at is None:
                return refused(ApiError("not_found"), "r-4")
            before, after = self.passages[max(0, at - 1) : at], self.passages[at + 1 : at + 2]
            return {"passage": self.passages[at], "before": before, "after": after}

        @app.get("/api/v1/library/contents")
        async def contents(source: str) -> Any:
            places = [(one["section"], one["position"]) for one in self.passages]
            sections = [{"section": section, "first": at, "last": at} for section, at in places]
            work = {**self.passages[0], "record_id": None, "passages": len(self.passages), "sections": sections}
            return {"source": source, "works": [work]}

        @app.get("/api/v1/library/passages")
        async def stretch(first: int, last: int) -> Any:
            return {"passages": [one for one in self.passages if first <= one["position"] <= last], "next": None}

        @app.get("/api/v1/library/search")
        async def search(query: str) -> Any:
            return {"passages": [{**one, "score": 1.0} for one in self.passages], "warnings": []}

        @app.get("/api/v1/library/timeline")
        async def timeline(query: str = "", when: str = "") -> Any:
            when_it_was = {"from": 755, "to": 755, "as": "天寶十四載", "western": "16 December 755"}
            line = {**when_it_was, "precision": "year", "how": "carried"}
            first = self.passages[0]
            place = {name: first.get(name) for name in ("source", "title", "section", "page")}
            text = {"text": f"{query} {when} {first['text']}", "passage": first["id"], "start": 0, "end": 4}
            return {"lines": [line | place | text], "count": 1}

        @app.post("/api/v1/verify")
        async def verify(request: Request) -> Response:
            self.asked.append(await request.json())
            if self.refusal is not None:
                return refused(self.refusal, "r-7")
            return StreamingResponse(self._stream(), media_type="text/event-stream")

        @app.post("/api/v1/verify/text")
        async def verify_text(request: Request) -> Any:
            return {"text": "The text of the file." if await request.body() else ""}

        @app.get("/api/v1/conversations")
        async def conversations() -> Any:
            return {"conversations": self.conversations}

        @app.get("/api/v1/receipts/{receipt_id}")
        async def receipt(receipt_id: str) -> Any:
            if receipt_id not in self.receipts:
                return refused(ApiError("not_found", message="There is no such receipt."), "r-5")
            return {"receipt": {"id": receipt_id, "answer": self.receipts[receipt_id]}, "stale": True}

        @app.get("/api/v1/receipts/{receipt_id}/export")
        async def export(receipt_id: str, form: str) -> Response:
            told = next(data for name, data in self.script if name == "generation_complete")
            answer = ShownAnswer.model_validate(told)
            receipt = Receipt.model_construct(id=receipt_id, tenant_id="t", answer=answer)
            stored = [Document(id=one["id"], content=one["text"], meta=one) for one in self.passages]
            parents = type("Parents", (), {"filter_documents": lambda _, filters: stored})()
            return Response(export_answer(receipt, parents, form), media_type=FORMS[form][0])

        @app.post("/api/v1/feedback")
        async def feedback(request: Request) -> Any:
            if self.refusal is not None:
                return refused(self.refusal, "r-6")
            self.judged.append(await request.json())
            return JSONResponse(self.judged[-1], status_code=201)

        @app.post("/api/v1/why")
        async def why() -> Any:
            return {
                "stage": "ranked_out", "label": "ranked out", "reason": "Others were nearer.",
                "passages": [{"id": "p1", "source": "tang.epub", "section": ["1 War"]}],
                "ranks": {"bm25": 1, "vectors": None}, "sizes": {"bm25": 9, "vectors": 50},
            }  # fmt: skip

        @app.get("/favicon.ico")
        async def favicon() -> Any:
            return PlainTextResponse("", status_code=404)

        return app

    async def _stream(self) -> Any:
        for number, (name, data) in enumerate(self.script, start=1):
            await asyncio.sleep(self.pause)
            if name == WAIT:
                await asyncio.to_thread(self.go.wait, 20)
                self.go.clear()
            elif name == CUT:
                raise ConnectionError("the line broke")
            else:
                yield f"id: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n: still at work\n\n"
        yield "data: [DONE]\n\n"


def source(name: str, title: str | None, **more: Any) -> dict[str, Any]:
    return {
        "source": name, "title": title, "language": "en", "records": 1, "passages": 3, "units": 10, "words": 10,
        "vectors": 10, "complete": True, "left_out": {}, **more,
    }  # fmt: skip


def ask(page: Any, text: str = "Who rose?", *, done: bool = True) -> None:
    """Ask on an open page and, unless told otherwise, wait until the answer is done."""
    page.fill("#question", text)
    page.press("#question", "Enter")
    if done:
        page.wait_for_selector(".turn:last-of-type .more", timeout=30_000)
