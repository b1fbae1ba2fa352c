import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from haystack.dataclasses import ByteStream
from tests.doubles.pdf_builder import build_pdf

from shiguan import limited_process
from shiguan.ingest import conversion

CIRCLE = b"<html><body><p>x</p>" + b"<b><p>" * 120_000
HONEST = "In 755 An Lushan rebelled at Fanyang."


def read(reading, data, name, waiting=lambda: None):
    return reading.convert(ByteStream(data, meta={"file_name": name}), waiting)


def assert_reads_on(reading):
    answer = read(reading, HONEST.encode(), "honest.txt")
    assert [content for _, content, _ in answer["documents"]] == [HONEST]
    assert answer["skipped"] == []


def test_a_file_comes_back_with_its_text_meta_warnings_and_id(reading, tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("安禄山反于范阳。他的军队向南进军，攻下洛阳。".encode("gb18030") * 20)
    answer = reading.convert(path, lambda: None)
    [(name, content, meta)] = answer["documents"]
    assert len(name) == 64
    assert content.startswith("安禄山反于范阳。")
    assert meta["source_key"] == str(path)
    assert answer["warnings"] == ["a.txt: read as gb18030, which was guessed; save it as UTF-8 if words look wrong."]


def test_a_relative_path_is_looked_up_from_where_the_caller_is_now(reading, tmp_path, monkeypatch):
    (tmp_path / "b.txt").write_text(HONEST)
    monkeypatch.chdir(tmp_path)
    assert reading.convert(Path("b.txt"), lambda: None)["documents"][0][1] == HONEST


def test_a_file_whose_converter_found_no_text_is_reported(reading):
    for data, name in ((build_pdf([b""]), "scan.pdf"), (b"---\ntitle: x\n---\n", "a.md")):
        answer = read(reading, data, name)
        causes = [entry["cause"] for entry in answer["skipped"]]
        assert (answer["documents"], causes) == ([], ["no text was found in it"])


MANY = b"<html><body>" + b"<p>x</p>" * 1_000_000
LIMITS = {
    # On a busy machine the first would wait too long before it has used that much time.
    "time": ({"_SECONDS": 0.6, "_SECONDS_PER_MB": 0}, {"_WAITING_FACTOR": 600}, CIRCLE,
        "took more than 1 seconds of the processor"),
    "memory": ({"_MEMORY": 300_000_000, "_MEMORY_PER_BYTE": 0}, {}, MANY, "took more than 300 MB of memory"),
    "answer": ({"_ANSWER": 0, "_ANSWER_PER_BYTE": 0}, {}, HONEST.encode(), "gave more than 0 MB of text and structure"),
}  # fmt: skip


@pytest.mark.parametrize(("of_files", "of_processes", "page", "cause"), LIMITS.values(), ids=LIMITS)
def test_what_exceeds_a_limit_is_ended_with_its_reason_and_the_next_file_is_read(
    reading, monkeypatch, of_files, of_processes, page, cause
):
    for module, bounds in ((conversion, of_files), (limited_process, of_processes)):
        for name, value in bounds.items():
            monkeypatch.setattr(module, name, value)
    answer = read(reading, page, "page.html")
    assert (answer["documents"], [entry["cause"] for entry in answer["skipped"]]) == ([], [f"reading it {cause}"])
    monkeypatch.undo()
    assert_reads_on(reading)


def test_the_start_of_the_process_counts_for_no_file(reading, monkeypatch):
    """On a busy machine it takes longer than any file: honest ones came back empty."""
    limited_process.end_all()
    monkeypatch.setattr(conversion, "_SECONDS", 0.5)
    assert_reads_on(reading)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_plain_script_may_ingest_and_its_end_ends_what_it_started(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os\n"
        "from haystack.dataclasses import ByteStream\n"
        "from shiguan.engine.loading import load_ingest\n"
        "from shiguan.ingest.conversion import Conversion\n"
        "from shiguan.limited_process import _process\n"
        "print('begun', flush=True)\n"
        "reading = Conversion(load_ingest('embedded', outputs=['parents'])[0])\n"
        "print(_process().submit(os.getpid).result(), flush=True)\n"
        "page = b'<html><body>' + b'<b><p>' * 2_000_000\n"
        "reading.convert(ByteStream(page, meta={'file_name': 'a.html'}), lambda: print('reading', flush=True))\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        reader = int(process.stdout.readline())
        assert process.stdout.readline() == "reading\n"
        process.send_signal(signal.SIGKILL)
    # The pipe of its output is closed when the last process that holds it is gone.
    with pytest.raises(ProcessLookupError):
        while True:
            os.kill(reader, 0)
