import numpy
import pytest
from haystack import Pipeline

from shiguan.models import engine as engine_module
from shiguan.models import weights
from shiguan.query.e5_text_embedder import E5TextEmbedder


def test_run_gives_the_vector_of_a_question():
    result = E5TextEmbedder().run(text="郭子仪是谁？")
    assert result == {
        "embedding": engine_module.engine().embed(["郭子仪是谁？"], "query")[0].tolist(),
        "warnings": [],
    }


@pytest.mark.parametrize("text", [None, 1, ["a"]])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(TypeError, match="must be a string"):
        E5TextEmbedder().run(text=text)


def test_missing_weights_give_no_vector_and_say_what_to_install(monkeypatch):
    monkeypatch.setattr(weights, "PACKAGE", "no_such_package")
    engine_module._load.cache_clear()
    embedder = E5TextEmbedder()
    embedder.warm_up()
    result = embedder.run(text="Who?")
    assert result["embedding"] == []
    (warning,) = result["warnings"]
    assert "words alone" in warning
    assert "pip install no_such_package" in warning
    assert "SentenceTransformersTextEmbedder" in warning


def test_round_trip_through_yaml():
    pipeline = Pipeline()
    pipeline.add_component("embedder", E5TextEmbedder())
    assert isinstance(Pipeline.loads(pipeline.dumps()).get_component("embedder"), E5TextEmbedder)


def test_a_vector_is_remembered_for_its_tenant_alone(tmp_path, monkeypatch):
    from shiguan.llm.reply_cache import TenantCache, caching
    from shiguan.query import e5_text_embedder

    made = []

    class Engine:
        def embed(self, texts, kind):
            made.append((texts, kind))
            return numpy.ones((1, 3), dtype=numpy.float32)

    monkeypatch.setattr(e5_text_embedder, "engine", Engine)
    e5_text_embedder._remembered.cache_clear()
    hits = []
    for tenant, text in [("a", "Who?"), ("a", "Who?"), ("b", "Who?"), ("a", "When?"), ("a", "Who?")]:
        with caching(TenantCache(tmp_path, tenant)) as cache:
            assert E5TextEmbedder().run(text=text)["embedding"] == [1.0, 1.0, 1.0]
        hits.append(cache.hits["vectors"])
    assert hits == [0, 1, 0, 0, 1]
    assert len(made) == 3
    E5TextEmbedder().run(text="Who?")  # nobody's question: embedded, and not remembered
    assert len(made) == 4
    e5_text_embedder._remembered.cache_clear()
