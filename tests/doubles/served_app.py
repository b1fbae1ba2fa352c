"""Some routes of the server behind its real gate, without the server's life around them."""

import json
from typing import Any

from fastapi import APIRouter, FastAPI
from tests.doubles.asgi_caller import AsgiCall

from shiguan.serving.authentication import KeyRing
from shiguan.serving.gate import install_gate
from shiguan.serving.keys import KeyFile
from shiguan.serving.request_lifetime import Admission
from shiguan.serving.settings import ServingSettings


def served_app(settings: ServingSettings, *routers: APIRouter, **state: Any) -> FastAPI:
    """Make an application of routers; `state` is what else they find in `app.state`."""
    app = FastAPI(docs_url=None, redoc_url=None)
    for router in routers:
        app.router.routes.extend(router.routes)
    for name, value in state.items():
        setattr(app.state, name, value)
    install_gate(app, settings, keys=KeyRing(settings), admission=Admission(settings))
    return app


class Served:
    """
    An application that is asked with a key of the tenant and role that a call names, or with none.

        call = await Served(settings, router)("/api/v1/rag/query", {"query": "Who?"}, who="a")
    """

    def __init__(self, settings: ServingSettings, *routers: APIRouter, **state: Any) -> None:
        self.app = served_app(settings, *routers, **state)
        self._file = KeyFile(settings.keys_path)
        self._keys = {("nobody", "read"): self._file.add("nobody", "read")[0]}

    async def __call__(
        self, path: str, body: Any = None, *, who: str | None, role: str = "read", method: str = "", **headers: str
    ) -> AsgiCall:
        """Ask, by default with GET or, where there is a body, POST, and wait for the end; bytes are sent as they are."""
        headers = {"content-type": "application/json", **headers}
        if who is not None:
            if (who, role) not in self._keys:
                self._keys[who, role] = self._file.add(who, role)[0]
            headers["authorization"] = f"Bearer {self._keys[who, role]}"
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        method = method or ("GET" if body is None else "POST")
        return await AsgiCall(self.app, path, method=method, body=data, headers=headers).done(30)
