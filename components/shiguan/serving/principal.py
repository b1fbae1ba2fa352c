"""Who asks: the tenant and the role that a request has by its key."""

from contextvars import ContextVar
from dataclasses import dataclass

from starlette.requests import Request

from shiguan.serving.error_replies import ApiError

DEFAULT_TENANT = "default"
"""Whose library it is where no keys are configured."""

principal_of_request: ContextVar["Principal | None"] = ContextVar("principal_of_request", default=None)
"""The principal of the request that is being served, for code that has no request at hand."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks."""

    tenant_id: str
    role: str
    key_id: str

    @property
    def may_write(self) -> bool:
        """Whether uploads and deletions are allowed."""
        return self.role == "write"


def current_principal(request: Request) -> Principal:
    """Give a route its principal: `principal: Annotated[Principal, Depends(current_principal)]`."""
    principal = getattr(request.state, "principal", None)
    if not isinstance(principal, Principal):
        raise ApiError("unauthenticated")
    return principal


def writing_principal(request: Request) -> Principal:
    """Give a route its principal where that may write."""
    principal = current_principal(request)
    if not principal.may_write:
        raise ApiError(
            "forbidden",
            message=f"The key's role is `{principal.role}`; uploading and deleting need `write`.",
            next_step="Use a key with the role `write`.",
        )
    return principal


def check_tenant(principal: Principal, tenant_id: str | None) -> None:
    """Refuse a body that names another tenant than the key's."""
    if tenant_id is not None and tenant_id != principal.tenant_id:
        raise ApiError("tenant_mismatch")
