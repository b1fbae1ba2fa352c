"""The routes of the application, flat, so that each can be seen and none comes in unseen."""

from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute

from shiguan.errors import ConfigurationError


def include_routes(app: FastAPI, router: APIRouter) -> None:
    """Add the routes of a router one by one."""
    app.router.routes.extend(router.routes)


def only_routes(app: FastAPI) -> None:
    """Take out every route that the application came with, and its pages with foreign scripts."""
    app.router.routes.clear()
    app.docs_url = app.redoc_url = None
    # An address is right or wrong; a redirect would let a client send its body twice.
    app.router.redirect_slashes = False


def listed_routes(app: FastAPI) -> list[tuple[str, str]]:
    """List what can be reached."""
    found: set[tuple[str, str]] = set()
    for route in app.router.routes:
        path = getattr(route, "path", None)
        methods = getattr(route, "methods", None)
        if path is None or not methods:
            found.add(("*", path or type(route).__name__))
        else:
            found.update((method, path) for method in methods if method != "HEAD")
    return sorted(found, key=lambda entry: (entry[1], entry[0]))


def check_deployed(app: FastAPI, before: list[BaseRoute], modes: list[str], deployed: list[str]) -> None:
    """Make sure that what was deployed is what should be: each mode, and its one route."""
    missing, foreign = sorted(set(modes) - set(deployed)), sorted(set(deployed) - set(modes))
    if missing or foreign:
        what = f"missing are {', '.join(missing)}" if missing else f"not known are {', '.join(foreign)}"
        raise ConfigurationError(
            f"The server would serve other modes than it should: {what}. The log above says why; every mode has a "
            "folder in hayhooks/wrappers/ and a file in pipelines/."
        )
    expected = {("POST", f"/{mode}/run") for mode in modes} | {("GET", app.openapi_url)}
    known = {id(route) for route in before}
    for route in app.router.routes:
        if id(route) in known:
            continue
        came = {(method, getattr(route, "path", "")) for method in getattr(route, "methods", None) or ("*",)}
        if came - {("HEAD", app.openapi_url)} - expected:
            raise ConfigurationError(
                f"The server would have the route {sorted(came)[0]} that nobody asked for. Check the version of "
                "Hayhooks: `pip install 'shiguan[serve]'`."
            )
