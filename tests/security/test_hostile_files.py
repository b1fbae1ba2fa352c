"""Hostile and broken files are refused with a clear error, and nothing in them is ever run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.security.hostile_files import CANARY, SOUND, hostile_files
from tests.security.mutant_parts import load
from tests.security.tenant_mutants import FILES as SHIPPED

from shiguan.checking.pipeline_check import check_in_process, check_pipeline
from shiguan.engine import loading
from shiguan.engine.loading import load_pipeline
from shiguan.errors import ConfigurationError, UnsafePipelineError

FILES = list(hostile_files())
HERE = Path(__file__).resolve().parent


def shipped_name(path):
    return f"{path.parent.name}-{path.stem}"


@pytest.fixture(scope="module")
def canary(tmp_path_factory):
    """A folder with a module whose import leaves a trace."""
    folder = tmp_path_factory.mktemp("canary")
    (folder / f"{CANARY}.py").write_text(
        f"from pathlib import Path\nPath({str(folder / 'sung')!r}).touch()\nclass Canary: pass\nThing = str\ndef run(*_): pass\n",
        encoding="utf-8",
    )
    return folder


@pytest.fixture(scope="module")
def results(canary, tmp_path_factory):
    """What one watched process found in all the files and in those that ship, and what it did meanwhile."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "warm-up.yml").write_text(yaml.safe_dump(SOUND), encoding="utf-8")
    for number, file in enumerate(FILES):
        (folder / f"{number:03}.yml").write_bytes(file.content)
    for path in SHIPPED:
        (folder / shipped_name(path)).with_suffix(".yml").write_text(json.dumps(load(path)), encoding="utf-8")
    told = python(canary, HERE / "watched_check.py", folder, SHIGUAN_DATA_DIR=str(folder / "data"))
    assert not (folder / "data").exists()
    return json.loads(told)


def python(canary, *arguments, **environment):
    """Run Python where the module of the canary can be imported."""
    paths = os.pathsep.join([str(HERE.parents[1] / "components"), str(canary)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_building_a_file_that_ships_writes_nothing_opens_no_socket_and_runs_nothing(results):
    shipped = {shipped_name(path): results["files"][shipped_name(path)] for path in SHIPPED}
    assert len(shipped) == len(SHIPPED) >= 10
    assert [result for result in shipped.values() if result["did"] or result["findings"]] == []


def test_each_is_refused_by_the_check_that_is_there_for_it(results):
    assert results["files"]["warm-up"]["findings"] == []  # of the file that most of them change
    assert len({file.content for file in FILES}) == len({file.name for file in FILES}) == len(FILES) >= 150
    wrong = {}
    for number, file in enumerate(FILES):
        findings = results["files"][f"{number:03}"]["findings"]
        if file.check not in {finding["check"] for finding in findings}:
            wrong[file.name] = [(finding["check"], finding["problem"]) for finding in findings]
    assert wrong == {}


def test_each_error_says_what_is_wrong_what_was_expected_and_what_to_do(results):
    for name, result in results["files"].items():
        for finding in result["findings"]:
            for part in ("problem", "expected", "next_step"):
                assert finding[part].endswith("."), (name, finding)
                assert 8 < len(finding[part]) < 700, (name, finding)
                assert finding[part].isprintable(), (name, finding)
            assert finding["where"].isprintable()


def test_nothing_is_imported_run_written_or_sent_meanwhile(results, canary):
    assert {name: result["did"] for name, result in results["files"].items() if result["did"]} == {}
    assert not (canary / "sung").exists()


def test_the_watch_sees_what_it_watches_for(canary, tmp_path):
    """Without this the test above could pass by being blind."""
    script = tmp_path / "sees.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
        "import watched_check as w\n"
        "sys.addaudithook(w.hook); w.watching.append('x')\n"
        f"import {CANARY}\nimport subprocess; subprocess.run(['true'])\nw.watching.clear()\nprint(w.seen)\n",
        encoding="utf-8",
    )
    told = python(canary, script)
    (canary / "sung").unlink()
    for word in (f"import {CANARY}", "exec", "sung", "subprocess.Popen"):
        assert word in told


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    (tmp_path / "pipelines" / "here").mkdir(parents=True)
    monkeypatch.setattr(loading, "resource_folder", lambda name: tmp_path / name)
    return tmp_path / "pipelines" / "here" / "evil.yml"


def test_load_pipeline_refuses_what_the_check_refuses(shipped, canary, monkeypatch):
    monkeypatch.syspath_prepend(str(canary))
    # One of each kind: the test above has all of them refused.
    for file in {file.check: file for file in FILES}.values():
        shipped.write_bytes(file.content)
        with pytest.raises(ConfigurationError, match="evil"):
            load_pipeline("here", "evil")
    assert CANARY not in sys.modules
    assert not (canary / "sung").exists()


@pytest.mark.parametrize("name", ["nothing.yml", "folder"])
def test_a_file_that_cannot_be_opened_is_a_finding(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (finding,) = check_pipeline(tmp_path / name, name).findings
    assert "cannot be read" in finding.problem


def test_several_findings_are_all_listed(tmp_path):
    path = tmp_path / "evil.yml"
    path.write_text(
        "components:\n  a: {type: os.system}\n  b: {type: subprocess.Popen}\n  c: {type: pty.spawn}\n", encoding="utf-8"
    )
    report = check_pipeline(path, "evil.yml")
    assert [finding.line for finding in report.findings] == [2, 3, 4]
    assert isinstance(report.error, UnsafePipelineError)
    for word in ("3 reasons", "line 2", "os.system", "line 3", "subprocess.Popen", "line 4", "pty.spawn"):
        assert word in str(report.error)


@pytest.mark.parametrize("check", [check_pipeline, check_in_process])
def test_unsafe_deserialization_of_haystack_is_refused_before_a_file_is_read(check, tmp_path, monkeypatch):
    monkeypatch.setenv("HAYSTACK_UNSAFE_DESERIALIZATION", "true")
    with pytest.raises(UnsafePipelineError, match="HAYSTACK_UNSAFE_DESERIALIZATION is set to `true`"):
        check(tmp_path / "nothing.yml", "nothing.yml")
