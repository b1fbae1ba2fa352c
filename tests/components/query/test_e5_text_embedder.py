import contextvars
import threading

import numpy
import pytest

from shiguan.llm.run import Run
from shiguan.models import engine as engine_module
from shiguan.models import weights
from shiguan.query import e5_text_embedder
from shiguan.query.e5_text_embedder import E5TextEmbedder


def test_run_gives_the_vector_of_a_question():
    vector = engine_module.engine().embed(["郭子仪是谁？"], "query")[0].tolist()
    assert E5TextEmbedder().run(text="郭子仪是谁？") == {"embedding": vector, "warnings": []}


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


class Engine:
    """Writes down what it embeds, and waits for the test to let it go on."""

    def __init__(self):
        self.made, self.begun, self.go = [], threading.Event(), threading.Event()
        self.go.set()

    def embed(self, texts, kind):
        self.made.append((texts, kind))
        self.begun.set()
        assert self.go.wait(30)
        return numpy.ones((1, 3), dtype=numpy.float32)


@pytest.fixture
def scripted(monkeypatch):
    scripted = Engine()
    monkeypatch.setattr(e5_text_embedder, "engine", lambda: scripted)
    e5_text_embedder._remembered.cache_clear()
    return scripted


def test_a_vector_is_remembered_for_its_tenant_alone(scripted):
    counts = []
    for tenant, text in [("a", "Who?"), ("a", "Who?"), ("b", "Who?"), ("a", "When?"), ("a", "Who?")]:
        with Run(tenant_id=tenant).entered():
            assert E5TextEmbedder().run(text=text)["embedding"] == [1.0, 1.0, 1.0]
        counts.append(len(scripted.made))
    assert counts == [1, 1, 2, 3, 3]
    E5TextEmbedder().run(text="Who?")  # nobody's question: embedded, and not remembered
    assert len(scripted.made) == 4


def test_what_two_stages_ask_for_at_once_is_embedded_once(scripted):
    scripted.go.clear()
    found = []

    def ask():
        found.append(E5TextEmbedder().run(text="Who?")["embedding"])

    with Run(tenant_id="a").entered():
        stages = [threading.Thread(target=contextvars.copy_context().run, args=(ask,)) for _ in range(2)]
        stages[0].start()
        assert scripted.begun.wait(30)
        stages[1].start()
        stages[1].join(0.2)  # it waits for the first, or has begun a computation of its own
        scripted.go.set()
        for stage in stages:
            stage.join()
    assert found == [[1.0, 1.0, 1.0]] * 2
    assert len(scripted.made) == 1
