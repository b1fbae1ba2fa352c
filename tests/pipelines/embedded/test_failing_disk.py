"""A disk that fails while vectors are made: what is finished stays, one sentence says what to do, and `--resume` does the rest."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = "tests.pipelines.embedded.ingest_on_a_small_disk"
CHAPTER = (
    "Chapter {0}. Captain Brown came to the town in 18{0}. He kept {0} sheep and told everybody of the war in which he "
    "had lost his leg. The people of the town did not believe him before the winter, when his general came to visit."
)


# A disk of one's own needs a mount namespace, and root is bound by the modes of a folder without its capabilities.
RUN = {"full": ["unshare", "--mount"], "read-only": []}
if os.geteuid() == 0:
    RUN["read-only"] = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


@pytest.fixture
def ingest():
    """Run the script; give what it printed."""

    def run(fault):
        within = RUN[fault]
        if within and (not shutil.which(within[0]) or subprocess.run([*within, "true"], check=False).returncode):
            pytest.skip(f"`{' '.join(within)}` cannot be run here")
        disk = folder / "disk"
        disk.mkdir()
        done = subprocess.run(
            [*within, sys.executable, "-m", SCRIPT, str(disk), fault, str(book)],
            cwd=ROOT, capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'components'}:{ROOT}", "HOME": str(folder)},
        )  # fmt: skip
        return json.loads(done.stdout)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        book = folder / "book.txt"
        book.write_text("\n\n".join(map(CHAPTER.format, range(10, 40))), encoding="utf-8")
        yield run


@pytest.mark.slow
def test_a_disk_that_fills_up_while_vectors_are_made_loses_no_finished_slice(ingest):
    told = ingest("full")
    assert told["failed"]["code"] == 1
    assert "shiguan: The disk with `" in told["failed"]["err"]
    assert "Free space and run again; what is in the library stays" in told["failed"]["err"]
    assert "  8 of 15\n" in told["found"]["out"]  # two slices of four; the third was embedded and found no room
    assert told["mended"]["out"].startswith("Resumed, 7 vectors made")
    assert told["embedded"] == [12, 7]


@pytest.mark.slow
def test_a_folder_that_may_no_longer_be_written_is_told_in_one_sentence(ingest):
    told = ingest("read-only")
    assert told["failed"]["code"] == 1
    (sentence,) = [line for line in told["failed"]["err"].splitlines() if line.startswith("shiguan: ")]
    assert "library/children` could not be written: " in sentence
    assert "Permission denied" in sentence
    assert "See that its disk has room and that the folder may be written, then run the same again." in sentence
    assert "Traceback" not in told["failed"]["err"]
    made = int(told["mended"]["out"].split("Resumed, ")[1].split(" vectors")[0])
    assert 0 < made < 15
    assert f" {15 - made} of 15\n" in told["found"]["out"]
