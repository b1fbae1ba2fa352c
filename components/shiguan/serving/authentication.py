"""Authentication by API key, and the principal of each request."""

import ipaddress
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends
from haystack import logging
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from shiguan.errors import ConfigurationError
from shiguan.resources import text_hash
from shiguan.serving.current_request import Principal, current_request, in_request
from shiguan.serving.error_replies import ApiError, counted, error_response
from shiguan.serving.keys import KeyFile, KeyRecord
from shiguan.serving.settings import ServingSettings

DEFAULT_TENANT = "default"
"""The tenant of all requests if no keys are configured."""


def current_principal() -> Principal:
    """Return the principal of the current request."""
    principal = current_request().principal
    if principal is None:
        raise ApiError("unauthenticated")
    return principal


# Coroutines: FastAPI runs other dependencies in a thread.
async def reading_principal() -> Principal:
    return current_principal()


async def writing_principal() -> Principal:
    principal = current_principal()
    _check_may_write(principal)
    return principal


Reader = Annotated[Principal, Depends(reading_principal)]
Writer = Annotated[Principal, Depends(writing_principal)]
"""Parameters of routes: the caller, and a caller who may write."""


def _check_may_write(principal: Principal) -> None:
    if principal.role != "write":
        raise ApiError(
            "forbidden",
            message=f"The key's role is `{principal.role}`; uploading and deleting need `write`.",
            next_step="Use a key with the role `write`.",
        )


def check_tenant(principal: Principal, tenant_id: str | None) -> None:
    if tenant_id is not None and tenant_id != principal.tenant_id:
        raise ApiError("tenant_mismatch")


_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


def check_local_request(scope: Scope, origins: Sequence[str]) -> None:
    """Refuse a request from elsewhere, or one that a web page may have sent, by DNS rebinding or with a form."""
    headers = Headers(scope=scope)
    if not is_loopback((scope.get("client") or ("",))[0]) or not is_loopback((scope.get("server") or ("",))[0]):
        raise ApiError("not_local")
    if any(name in headers for name in _FORWARDED):
        raise ApiError("not_local", message="No API keys are configured, and a proxy is in front of the server.")
    if not is_loopback(_host_of(f"//{headers.get('host', '')}")):
        raise ApiError("not_local", message="No API keys are configured, and the `Host` is not this machine's.")
    origin = headers.get("origin")
    if origin is not None and origin not in origins and not is_loopback(_host_of(origin)):
        raise ApiError("not_local", message="No API keys are configured, and a web page of another origin asks.")


def check_keys_file(settings: ServingSettings) -> None:
    """Refuse to start without the keys of a file that is named: it was mistyped, or is not mounted."""
    if settings.keys_file is not None and not settings.keys_file.exists():
        raise ConfigurationError(
            f"SHIGUAN_KEYS_FILE names {settings.keys_file}, which does not exist. Make it with `shiguan keys add "
            "--tenant NAME --role write`, or unset the variable to answer this machine alone."
        )


def check_open_host(host: str, *, keyless: bool) -> None:
    if keyless and not is_loopback(host):
        raise ConfigurationError(
            f"No API keys are configured, and on `{host}` everybody who reaches this machine could read and change the "
            "library. Make a key with `shiguan keys add --tenant NAME --role write`, or listen on 127.0.0.1."
        )


def is_loopback(host: str | None) -> bool:
    if not host:
        return False
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


logger = logging.getLogger(__name__)


class KeyRing:
    """Finds the principal of a key, by the file as it is at each request; while it cannot be read none is accepted."""

    def __init__(self, settings: ServingSettings) -> None:
        self._file = KeyFile(settings.keys_path)
        self._records: dict[str, KeyRecord] | None = None  # until there is a file
        self._stamp: tuple[int, ...] | None = None
        self._problem: Exception | None = None
        self._refresh()
        if self._problem is not None:
            raise self._problem

    @property
    def keyless(self) -> bool:
        """Whether no keys are configured, so that only this machine may ask."""
        self._refresh()
        return self._records is None and self._problem is None

    def check(self) -> None:
        self._refresh()
        if self._problem is not None:
            raise ApiError("not_ready", message="The server's API keys cannot be read.")

    def principal(self, key: str) -> Principal | None:
        self.check()
        record = (self._records or {}).get(text_hash(key)[:12])
        if record is None or not record.fits(key):
            return None
        return Principal(tenant_id=record.tenant, role=record.role, key_id=record.id)

    def _refresh(self) -> None:
        try:
            status = self._file.path.stat()
            stamp: tuple[int, ...] | None = (status.st_mtime_ns, status.st_ino, status.st_size)
        except FileNotFoundError:
            stamp = None
        except OSError:
            stamp = ()
        if stamp == self._stamp:
            return
        problem = None
        try:
            # Where the file was there and is gone, its keys are gone, too, but the server stays closed.
            self._records = {record.id: record for record in self._file.read()}
        except Exception as error:
            problem = error
            logger.error("No key is accepted until the file is repaired. {problem}", problem=str(error))
        self._problem, self._stamp = problem, stamp


OPEN_PATHS = frozenset({"/health", "/ready", "/", "/docs"})
"""Paths without a key: probes of load balancers, and the page that asks for the key. They show no tenant's data."""


def is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith("/ui/")


METRICS_PATH = "/metrics"
UPLOAD_PATH = "/api/v1/documents"
_LONGEST_KEY = 512


class Authentication:
    """ASGI middleware: refuses requests without a valid key or, if there are no keys, from any other machine."""

    def __init__(self, app: ASGIApp, *, keys: KeyRing, origins: Sequence[str]) -> None:
        self.app = app
        self.keys = keys
        self.origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_open(scope["path"]):
            await self.app(scope, receive, send)
            return
        try:
            principal = self._principal(scope)
        except ApiError as error:
            await error_response(counted(error))(scope, receive, send)
            return
        with in_request(principal=principal):
            await self.app(scope, receive, send)

    def _principal(self, scope: Scope) -> Principal:
        if self.keys.keyless:
            check_local_request(scope, self.origins)
            return Principal(tenant_id=DEFAULT_TENANT, role="write", key_id="keyless")
        key = _key(Headers(scope=scope))
        principal = self.keys.principal(key) if key else None
        if principal is None:
            raise ApiError("unauthenticated")
        if (principal.role == "metrics") != (scope["path"] == METRICS_PATH):
            raise ApiError(
                "forbidden",
                message="/metrics is read with a key of the role `metrics`, and such a key reads nothing else.",
                next_step="Make one with `shiguan keys add --role metrics`.",
            )
        if scope["path"].startswith(UPLOAD_PATH) and scope["method"] in ("POST", "DELETE"):
            _check_may_write(principal)  # before the request takes a place that others wait for
        return principal


def _key(headers: Headers) -> str | None:
    """Read `Authorization: Bearer KEY`, else `X-API-Key: KEY`."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    key = bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "").strip()
    return key if 0 < len(key) <= _LONGEST_KEY else None
