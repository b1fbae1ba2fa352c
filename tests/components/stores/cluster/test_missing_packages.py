"""Without the extras the message says what to install, wherever the stores are first needed."""

import importlib.util
import sys

import pytest

from shiguan.engine.loading import load_pipeline, load_stores
from shiguan.errors import ConfigurationError


@pytest.mark.parametrize("absent", ["elasticsearch", "qdrant"])
@pytest.mark.parametrize(
    "load", [lambda: load_stores("elasticsearch_qdrant"), lambda: load_pipeline("elasticsearch_qdrant", "simple")]
)
def test_a_missing_extra_is_named(monkeypatch, absent, load):
    find_spec = importlib.util.find_spec

    def without(name, package=None):
        return None if name.endswith(f"document_stores.{absent}") else find_spec(name, package)

    for name in [name for name in sys.modules if name.split(".")[:3] == ["shiguan", "stores", "cluster"]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(ConfigurationError) as error:
        load()
    assert f"needs the package `{absent}-haystack`" in str(error.value)
    assert 'pip install "shiguan[elasticsearch,qdrant]"' in str(error.value)
