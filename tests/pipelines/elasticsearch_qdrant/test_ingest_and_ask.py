"""The whole path, from a file to an answer, through the deployment's own files and both servers' stand-ins."""

import json
import shutil

import pytest
from tests.doubles.cluster import change_components
from tests.doubles.recording_server import Reply

from shiguan.cli import main
from shiguan.engine.library import Library
from shiguan.engine.runner import Runner
from shiguan.errors import RefusedError
from shiguan.evaluation.json_lines import write_json_lines

DEPLOYMENT = "elasticsearch_qdrant"
ROWS = [
    {"id": "salt", "title": "The salt tax", "text": "Liu Yan taxed salt in the year 760. The tax paid for the war."},
    {"id": "silk", "title": "Silk", "text": "Silk was carried to the west on camels. The road crossed the desert."},
    {"id": "book", "title": "舊書", "text": "他的書在長安。安祿山起兵於范陽。"},
]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "rows.jsonl"
    write_json_lines(path, ROWS)
    return path


def ingest(path, tenant="t"):
    [result] = Library(DEPLOYMENT).ingest([path], tenant_id=tenant)
    assert not result.skipped, result.skipped
    return result


def test_a_library_lives_on_the_two_servers(elasticsearch, qdrant, small_models, corpus, capsys):
    """One test for the whole life, for loading a model takes most of the time."""
    assert main(["stores", "init"]) == 0
    assert main(["stores", "status"]) == 0
    first = ingest(corpus)
    assert (first.sources, first.parents, first.new) == (3, 3, first.children)
    again = ingest(corpus)
    assert (again.new, again.removed) == (0, 0)
    ingest(corpus, tenant="other")
    library = Library(DEPLOYMENT)
    assert library.count(tenant_id="t") == 3
    assert [source["records"] for source in library.sources(tenant_id="t")] == [3]

    for mode in ("simple", "advanced", "precise"):
        elasticsearch.requests.clear()
        qdrant.requests.clear()
        with Runner(DEPLOYMENT, mode) as runner:
            answer = runner.ask("Who taxed salt?", tenant_id="t")
            assert "Liu Yan taxed salt" in answer["answer"], mode
            assert {document["record_id"] for document in answer["documents"][:1]} == {"salt"}
            assert not any(" be reached" in text for text in answer["metadata"]["warnings"])
            chinese, _ = runner.search("他的書", tenant_id="t")
            assert chinese[0].meta["record_id"] == "book"
        for request in elasticsearch.sent("POST", "/_search"):
            assert {"term": {"tenant_id": "t"}} in _leaves(request.body["query"])
        for request in qdrant.sent("POST", "/points/query"):
            assert {"key": "meta.tenant_id", "match": {"value": "t"}} in _leaves(request.body["filter"])
        # Beside those for the languages of the books: one request for the parents of each question.
        fetched = [one for one in elasticsearch.requests if one.path == "/shiguan-parents/_search"]
        assert len([one for one in fetched if "aggs" not in one.body]) == 2

    headed = corpus.with_name("war.md")
    headed.write_text("# The War\n\nAn Lushan rose at Fanyang in the year 755.\n", encoding="utf-8")
    ingest(headed)
    with Runner(DEPLOYMENT, "simple") as runner:
        assert runner.ask("Who rose at Fanyang?", tenant_id="t", sources=["war.md"])["documents"]
        with pytest.raises(RefusedError, match=r"cannot limit a question to `sections`.*`sources`"):
            runner.ask("Who rose at Fanyang?", tenant_id="t", sections=["The War"])
        elasticsearch.requests.clear()
        draft = "“An Lushan rose at Fanyang in the year 755” and 「安禄山起兵于范阳」. “Liu Yan taxed silk in the year 760”."
        items = runner.verify(draft, tenant_id="t")["items"]
        assert [(item["verdict"], item["places"]) for item in items] == [("found", 1), ("found", 1), ("altered", 1)]
        assert items[2]["difference"] == [{"quoted": "silk", "stands": "salt"}]
        for request in elasticsearch.sent("POST", "/_search"):
            assert {"term": {"tenant_id": "t"}} in _leaves(request.body["query"])
    assert library.delete("war.md", tenant_id="t") == 1

    corpus.write_text(json.dumps(ROWS[0]) + "\n", encoding="utf-8")
    changed = ingest(corpus)
    assert (changed.new, changed.removed) == (0, 4)
    assert library.count(tenant_id="other") == 3
    assert library.delete("rows.jsonl", tenant_id="t") == 1
    assert library.count(tenant_id="t") == 0
    capsys.readouterr()
    assert main(["stores", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stores"] == {"parents": 3, "children": 3}


def test_a_server_that_dies_in_an_ingest_leaves_a_file_that_is_named_until_it_is_ingested_again(
    elasticsearch, qdrant, small_models, corpus, capsys
):
    """Parents without children look like a library; counting what each file should have shows it."""
    assert main(["stores", "init"]) == 0
    gone = Reply({"error": {"type": "unavailable", "reason": "shutting down"}}, status=503)
    elasticsearch.faults.append(lambda request: gone if request.path == "/shiguan-children/_bulk" else None)
    capsys.readouterr()
    command = ["--deployment", DEPLOYMENT, "--tenant", "t"]
    assert main(["ingest", str(corpus), *command]) == 1
    assert "a file that was being ingested is not whole until it is ingested again" in capsys.readouterr().err
    elasticsearch.faults.clear()

    assert main(["stores", "status"]) == 1
    told = capsys.readouterr().out
    assert "`rows.jsonl` of the tenant `t` has 0 of 3 retrieval units: ingest the file again" in told
    assert main(["ingest", "--resume", *command]) == 1
    told = " ".join(capsys.readouterr().out.split())  # a narrow terminal breaks lines
    assert "rows.jsonl: only 0 of its 3 retrieval units are there: an ingest broke off. Ingest the file again." in told

    assert main(["ingest", str(corpus), *command]) == 0
    assert main(["stores", "status"]) == 0
    assert main(["ingest", "--resume", *command]) == 0


def test_words_move_to_an_index_of_another_name_and_nothing_is_embedded_again(
    elasticsearch, qdrant, small_models, corpus, tmp_path, capsys
):
    """The steps of docs/operating.md: a deployment that differs in one name, `init`, `copy`."""
    assert main(["stores", "init"]) == 0
    ingest(corpus)
    folder = tmp_path / "pipelines" / "elasticsearch_qdrant"
    shutil.copytree(folder, folder.with_name("next"))

    def renamed(name, node):
        if name == "ElasticsearchStore" and node["init_parameters"]["index"] == "shiguan-children":
            node["init_parameters"]["index"] = "shiguan-children-2"

    change_components(folder.with_name("next"), renamed)
    assert main(["stores", "init", "--deployment", "next"]) == 0
    embedded = len(qdrant.sent("PUT", "/points"))
    assert main(["stores", "copy", "--from", DEPLOYMENT, "--to", "next"]) == 0
    assert main(["stores", "status", "--deployment", "next"]) == 0
    assert len(qdrant.sent("PUT", "/points")) == embedded
    assert elasticsearch.indexes["shiguan-children-2"] == elasticsearch.indexes["shiguan-children"] != {}
    elasticsearch.indexes["shiguan-children"].clear()
    with Runner("next", "simple") as runner:
        assert "Liu Yan taxed salt" in runner.ask("Who taxed salt?", tenant_id="t")["answer"]


def _leaves(node):
    if isinstance(node, dict):
        if "term" in node or "key" in node:
            yield node
        for value in node.values():
            yield from _leaves(value)
    elif isinstance(node, list):
        for value in node:
            yield from _leaves(value)
