"""Puts everything between the network and the routes in its place."""

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from shiguan.serving.admission import Admission
from shiguan.serving.authentication import Authentication
from shiguan.serving.error_handlers import install_error_replies
from shiguan.serving.key_ring import KeyRing
from shiguan.serving.request_identity import RequestIdentity
from shiguan.serving.request_lifetime import RequestLifetime
from shiguan.serving.settings import ServingSettings


def install_gate(app: FastAPI, settings: ServingSettings, *, keys: KeyRing, admission: Admission) -> None:
    """Let every request pass, from outside in: its id, the origins that may ask, its key, its turn and its time."""
    app.user_middleware.clear()
    # The one that is added last stands outermost.
    app.add_middleware(RequestLifetime, settings=settings, admission=admission)
    app.add_middleware(Authentication, keys=keys, origins=settings.cors_origins)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key", "X-Request-ID"],
            expose_headers=["X-Request-ID", "Retry-After", "Location"],
        )
    app.add_middleware(RequestIdentity)
    install_error_replies(app)
