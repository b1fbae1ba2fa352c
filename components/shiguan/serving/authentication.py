"""Lets a request in by its key, and says whose it is to everything behind."""

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from shiguan.serving.error_replies import ApiError, error_response
from shiguan.serving.key_ring import KeyRing
from shiguan.serving.keyless import check_local_request
from shiguan.serving.metrics import record_failure
from shiguan.serving.principal import DEFAULT_TENANT, Principal, principal_of_request

OPEN_PATHS = frozenset({"/health", "/ready"})
"""What needs no key, because load balancers ask it and it tells nothing of anybody."""

METRICS_PATH = "/metrics"
_LONGEST_KEY = 512


class Authentication:
    """
    ASGI middleware: no key, no answer.

    Every path but `OPEN_PATHS` needs a key, paths that do not exist too: nobody learns without one what there is. The
    principal is set on `request.state.principal` and in `principal_of_request`. Keys with the role `metrics` read
    /metrics and nothing else, and no other key reads it: its numbers are those of all tenants together.

    Where no keys are configured, this machine's programs ask as the tenant `default`, who may write.
    """

    def __init__(self, app: ASGIApp, *, keys: KeyRing, origins: Sequence[str] = ()) -> None:
        """Stand before an application."""
        self.app = app
        self.keys = keys
        self.origins = tuple(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self.app(scope, receive, send)
            return
        try:
            principal = self._principal(scope)
        except ApiError as error:
            record_failure(error.kind)
            await error_response(error, scope.get("state", {}).get("request_id"))(scope, receive, send)
            return
        scope.setdefault("state", {})["principal"] = principal
        token = principal_of_request.set(principal)
        try:
            await self.app(scope, receive, send)
        finally:
            principal_of_request.reset(token)

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
        return principal


def _key(headers: Headers) -> str | None:
    """Read `Authorization: Bearer KEY`, else `X-API-Key: KEY`."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    key = bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "").strip()
    return key if 0 < len(key) <= _LONGEST_KEY else None
