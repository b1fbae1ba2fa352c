from copy import deepcopy
from dataclasses import replace

from haystack import Document

from shiguan.ingest.orphan_remover import ProducedIds
from shiguan.text.shared_document import SharedDocument


def test_a_copy_shares_what_is_large_and_owns_its_meta():
    document = SharedDocument(id="a", content="x", meta={"blocks": [{}]}, embedding=[0.5])
    twin = deepcopy(document)
    assert twin == document
    assert twin.embedding is document.embedding
    assert twin.meta["blocks"] is document.meta["blocks"]
    twin.meta["own"] = 1
    assert "own" not in document.meta


def test_it_is_a_document_for_everyone_else():
    document = SharedDocument(content="x", meta={"a": 1})
    assert isinstance(document, Document)
    assert type(replace(document, embedding=[1.0])) is SharedDocument
    assert Document.from_dict(document.to_dict()).id == Document(content="x", meta={"a": 1}).id


def test_produced_ids_are_never_copied():
    produced = ProducedIds(frozenset(), frozenset("a"), frozenset("b"))
    assert deepcopy(produced) is produced
