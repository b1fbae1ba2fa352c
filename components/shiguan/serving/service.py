"""The life of the server: everything is loaded before the first request, and released after the last."""

import asyncio
import contextlib
import gc
import os
import re
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from importlib.util import find_spec

from fastapi import Depends, FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from shiguan.engine.library import Library
from shiguan.engine.loading import list_modes
from shiguan.errors import ConfigurationError, ShiguanError, StoreError
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
from shiguan.serving.engine import Engine, in_use
from shiguan.serving.error_replies import ApiError, counted
from shiguan.serving.gate import install_gate
from shiguan.serving.ingest_jobs import IngestJobs
from shiguan.serving.request_lifetime import Admission
from shiguan.serving.settings import ServingSettings
from shiguan.serving.wrapped_mode import check_names
from shiguan.tenants import of_tenant

_MODE_NAME = re.compile(r"[\w-]{1,40}")

_RARELY = (2_000, 20, 100)
"""Python's thresholds of garbage collection in a server, about 60 times as high as by default."""
_SWITCH_SECONDS = 0.0005
"""How long a thread that computes keeps the interpreter from the others: a question changes threads some fifty times,
and beside two checks took 1.2 s with Python's own 5 ms, .3 s with this."""


class Service:
    """Library and models are loaded when it is made, so that the port answers only when questions can be answered."""

    def __init__(self, settings: ServingSettings) -> None:
        for mode in list_modes().get(settings.deployment, ()):
            if not _MODE_NAME.fullmatch(mode):
                raise ConfigurationError(
                    f"The mode `{mode}` cannot be served: its name would be part of addresses. Give its file a name of "
                    "1 to 40 letters, digits, `_` and `-`."
                )
        self.settings = settings
        self.keys = KeyRing(settings)
        self.admission = Admission(settings)
        self.readiness = status_routes.Readiness()
        self.engine = Engine(settings)
        check_stores(self.engine.library)
        self.jobs = IngestJobs(self.engine.library, settings.folder / "uploads")
        # Only the extra `transformers` installs it, and then Haystack has imported it.
        torch = sys.modules.get("torch")
        if torch is not None and "OMP_NUM_THREADS" not in os.environ:
            torch.set_num_threads(1)  # more of them spin on busy cores
        self.engine.warm_up()

    def install(self, app: FastAPI, wrapped: FastAPI) -> None:
        """Add everything to an application, and from Hayhooks' own the routes that run the modes."""
        ours = (page_routes, status_routes, rag_routes, document_routes, verify_routes, review_routes, openai_routes)
        for routes in ours:
            app.router.routes.extend(routes.router.routes)
        page_routes.describe(app)
        install_gate(app, self.settings, keys=self.keys, admission=self.admission)
        app.state.readiness = self.readiness
        app.state.ingest_jobs = self.jobs
        app.router.lifespan_context = partial(self._running, wrapped=wrapped)

    def stop(self) -> None:
        """Refuse new requests and cancel the running ones."""
        self.readiness.stopping = True
        self.admission.stop()

    @contextlib.asynccontextmanager
    async def _running(self, app: FastAPI, wrapped: FastAPI) -> AsyncIterator[dict[str, Callable[[], None]]]:
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self.engine.close)
            stack.enter_context(in_use(self.engine))
            if find_spec("mcp") is None:  # the extra of that name
                app.router.routes.append(Route("/mcp", _refuse_mcp, methods=["POST"]))
            else:
                route = _mcp_route(self.engine)
                app.router.routes.append(await stack.enter_async_context(route))
            wrapped.router.dependencies.append(Depends(check_names))
            # Hayhooks deploys its wrappers when it starts. Its routes for deploying, undeploying and drawing are left
            # out.
            await stack.enter_async_context(wrapped.router.lifespan_context(wrapped))
            taken = {f"/{mode}/run" for mode in self.engine.modes}
            app.router.routes.extend(route for route in wrapped.routes if getattr(route, "path", "") in taken)
            await asyncio.to_thread(self.jobs.start)
            stack.push_async_callback(asyncio.to_thread, self.jobs.stop)
            self.readiness.checks = {
                "keys": self.keys.check,
                "stores": partial(check_stores, self.engine.library),
                # They are loaded and warmed up here.
                "models": bool,
                "pipelines": bool,
                "ingest": self.jobs.check,
            }
            # A full garbage collection halts all questions for a hundred milliseconds and more. What is loaded now is
            # left out of it, and as questions leave next to nothing in circles, one in some thousand is enough.
            gc.collect()
            gc.freeze()
            stack.callback(gc.unfreeze)
            stack.callback(gc.set_threshold, *gc.get_threshold())
            gc.set_threshold(*_RARELY)
            stack.callback(sys.setswitchinterval, sys.getswitchinterval())
            sys.setswitchinterval(_SWITCH_SECONDS)
            stack.callback(self.stop)
            yield {"stop": self.stop}  # `Connection` calls it


def check_stores(library: Library) -> None:
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
        if store.folder is not None and not store.folder.is_dir():  # files that are open are read on
            raise StoreError(f"The folder `{store.folder}` is gone. Restore it, and start again.")


async def _refuse_mcp(_: Request) -> Response:
    raise ApiError(
        "not_found",
        message="This server does not speak MCP: the package `mcp` is not installed.",
        next_step="Ask its operator to install `shiguan[mcp]`, or use the other routes, which /openapi.json lists.",
    )


@contextlib.asynccontextmanager
async def _mcp_route(engine: Engine) -> AsyncIterator[Route]:
    """Provide the route while its tools can be called; a call is a request like any other."""
    from mcp.server.streamable_http_manager import StreamableHTTPASGIApp  # noqa: PLC0415  # an extra
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415

    from shiguan.serving.mcp_tools import tool_server, words_of  # noqa: PLC0415

    server = tool_server(
        engine,
        tenant=lambda: current_principal().tenant_id,
        words_of=lambda error: words_of(counted(error)),
    )
    # The middleware has checked the caller and the origin.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    server.streamable_http_app(json_response=True, stateless_http=True, transport_security=unchecked)
    async with server.session_manager.run():
        yield Route("/mcp", StreamableHTTPASGIApp(server.session_manager), methods=["POST"])
