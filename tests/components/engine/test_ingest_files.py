"""A deployment of one's own ingests with its own `read.yml` and `index.yml`, and with an `index.yml` of version 0.2."""

import json
from copy import deepcopy

import pytest
import yaml

from shiguan.engine.library import Library
from shiguan.engine.loading import load_ingest
from shiguan.errors import ConfigurationError
from shiguan.resources import resource_folder

SENTENCE = "In 755 the governor rebelled at Fanyang, and the emperor fled to the west. "


def shipped(name):
    return yaml.safe_load((resource_folder("pipelines") / "embedded" / f"{name}.yml").read_text(encoding="utf-8"))


def one_file():
    """An `index.yml` that reads and stores, as in version 0.2."""
    read, index = shipped("read"), shipped("index")
    index["components"] = {**read["components"], **index["components"]}
    del index["components"]["splitter"]["init_parameters"]
    index["connections"] = [
        *read["connections"],
        {"sender": "joiner.documents", "receiver": "stamper.documents"},
        *(edge for edge in index["connections"] if edge["receiver"] != "vector_writer.files"),
        {"sender": "passage_writer.children", "receiver": "vector_writer.children"},
    ]
    index["inputs"] = {**read["inputs"], **index["inputs"]}
    del index["inputs"]["documents"]
    return index


@pytest.fixture
def own(tmp_path, monkeypatch):
    folder = tmp_path / "pipelines" / "own"
    folder.mkdir(parents=True)
    monkeypatch.setenv("SHIGUAN_PIPELINES_DIR", str(folder.parent))

    def write(**files):
        for name, content in files.items():
            (folder / f"{name}.yml").write_text(json.dumps(content), encoding="utf-8")

    return write


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text("\n\n".join(f"Day {day}. {SENTENCE * 8}" for day in range(12)), encoding="utf-8")
    return path


@pytest.mark.usefixtures("quick_vectors")
def test_one_file_of_version_0_2_ingests_the_same_with_one_warning(own, book, tmp_path, caplog):
    own(index=one_file())
    [old] = Library("own", data_dir=tmp_path / "old").ingest([book], tenant_id="t")
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(told) == 1
    assert "own/index.yml reads files itself" in told[0]
    assert "read.yml" in told[0]
    [new] = Library("embedded", data_dir=tmp_path / "new").ingest([book], tenant_id="t")
    assert old == new
    assert (new.sources, new.new, new.vectors) == (1, new.children, new.children)
    assert new.children > new.parents > 1


def test_one_file_that_shares_more_than_documents_or_reads_nothing_is_refused(own):
    own(index=shipped("index"))
    with pytest.raises(ConfigurationError, match=r"`own` has no read\.yml.*Copy that of `embedded`"):
        load_ingest("own", outputs=["parents"])
    index = one_file()
    index["components"]["again"] = deepcopy(index["components"]["joiner"])
    index["connections"].append({"sender": "joiner.documents", "receiver": "again.documents"})
    index["connections"].append({"sender": "stamper.documents", "receiver": "again.documents"})
    own(index=index)
    with pytest.raises(ConfigurationError, match=r"cannot be split.*: 2 connections lead"):
        load_ingest("own", outputs=["parents"])


def test_a_file_is_cut_to_the_sizes_of_the_deployment(own, book):
    index = shipped("index")
    index["components"]["splitter"]["init_parameters"] = {
        "parent_min_tokens": 60, "parent_max_tokens": 160, "child_min_tokens": 20, "child_max_tokens": 60,
    }  # fmt: skip
    own(read=shipped("read"), index=index)
    parents = Library("own").read(book, tenant_id="t")
    usual = Library("embedded").read(book, tenant_id="t")
    assert max(parent.meta["tokens"] for parent in parents) <= 160
    assert len(parents) > len(usual)
    assert " ".join(d.content for d in parents).split() == " ".join(d.content for d in usual).split()


def test_vectors_are_made_only_of_what_was_written(own):
    """The order of the writers cannot be wired wrongly: what the splitter sends fits only the first."""
    index = shipped("index")
    index["connections"][-1]["sender"] = "splitter.children"
    own(read=shipped("read"), index=index)
    with pytest.raises(ConfigurationError, match=r"splitter.*vector_writer"):
        load_ingest("own")
