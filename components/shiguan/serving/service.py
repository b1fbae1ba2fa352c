"""The life of the server: everything loaded before the first request, everything let go after the last."""

import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import AsyncIterator, Callable

from fastapi import FastAPI
from haystack import logging

from shiguan.engine.library import Library
from shiguan.engine.loading import list_modes
from shiguan.errors import ConfigurationError, ShiguanError, StoreError, UnsafePipelineError
from shiguan.serving.admission import Admission
from shiguan.serving.document_routes import router as document_router
from shiguan.serving.draw_routes import router as draw_router
from shiguan.serving.engine import Engine, use_engine
from shiguan.serving.gate import install_gate
from shiguan.serving.health_routes import router as health_router
from shiguan.serving.ingest_jobs import IngestJobs
from shiguan.serving.key_ring import KeyRing
from shiguan.serving.openai_routes import router as openai_router
from shiguan.serving.rag_routes import router as rag_router
from shiguan.serving.readiness import Readiness
from shiguan.serving.routes import check_deployed, include_routes, listed_routes
from shiguan.serving.settings import ServingSettings
from shiguan.serving.shutdown_signals import on_shutdown_signal
from shiguan.tenants import TENANT_FIELD

logger = logging.getLogger(__name__)

Deploy = Callable[[FastAPI], list[str]]
"""Deploys the modes into an application and names them."""

_NOBODY = {"field": TENANT_FIELD, "operator": "==", "value": "nobody"}
"""Asks a store whether it answers, and for nothing else."""

_ROUTERS = (health_router, rag_router, document_router, openai_router, draw_router)


class Service:
    """
    Makes a bare application the server of one deployment.

        service = Service(ServingSettings.from_environment())
        service.install(app, deploy=deploy_the_modes)

    `install` adds routes and what stands before them. The models are loaded when the application starts, in its
    lifespan, so that the port answers only when questions can be answered.
    """

    def __init__(self, settings: ServingSettings) -> None:
        """Check what can be checked without loading anything."""
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
        self.keys = KeyRing(settings)
        self.admission = Admission(settings)
        self.readiness = Readiness()

    def install(self, app: FastAPI, *, deploy: Deploy) -> None:
        """Make an application the server."""
        for router in _ROUTERS:
            include_routes(app, router)
        install_gate(app, self.settings, keys=self.keys, admission=self.admission)
        app.state.settings = self.settings
        app.state.keys = self.keys
        app.state.readiness = self.readiness
        app.state.modes = self.modes

        @contextlib.asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[None]:
            with on_shutdown_signal(self.begin_shutdown):
                async with self._running(app, deploy):
                    yield

        app.router.lifespan_context = lifespan

    def begin_shutdown(self) -> None:
        """Answer nothing more and cut off what runs."""
        self.readiness.stopping = True
        self.admission.stop()

    @contextlib.asynccontextmanager
    async def _running(self, app: FastAPI, deploy: Deploy) -> AsyncIterator[None]:
        library = await asyncio.to_thread(self._open_library)
        engine = await asyncio.to_thread(Engine, self.settings)
        # It comes with the extra `transformers` alone, and where it is there Haystack has imported it.
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_num_threads(self.settings.torch_threads)
        use_engine(engine)
        app.state.engine = engine
        jobs = IngestJobs(library, self.settings.spool_path, max_pending=self.settings.max_pending_jobs)
        app.state.ingest_jobs = jobs
        try:
            await asyncio.to_thread(engine.warm_up)
            before = list(app.router.routes)
            # On this thread, since it changes the routes; the modes are loaded already, so that it is quick.
            deployed = deploy(app)
            check_deployed(app, before, self.modes, deployed)
            app.openapi_schema = None
            await asyncio.to_thread(jobs.start)
            self._watch(library, engine, jobs, deployed)
            logger.info("Serving {count} routes", count=len(listed_routes(app)))
            # What is loaded now stays: a full collection that goes through all of it holds every question up for
            # some hundred milliseconds.
            gc.collect()
            gc.freeze()
            yield
        finally:
            gc.unfreeze()
            self.begin_shutdown()
            await asyncio.to_thread(jobs.stop)
            use_engine(None)
            engine.close()

    def _open_library(self) -> Library:
        library = Library(self.settings.deployment, data_dir=self.settings.data_dir)
        for name, store in library.stores.items():
            try:
                store.count_documents_by_filter(_NOBODY)
            except ShiguanError:
                raise
            except Exception as error:
                raise StoreError(
                    f"The store of the {name} does not answer: {type(error).__name__}. Start its server, check its "
                    "address and key in the environment, and start again."
                ) from error
        return library

    def _watch(self, library: Library, engine: Engine, jobs: IngestJobs, deployed: list[str]) -> None:
        def stores() -> None:
            for store in library.stores.values():
                store.count_documents_by_filter(_NOBODY)

        def pipelines() -> None:
            if sorted(deployed) != sorted(engine.modes):
                raise ConfigurationError("Not every mode is deployed.")

        def ingest() -> None:
            if not jobs.alive:
                raise ConfigurationError("The ingest of uploads does not run.")

        self.readiness.add("stores", stores)
        # Loaded and warmed up, or the server would not have come to this line.
        self.readiness.add("models", lambda: None)
        self.readiness.add("pipelines", pipelines)
        self.readiness.add("ingest", ingest)
