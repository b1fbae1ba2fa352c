"""`shiguan serve` at its door."""

import socket

import pytest

from shiguan.commands.serve import _bound, _run
from shiguan.errors import ConfigurationError
from shiguan.serving.settings import ServingSettings


async def application(scope, receive, send):
    """A server without routes that starts and ends."""
    while scope["type"] == "lifespan":
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def test_the_second_of_two_servers_that_took_a_port_says_so(tmp_path):
    with _bound("127.0.0.1", 0) as ours, socket.socket() as other:
        port = ours.getsockname()[1]
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        with pytest.raises(ConfigurationError, match=rf"127.0.0.1:{port} cannot be listened on: .*in use"):
            _run(application, ServingSettings(data_dir=tmp_path), ours, lambda url: None)


def test_a_port_that_is_taken_is_refused_before_anything_is_loaded():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigurationError, match="--port"):
            _bound("127.0.0.1", port)
