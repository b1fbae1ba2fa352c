"""`shiguan serve` at its door."""

import argparse
import socket
from pathlib import Path

import pytest

from shiguan.commands.models import awaited_models
from shiguan.commands.serve import _bound, _config, _print_loading
from shiguan.errors import ConfigurationError
from shiguan.models.weights import FILE, SHA256
from shiguan.serving.settings import ServingSettings


def test_a_port_that_is_taken_is_refused_before_anything_is_loaded():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigurationError, match="--port"):
            _bound("127.0.0.1", port)


OPTIONS = argparse.Namespace(host="127.0.0.1", json=False)


def test_what_is_loaded_is_said_at_once_and_at_the_first_start_which_weights_are_prepared(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("SHIGUAN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("shiguan.models.weights.weights_file", lambda: tmp_path / FILE)
    (tmp_path / FILE).touch()
    _print_loading(OPTIONS, ServingSettings(data_dir=tmp_path))
    loading, said = capsys.readouterr().out.splitlines()
    assert (loading.startswith("Loading embedded ("), "simple" in loading, str(tmp_path) in loading) == (True,) * 3
    assert said == "First start: intfloat/multilingual-e5-small is prepared, once; this takes some seconds."
    (tmp_path / "cache" / f"e5-{SHA256[:12]}-2").mkdir(parents=True)
    _print_loading(OPTIONS, ServingSettings(data_dir=tmp_path))
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_first_start_of_the_cluster_names_each_model_that_it_downloads(monkeypatch):
    monkeypatch.setattr("shiguan.models.hub.local_folder", lambda name: None)
    embedder, ranker = awaited_models("elasticsearch_qdrant")
    for told, model, in_simple in ((embedder, "bge-m3", True), (ranker, "bge-reranker-v2-m3", False)):
        assert told.startswith(f"The weights of BAAI/{model} (")
        assert ("simple" in told.split(")")[0]) is in_simple
    assert "shiguan models fetch --deployment elasticsearch_qdrant" in ranker


def test_an_idle_connection_outlives_that_of_a_proxy():
    """Otherwise a question that the proxy sends while the server closes the connection is lost."""
    proxy = (Path(__file__).parents[3] / "docker" / "nginx.conf").read_text(encoding="utf-8")
    assert "keepalive_timeout" not in proxy  # so that nginx keeps its own default, 60 s
    assert _config(None).timeout_keep_alive > 60
