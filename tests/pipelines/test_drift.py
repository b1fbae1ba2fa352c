"""Deployments differ between the seam's two lines and nowhere else."""

import pytest
import yaml
from tests.doubles.own_modes import PIPELINES

from shiguan.llm.model_settings import read_model_roles

OPEN = "# ---- seam: what differs per deployment"
CLOSE = "# ---- end of the seam "
# Which models are called stands in a file of its own, which is seam from its first line to its last.
MODELS = sorted(PIPELINES.glob("*/models.yml"))
FILES = sorted(set(PIPELINES.glob("*/*.yml")) - set(MODELS))


def outside_the_seam(path):
    """The file without its opening comment, which names what a deployment needs, and without its seam."""
    lines = path.read_text(encoding="utf-8").splitlines()
    opened = [number for number, line in enumerate(lines) if line.startswith(OPEN)]
    closed = [number for number, line in enumerate(lines) if line.startswith(CLOSE)]
    if path.stem == "read":  # nothing differs
        return lines
    assert len(opened) == len(closed) == 1, f"{path} has no seam, or more than one"
    assert opened[0] < closed[0]
    return lines[closed[0] + 1 :]


def test_every_deployment_says_once_which_models_it_calls_and_both_say_the_same():
    assert [path.parent.name for path in MODELS] == sorted({path.parent.name for path in FILES})
    sections = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in MODELS]
    assert sections[1:] == sections[:-1]
    roles = read_model_roles(sections[0])
    assert [model.name for model in roles.models] == ["default"]
    assert roles.role_for("answer", {"complexity": 7}) == roles.role_for("answer", {"attempt": 2}) == "answer_strong"
    assert roles.role_for("answer", {"complexity": 6, "attempt": 1}) == "answer"


@pytest.mark.parametrize("mode", sorted({path.stem for path in FILES}))
def test_deployments_are_the_same_outside_the_seam(mode):
    files = [path for path in FILES if path.stem == mode]
    first = outside_the_seam(files[0])
    for other in files[1:]:
        assert outside_the_seam(other) == first, f"{other} differs from {files[0]} outside the seam"
