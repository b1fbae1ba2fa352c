"""What CONTRIBUTING says of where things are is so."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "components" / "shiguan"
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
DRAWING, TABLE = PAGE.partition("## Where things are")[2].partition("\n## ")[0].split("```")[1:]


def rooms():
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    return folders | {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}


def drawn():
    """Give each room of the drawing with its floor, counted from the top; what follows two spaces is an explanation."""
    floors = {}
    for floor, line in enumerate(DRAWING.strip("\n").split("\n")):
        names = re.match(r"[a-z_ ]*?(?=\s{6}|$)", line.strip()) if line.strip() else None
        for name in names[0].split() if names else ():
            floors[name] = floor
    return floors


def test_the_drawing_has_every_room_and_no_other():
    assert set(drawn()) == rooms()


def test_the_drawing_has_the_floors_of_the_import_contract():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    [layers] = [contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers"]
    floors = [[drawn()[name] for name in layer.split(" | ")] for layer in layers]
    assert all(len(set(floor)) == 1 for floor in floors)
    assert floors == sorted(floors)


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"`([\w*./-]+)`", TABLE)) | set(re.findall(r"docs/[\w.]+", TABLE)))
)
def test_the_table_names_what_is_there(name):
    assert [path for place in (PACKAGE, ROOT) for path in place.glob(name.rstrip("/"))]
