"""Lets a server that cannot start say why in one sentence."""

from typing import Any

from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from shiguan.errors import ShiguanError


class PlainStartupFailure:
    """
    ASGI application: another one, which reports a failed start with a sentence instead of a stack.

    Attributes are those of the application behind, so that `state` and `routes` can be looked at.
    """

    def __init__(self, app: FastAPI) -> None:
        """Stand before an application."""
        self.app = app

    def __getattr__(self, name: str) -> Any:
        """Give what the application has."""
        return getattr(self.app, name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve; only the report of a failed start is changed."""
        if scope["type"] != "lifespan":
            await self.app(scope, receive, send)
            return
        failed: list[Message] = []

        async def hold_failure(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed":
                failed.append(message)
            else:
                await send(message)

        try:
            await self.app(scope, receive, hold_failure)
        except ShiguanError as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        except BaseException:
            for message in failed:
                await send(message)
            raise
