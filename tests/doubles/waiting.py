"""Waits between tries that do not pass."""

import asyncio

import pytest


@pytest.fixture
def waits(monkeypatch):
    """The seconds that were waited for, none of which pass."""
    waits = []
    sleep = asyncio.sleep

    async def sleep_async(seconds):
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", sleep_async)
    return waits
