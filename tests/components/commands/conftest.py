"""Runs commands as a person types them, over the library of four short texts."""

import io

import pytest
from tests.doubles.cluster import elasticsearch, qdrant, small_models, waits  # noqa: F401  fixtures
from tests.doubles.small_library import TENANT, small_library

from shiguan.cli import main


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return small_library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def shiguan(data_dir, capsys, monkeypatch):
    """Run a command with something `typed` on its standard input; returns its exit code and what it printed."""

    def run(*arguments, typed="", tenant=TENANT, folder=data_dir):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        code = main([*map(str, arguments), "--tenant", tenant, "--data-dir", str(folder)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run
