"""Deployments differ between the seam's two lines and nowhere else."""

from pathlib import Path

import pytest

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
OPEN = "# ---- seam: what differs per deployment "
CLOSE = "# ---- end of the seam "
FILES = sorted(PIPELINES.glob("*/*.yml"))


def outside_the_seam(path):
    """The file without its opening comment, which names what a deployment needs, and without its seam."""
    lines = path.read_text(encoding="utf-8").splitlines()
    opened = [number for number, line in enumerate(lines) if line.startswith(OPEN)]
    closed = [number for number, line in enumerate(lines) if line.startswith(CLOSE)]
    assert len(opened) == len(closed) == 1, f"{path} has no seam, or more than one"
    assert opened[0] < closed[0]
    return lines[closed[0] + 1 :]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_stores_and_models_stand_inside_the_seam(path):
    text = "\n".join(outside_the_seam(path))
    for word in ("document_store:", "model:", "shiguan.stores.", "haystack_integrations."):
        assert word not in text, f"{path}: `{word}` stands outside the seam"


@pytest.mark.parametrize("mode", sorted({path.stem for path in FILES}))
def test_deployments_are_the_same_outside_the_seam(mode):
    files = [path for path in FILES if path.stem == mode]
    first = outside_the_seam(files[0])
    for other in files[1:]:
        assert outside_the_seam(other) == first, f"{other} differs from {files[0]} outside the seam"
