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
