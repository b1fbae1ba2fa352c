"""`shiguan serve` at its door."""

import socket

import pytest

from shiguan.commands.serve import _bound
from shiguan.errors import ConfigurationError


def test_a_port_that_is_taken_is_refused_before_anything_is_loaded():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigurationError, match="--port"):
            _bound("127.0.0.1", port)
