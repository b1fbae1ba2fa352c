"""Some routes of the server behind its real gate, without the server's life around them."""

from typing import Any

from fastapi import APIRouter, FastAPI

from shiguan.serving.authentication import KeyRing
from shiguan.serving.gate import install_gate
from shiguan.serving.long_work import LongWork
from shiguan.serving.request_lifetime import Admission
from shiguan.serving.settings import ServingSettings


def served_app(settings: ServingSettings, *routers: APIRouter, **state: Any) -> FastAPI:
    """Make an application of routers; `state` is what else they find in `app.state`."""
    app = FastAPI()
    for router in routers:
        app.router.routes.extend(router.routes)
    for name, value in {"settings": settings, "long_work": LongWork(settings.request_timeout), **state}.items():
        setattr(app.state, name, value)
    install_gate(app, settings, keys=KeyRing(settings), admission=Admission(settings))
    return app
