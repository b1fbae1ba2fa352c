"""The life of the server: load everything before the first request, release it after the last."""

import asyncio
import contextlib
import gc
import os
import re
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from importlib.util import find_spec
from types import FrameType
from typing import Any

from fastapi import APIRouter, FastAPI
from haystack import logging
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shiguan.engine.library import Library
from shiguan.engine.loading import list_modes
from shiguan.errors import ConfigurationError, ShiguanError, StoreError, UnsafePipelineError
from shiguan.serving import (
    document_routes,
    openai_routes,
    page_routes,
    rag_routes,
    review_routes,
    status_routes,
    verify_routes,
)
from shiguan.serving.authentication import KeyRing, current_principal
from shiguan.serving.engine import Engine, read_request, use_engine
from shiguan.serving.error_replies import counted
from shiguan.serving.gate import install_gate
from shiguan.serving.ingest_jobs import IngestJobs
from shiguan.serving.request_lifetime import Admission
from shiguan.serving.settings import ServingSettings
from shiguan.serving.telemetry import traces
from shiguan.tenants import of_tenant


def include_routes(app: FastAPI, router: APIRouter) -> None:
    app.router.routes.extend(router.routes)


_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def on_shutdown_signal(begin: Callable[[], None]) -> Iterator[None]:
    """
    Call a function on the event loop as soon as the process gets a signal to end.

    ASGI reports a shutdown only after the last request. A request that waits for a slow model would keep the process
    alive that long; on the signal itself, the application can cancel it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # a test's server in a thread has no signals
        return
    loop = asyncio.get_running_loop()
    before: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in _SIGNALS}

    def handle(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop may be closed already
            loop.call_soon_threadsafe(begin)
        previous = before[signal.Signals(number)]
        if callable(previous):
            previous(number, frame)

    for number in _SIGNALS:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


logger = logging.getLogger(__name__)

_SAVE_SECONDS = 60
_MODE_NAME = re.compile(r"[\w-]{1,40}")


class Service:
    """
    `install` adds routes and middleware. The models are loaded in the application's lifespan, so that the port answers
    only when questions can be answered.
    """

    def __init__(self, settings: ServingSettings) -> None:
        if os.environ.get("HAYSTACK_UNSAFE_DESERIALIZATION"):
            raise UnsafePipelineError(
                "HAYSTACK_UNSAFE_DESERIALIZATION is set, which lets a pipeline file load any code. Unset it and start "
                "again."
            )
        known = list_modes()
        if settings.deployment not in known:
            raise ConfigurationError(
                f"There is no deployment `{settings.deployment}`. Known deployments: {', '.join(known)}. Name one of "
                "these in SHIGUAN_DEPLOYMENT or with `--deployment`."
            )
        self.settings = settings
        self.modes = known[settings.deployment]
        for mode in self.modes:
            if not _MODE_NAME.fullmatch(mode):
                raise ConfigurationError(
                    f"The mode `{mode}` cannot be served: its name would be part of addresses. Give its file a name of "
                    "1 to 40 letters, digits, `_` and `-`."
                )
        self.keys = KeyRing(settings)
        self.admission = Admission(settings)
        self.readiness = status_routes.Readiness()

    def install(self, app: FastAPI, wrapped: FastAPI) -> None:
        """Add everything to an application, and from Hayhooks' own the routes that run the modes."""
        ours = (page_routes, status_routes, rag_routes, document_routes, verify_routes, review_routes, openai_routes)
        for routes in ours:
            include_routes(app, routes.router)
        page_routes.describe(app)
        install_gate(app, self.settings, keys=self.keys, admission=self.admission)
        app.add_middleware(PlainStartupFailure)
        app.state.settings = self.settings
        app.state.readiness = self.readiness
        app.state.modes = self.modes

        @contextlib.asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[None]:
            with on_shutdown_signal(self.begin_shutdown), traces(self.settings.traces == "on"):
                async with self._running(app, wrapped):
                    yield

        app.router.lifespan_context = lifespan

    def begin_shutdown(self) -> None:
        """Refuse new requests and cancel the running ones."""
        self.readiness.stopping = True
        self.admission.stop()

    @contextlib.asynccontextmanager
    async def _running(self, app: FastAPI, wrapped: FastAPI) -> AsyncIterator[None]:
        library = await asyncio.to_thread(self._open_library)
        engine = await asyncio.to_thread(Engine, self.settings)
        # Only the extra `transformers` installs it, and then Haystack has imported it.
        torch = sys.modules.get("torch")
        if torch is not None and "OMP_NUM_THREADS" not in os.environ:
            torch.set_num_threads(1)  # more of them spin on busy cores
        use_engine(engine)
        jobs = IngestJobs(library, self.settings.spool_path, max_pending=self.settings.max_pending_jobs)
        app.state.ingest_jobs = jobs
        saving: asyncio.Task[None] | None = None
        open_until_the_end = contextlib.AsyncExitStack()
        try:
            await asyncio.to_thread(engine.warm_up)
            if find_spec("mcp") is not None:  # the extra of that name
                app.router.routes.append(await open_until_the_end.enter_async_context(_mcp_route(engine, library)))
            # Hayhooks deploys its wrappers when it starts. Its routes for deploying, undeploying and drawing are left
            # out.
            await open_until_the_end.enter_async_context(wrapped.router.lifespan_context(wrapped))
            taken = {f"/{mode}/run" for mode in self.modes}
            app.router.routes.extend(route for route in wrapped.routes if getattr(route, "path", "") in taken)
            await asyncio.to_thread(jobs.start)
            self.readiness.checks = {
                "keys": self.keys.check,
                "stores": partial(_check_stores, library),
                # They are loaded and warmed up here.
                "models": bool,
                "pipelines": bool,
                "ingest": jobs.check,
            }
            saving = asyncio.create_task(self._save_use())
            # What is loaded now stays; a full garbage collection over all of it would delay every question by some
            # hundred milliseconds.
            gc.collect()
            gc.freeze()
            yield
        finally:
            gc.unfreeze()
            self.begin_shutdown()
            if saving is not None:
                saving.cancel()
            await asyncio.to_thread(self.keys.save_use)
            await open_until_the_end.aclose()
            await asyncio.to_thread(jobs.stop)
            use_engine(None)
            engine.close()

    async def _save_use(self) -> None:
        while True:
            await asyncio.sleep(_SAVE_SECONDS)
            await asyncio.to_thread(self.keys.save_use)

    def _open_library(self) -> Library:
        library = Library(self.settings.deployment, data_dir=self.settings.data_dir)
        _check_stores(library)
        return library


def _check_stores(library: Library) -> None:
    for name, store in library.stores.items():
        try:
            store.count_documents_by_filter(of_tenant("nobody"))
        except ShiguanError:
            raise
        except Exception as error:
            raise StoreError(
                f"The store of the {name} does not answer: {type(error).__name__}. Start its server, check its address "
                "and key in the environment, and start again."
            ) from error


@contextlib.asynccontextmanager
async def _mcp_route(engine: Engine, library: Library) -> AsyncIterator[Route]:
    """Provide the route while its tools can be called; a call is a request like any other."""
    from mcp.server.streamable_http_manager import StreamableHTTPASGIApp  # noqa: PLC0415  # an extra
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415

    from shiguan.serving.mcp_tools import tool_server  # noqa: PLC0415

    async def ask(query: str, mode: str, conversation_id: str | None, tenant_id: str) -> dict[str, Any]:
        given = {"query": query, "mode": mode, "conversation_id": conversation_id, "include_sources": False}
        return await engine.ask(read_request(given), tenant_id)

    def words_of(error: Exception) -> str:
        reply = counted(error).body()["error"]
        return f"{reply['message']} {reply['next_step']}".strip()

    def tenant() -> str:
        return current_principal().tenant_id

    server = tool_server(library, engine.modes, ask, engine.search, engine.verify, tenant=tenant, words_of=words_of)
    # The middleware has checked the caller and the origin.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    server.streamable_http_app(json_response=True, stateless_http=True, transport_security=unchecked)
    async with server.session_manager.run():
        yield Route("/mcp", StreamableHTTPASGIApp(server.session_manager), methods=["POST"])


class PlainStartupFailure:
    """ASGI middleware: a failed start is reported with a sentence instead of a traceback."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_plainly(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed" and isinstance(error := sys.exception(), ShiguanError):
                message["message"] = str(error)
            await send(message)

        await self.app(scope, receive, send_plainly if scope["type"] == "lifespan" else send)
