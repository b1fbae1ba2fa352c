import json
from pathlib import Path

import pytest

from shiguan.engine.loading import pipeline_path
from shiguan.errors import RefusedError
from shiguan.evaluation import provenance
from shiguan.evaluation.provenance import code_hash, corpus_stamp, describe_circumstances, describe_configuration


def describe(mode="simple"):
    return describe_configuration("embedded", mode, data={"queries.jsonl": "aa"}, options={"count": 3})


def test_the_description_is_json_and_the_same_every_time():
    assert json.loads(json.dumps(describe())) == describe()
    assert "intfloat/multilingual-e5-small" in describe()["models"]
    assert describe()["llm"] == {"model": "none"}


def test_another_pipeline_file_is_another_configuration(tmp_path):
    own = tmp_path / "simple.yml"
    own.write_text(pipeline_path("embedded", "simple").read_text(encoding="utf-8") + "\n# a remark\n", encoding="utf-8")
    assert describe(own)["mode"] == "simple"
    assert describe(own)["pipelines"]["simple.yml"] != describe()["pipelines"]["simple.yml"]
    assert describe(own)["pipelines"]["index.yml"] == describe()["pipelines"]["index.yml"]


def test_an_endpoint_is_named_by_model_and_host_and_never_by_its_secrets(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://someone:hidden@127.0.0.1:8000/v1?key=hidden")
    monkeypatch.setenv("OPENAI_API_KEY", "hidden")
    monkeypatch.setenv("OPENAI_MODEL", "small")
    described = describe()
    assert described["llm"] == {"model": "small", "host": "127.0.0.1:8000"}
    assert "hidden" not in json.dumps(described)


MADE_OF = (
    "package/ingest/one.py", "package/ingest/epub/reader.py", "package/text/cues.yml", "prompts/simple.jinja", "corpus.jsonl"
)  # fmt: skip


@pytest.mark.parametrize("changed", MADE_OF)
def test_whatever_makes_passages_makes_another_library(changed, tmp_path, monkeypatch):
    for name in MADE_OF:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one\n")
    monkeypatch.setattr(provenance, "_PACKAGE", tmp_path / "package")
    monkeypatch.setattr(provenance, "resource_folder", lambda name: tmp_path / name)
    before, code = corpus_stamp([tmp_path / "corpus.jsonl"], "embedded"), code_hash()
    assert corpus_stamp([tmp_path / "corpus.jsonl"], "embedded") == before
    (tmp_path / changed).write_text("two\n")
    assert corpus_stamp([tmp_path / "corpus.jsonl"], "embedded") != before
    assert (code_hash() != code) == changed.startswith("package")


def test_another_version_of_a_library_that_reads_files_makes_another_library(tmp_path, monkeypatch):
    (tmp_path / "corpus.jsonl").write_text("{}\n")
    before = corpus_stamp([tmp_path / "corpus.jsonl"], "embedded")
    monkeypatch.setattr(provenance, "version", lambda package: "0.0.1")
    assert corpus_stamp([tmp_path / "corpus.jsonl"], "embedded")["packages"] != before["packages"]


def test_circumstances_do_not_name_the_computer():
    found = describe_circumstances()
    assert found["versions"]["haystack-ai"].startswith(("2.", "3."))
    assert found["machine"]["cores"] >= 1
    assert str(Path.home()) not in json.dumps(found)


@pytest.mark.parametrize("inside", [True, False])
def test_a_commit_is_named_only_in_a_checkout(tmp_path, monkeypatch, inside):
    monkeypatch.setattr(provenance, "_PACKAGE", tmp_path / "components" / "shiguan")
    if inside:
        (tmp_path / ".git").mkdir()  # an empty folder is no repository: git says so, and nothing is claimed
    assert provenance.commit() is None


@pytest.mark.parametrize("content", ["{", "[1]", "{}"])
def test_a_library_whose_record_is_broken_is_refused_as_one_of_somebody_else(tmp_path, content):
    (tmp_path / "corpus.jsonl").write_text('{"id": "1", "text": "a"}\n')
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "ingested.json").write_text(content)
    with pytest.raises(RefusedError, match="was not made by an evaluation, or with another corpus"):
        provenance.ingest_corpus([tmp_path / "corpus.jsonl"], "embedded", tmp_path / "library")
