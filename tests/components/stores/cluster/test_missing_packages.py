"""Without the extras the message says what to install, wherever the stores are first needed."""

import sys

import pytest

from shiguan.engine.loading import load_pipeline, load_stores
from shiguan.errors import ConfigurationError


@pytest.mark.parametrize("absent", ["elasticsearch", "qdrant"])
@pytest.mark.parametrize(
    "load", [lambda: load_stores("elasticsearch_qdrant"), lambda: load_pipeline("elasticsearch_qdrant", "simple")]
)
def test_a_missing_extra_is_named(monkeypatch, absent, load):
    for name in [name for name in sys.modules if name.split(".")[:3] == ["shiguan", "stores", "cluster"]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, f"haystack_integrations.document_stores.{absent}", None)
    with pytest.raises(ConfigurationError) as error:
        load()
    assert f"needs the package `{absent}-haystack`" in str(error.value)
    assert '[elasticsearch,qdrant]"' in str(error.value)
