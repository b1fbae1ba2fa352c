"""The modes that a server loads when it starts, and the folders that it works on."""

import shutil
import threading

import pytest
import yaml
from tests.doubles.small_library import small_library

from shiguan.engine.library import Library
from shiguan.errors import ConfigurationError, ShiguanError
from shiguan.serving.engine import Engine
from shiguan.serving.ingest_jobs import IngestJobs
from shiguan.serving.service import check_stores
from shiguan.serving.settings import ServingSettings

MODE = {
    "components": {
        "prompt": {
            "type": "haystack.components.builders.prompt_builder.PromptBuilder",
            "init_parameters": {"template": "{{ query }} {{ color }}", "required_variables": ["color"]},
        }
    },
    "connections": [],
    "inputs": {"query": ["prompt.query"]},
    "outputs": {"answers": "prompt.prompt"},
}


@pytest.mark.parametrize("section", ["inputs", "options"])
@pytest.mark.parametrize("name", ["color", "top_k"])
def test_a_mode_that_needs_more_than_a_question_is_refused_with_the_input_that_it_needs(
    tmp_path, monkeypatch, section, name
):
    mode = {**MODE, section: {**MODE.get(section, {}), name: ["prompt.color"]}}
    (tmp_path / "pipelines" / "embedded").mkdir(parents=True)
    (tmp_path / "pipelines" / "embedded" / "painted.yml").write_text(yaml.safe_dump(mode), encoding="utf-8")
    monkeypatch.setenv("SHIGUAN_PIPELINES_DIR", str(tmp_path / "pipelines"))
    why = rf"painted.*`prompt\.color` is required, and a question may come without `{name}`"
    with pytest.raises(ConfigurationError, match=why):
        Engine(ServingSettings(data_dir=tmp_path / "library"), modes=["painted"])


@pytest.mark.parametrize("folder", ["parents", "children", "uploads"])
def test_a_folder_that_is_deleted_or_moved_away_is_not_ready_though_its_open_files_are_read(
    tmp_path, monkeypatch, folder
):
    data = small_library(tmp_path)
    library = Library(data_dir=data)
    jobs = IngestJobs(library, data / "uploads")
    looked = threading.Event()
    monkeypatch.setattr(jobs, "_next", looked.set)  # the worker has its lock, in this folder, when it looks
    jobs.start()
    assert looked.wait(30)
    checks = {"parents": lambda: check_stores(library), "uploads": jobs.check}
    check = checks.get(folder, checks["parents"])
    check()
    (data / folder).rename(tmp_path / "away")
    with pytest.raises(ShiguanError, match=r"is gone\. Restore it"):
        check()
    shutil.move(tmp_path / "away", data / folder)
    check()
    jobs.stop()
