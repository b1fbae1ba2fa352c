"""The workflows of a repository on GitHub: valid, with few rights, and running what anybody runs."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = {path.stem: path for path in (ROOT / ".github" / "workflows").glob("*.yml")}
WORKFLOWS = {name: yaml.safe_load(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


def steps(name):
    return [step for job in WORKFLOWS[name]["jobs"].values() for step in job["steps"]]


def test_every_python_that_the_package_takes_is_tried_and_so_is_that_of_the_image():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    taken = re.findall(r"(?m)^Programming Language :: Python :: (3\.\d+)$", "\n".join(project["classifiers"]))
    first, above = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"]).groups()
    assert taken == [f"3.{minor}" for minor in range(int(first), int(above))]
    jobs = WORKFLOWS["ci"]["jobs"]
    given = [step.get("with", {}) for step in jobs["all"]["steps"]]
    [whole] = [one["python-version"] for one in given if "python-version" in one]
    assert [whole, *jobs["newer"]["strategy"]["matrix"]["python"]] == taken
    image = re.search(r"ARG PYTHON_VERSION=(.+)", (ROOT / "hayhooks" / "Dockerfile").read_text(encoding="utf-8"))[1]
    assert image in taken


@pytest.mark.parametrize("name", FILES)
def test_rights_are_few_and_nothing_of_a_pull_request_becomes_a_command(name):
    rights = WORKFLOWS[name]["permissions"]
    assert {right for right, value in rights.items() if value == "write"} <= {"pull-requests"}
    assert "pull_request_target" not in WORKFLOWS[name]["on"]
    assert not [step for step in steps(name) if re.search(r"\$\{\{", step.get("run", ""))]
