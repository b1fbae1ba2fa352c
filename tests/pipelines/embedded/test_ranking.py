"""What ranks the passages of a real library on a machine without a cross-encoder."""

import json

import pytest

from shiguan.errors import StoreFormatError
from shiguan.library import Library
from shiguan.loading import pipeline_path
from shiguan.retrieval.late_interaction_ranker import LateInteractionRanker
from shiguan.runner import Runner
from shiguan.support.model_cache import packaged_file

pytestmark = pytest.mark.transformers

QUESTION = "Who sold the salt of the state?"
RECORDS = [
    ("office", "The salt office sat by the river. The salt office had forty clerks and a salt store. Salt was dear."),
    ("price", "The price of salt rose every spring. Salt, salt, salt, said the people of the state."),
    ("merchants", "Licensed merchants sold it in the provinces. They paid the state in silver for every load of salt."),
    ("iron", "The state owned the iron mines too. Convicts worked them."),
    ("chinese", "鹽鐵使掌天下鹽利。鹽價每歲騰貴。the state 之鹽皆官賣。"),
]


def folder_of(folder, records, index="index"):
    """Ingest records, and free the folder for the modes."""
    corpus = folder / "salt.jsonl"
    rows = [{"id": name, "title": "Salt", "text": text, "meta": {}} for name, text in records]
    corpus.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    library = Library("embedded", data_dir=folder / "library", index=index)
    assert not [entry for result in library.ingest([corpus], tenant_id="t") for entry in result.skipped]
    for store in library.stores.values():
        store.close()
    return folder / "library"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return folder_of(tmp_path_factory.mktemp("ranking"), RECORDS)


@pytest.fixture(scope="module", params=["advanced", "precise"])
def mode(request, library):
    with Runner("embedded", request.param, data_dir=library, retrieval_only=True) as runner:
        yield runner


def ranked_by(documents):
    return [document.meta["ranked_by"] for document in documents]


def test_an_english_question_is_ranked_by_late_interaction_without_a_warning(mode):
    documents, warnings = mode.search(QUESTION, tenant_id="t")
    assert documents[0].meta["record_id"] == "merchants"
    places = {document.meta["record_id"]: document.meta["ranked_by"] for document in documents}
    assert {way for record, way in places.items() if record != "chinese"} == {"late_interaction"}
    assert not [warning for warning in warnings if "cross-encoder" in warning]


def test_a_passage_without_vectors_stands_where_the_fusion_put_it(mode):
    documents, _ = mode.search(QUESTION, tenant_id="t")
    assert {d.meta["record_id"]: d.meta["ranked_by"] for d in documents}["chinese"] == "fusion"


def test_a_chinese_question_keeps_the_order_of_the_fusion_and_one_warning_says_why(mode):
    documents, warnings = mode.search("鹽價如何？", tenant_id="t")
    assert ranked_by(documents) == ["fusion"] * len(documents)
    [warning] = [warning for warning in warnings if "order of the fusion" in warning]
    assert "its files are not on this machine" in warning
    assert "late interaction knows en, the question is in zh" in warning


def test_top_k_of_a_request_reaches_the_ranker(mode):
    assert len(mode.search(QUESTION, tenant_id="t", top_k=2)[0]) == 2


def test_another_tenant_sees_nothing_ranked(mode):
    assert mode.search(QUESTION, tenant_id="someone-else")[0] == []


def test_a_library_that_was_ingested_without_vectors_is_not_ranked_and_says_so(tmp_path):
    definition = pipeline_path("embedded", "index").read_text(encoding="utf-8")
    assert "token_vectors: true" in definition
    index = tmp_path / "index.yml"
    index.write_text(definition.replace("token_vectors: true", "token_vectors: false"), encoding="utf-8")
    folder = folder_of(tmp_path, RECORDS[:3], index)
    with Runner("embedded", "advanced", data_dir=folder, retrieval_only=True) as runner:
        documents, warnings = runner.search(QUESTION, tenant_id="t")
    assert ranked_by(documents) == ["fusion"] * 3
    assert [w for w in warnings if "ingested without token vectors" in w]


def test_vectors_of_another_model_are_refused_with_both_names(mode):
    """The same model by another name: a name is all that a folder knows of its vectors' model."""
    retriever = mode.pipeline.get_component("retriever")
    other = str(packaged_file("config.json").parent)
    ranker = LateInteractionRanker(retriever.bm25_retriever.document_store, model=other)
    documents, _ = mode.search(QUESTION, tenant_id="t")
    with pytest.raises(StoreFormatError, match=r"all-MiniLM-L6-v2") as refusal:
        ranker.run(query=QUESTION, documents=documents)
    assert other in str(refusal.value)
