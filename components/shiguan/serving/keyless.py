"""Which requests a server without keys answers: those of programs on its own machine, and no others."""

import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from shiguan.errors import ConfigurationError
from shiguan.serving.error_replies import ApiError

_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


def check_local_request(scope: Scope, origins: Sequence[str] = ()) -> None:
    """
    Refuse a request that does not come from this machine, or that a web page in its browser may have sent.

    A page cannot read this server by naming it with a name of its own (DNS rebinding), because the `Host` must be
    this machine's; and cannot write to it with a form, because its `Origin` must be, too.
    """
    headers = Headers(scope=scope)
    if not is_loopback((scope.get("client") or ("",))[0]) or not is_loopback((scope.get("server") or ("",))[0]):
        raise ApiError("not_local")
    if any(name in headers for name in _FORWARDED):
        raise ApiError("not_local", message="No API keys are configured, and a proxy stands before the server.")
    if not is_loopback(_host_of(f"//{headers.get('host', '')}")):
        raise ApiError("not_local", message="No API keys are configured, and the `Host` is not this machine's.")
    origin = headers.get("origin")
    if origin is not None and origin not in origins and not is_loopback(_host_of(origin)):
        raise ApiError("not_local", message="No API keys are configured, and a web page of another origin asks.")


def check_open_host(host: str, *, keyless: bool) -> None:
    """Refuse to serve other machines without keys."""
    if keyless and not is_loopback(host):
        raise ConfigurationError(
            f"No API keys are configured, and on `{host}` everybody who reaches this machine could read and change the "
            "library. Make a key with `shiguan keys add --tenant NAME --role write`, or listen on 127.0.0.1."
        )


def host_of_command(arguments: Sequence[str]) -> str | None:
    """Find the address in the arguments of `uvicorn`, which does not tell it to what it serves."""
    found = None
    for position, argument in enumerate(arguments):
        if argument == "--host" and position + 1 < len(arguments):
            found = arguments[position + 1]
        elif argument.startswith("--host="):
            found = argument.removeprefix("--host=")
    return found


def is_loopback(host: str | None) -> bool:
    """Tell whether an address is this machine's own."""
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
