"""Uploads on their way into the library: kept, in order, tried again, given up."""

import io
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from shiguan.engine.library import IngestedFile
from shiguan.errors import ConfigurationError, StoreError, StoreFullError
from shiguan.serving import ingest_jobs
from shiguan.serving.error_replies import ApiError
from shiguan.serving.ingest_jobs import IngestJobs, JobFolder


class FakeLibrary:
    """A library of names and texts; `before` runs in the middle of each ingest and may raise."""

    def __init__(self):
        self.texts = {}
        self.before = lambda name, text: None

    def ingest(self, files, *, tenant_id, progress=None):
        for file in files:
            name, text = file.meta["file_name"], file.data.decode()
            progress("embedding", 1, 2)
            outcome = self.before(name, text)
            progress("embedding", 2, 2)
            if outcome is not None:
                yield outcome
                continue
            self.texts[tenant_id, name] = text
            yield IngestedFile(file=name, sources=1, parents=1, children=1, new=1)

    def delete(self, source, *, tenant_id):
        return 1 if self.texts.pop((tenant_id, source), None) else 0


@pytest.fixture
def library():
    return FakeLibrary()


@pytest.fixture
def make(library, tmp_path, monkeypatch):
    monkeypatch.setattr(ingest_jobs, "_LOOK_SECONDS", 0.02)
    made = []

    def make_jobs():
        jobs = IngestJobs(library, tmp_path / "uploads")
        jobs.folder.prepare()
        made.append(jobs)
        return jobs

    yield make_jobs
    for jobs in made:
        jobs.stop()


def submit(jobs, name, text, tenant="acme"):
    return jobs.submit(tenant, name, io.BytesIO(text.encode()))


def files(jobs):
    return sorted(path.name for path in jobs.folder.path.iterdir() if path.name != "worker.lock")


def wait_until(condition):
    pause = threading.Event()
    for _ in range(1000):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it did not come to that within ten seconds")


def wait(jobs, record):
    wait_until(lambda: jobs.find(record.tenant_id, record.id)["state"] not in ("queued", "running"))
    return jobs.find(record.tenant_id, record.id)


def states(jobs, *records):
    """Start the work, and wait for what becomes of each."""
    jobs.start()
    return [wait(jobs, record)["state"] for record in records]


def test_an_upload_goes_in_and_leaves_only_its_record(make, library, tmp_path):
    jobs = make()
    record = submit(jobs, "a.txt", "one")
    assert jobs.find("acme", record.id)["state"] == "queued"
    jobs.start()
    done = wait(jobs, record)
    assert (done["state"], done["bytes"], done["attempts"]) == ("done", 3, 1)
    assert done["result"] == {
        "sources": 1, "parents": 1, "children": 1, "new": 1, "vectors": 0, "missing": 0, "removed": 0,
        "skipped": [], "warnings": [],
    }  # fmt: skip
    assert library.texts == {("acme", "a.txt"): "one"}
    jobs.stop()
    assert files(jobs) == [f"{record.id}.json"]


def test_another_tenant_does_not_see_a_job(make):
    jobs = make()
    record = submit(jobs, "a.txt", "one")
    assert jobs.find("beta", record.id) is None
    for hostile in ("", "../uploads/x", record.id + "/..", record.id.upper() + "\n", "x" * 5000):
        assert jobs.find("acme", hostile) is None


def test_what_an_ended_process_left_goes_in_with_the_next_one(make, library):
    first = make()
    records = [submit(first, f"{n}.txt", str(n)) for n in range(3)]
    # It died in the middle of the first.
    first.folder.save(replace(records[0], state="running", attempts=1))
    second = make()
    assert states(second, *records) == ["done"] * 3
    assert library.texts == {("acme", f"{n}.txt"): str(n) for n in range(3)}
    assert wait(second, records[0])["attempts"] == 2


@pytest.mark.parametrize("spoiled", [b"{", b"[]", b'{"id": 3}', b""])
def test_a_record_that_does_not_fit_is_told_and_its_upload_kept(make, library, caplog, spoiled):
    first = make()
    record = submit(first, "a.txt", "one")
    path = first.folder.path / f"{record.id}.json"
    path.write_bytes(spoiled)
    for kept in (path, path.with_suffix(".bin")):
        os.utime(kept, (0, 0))
    jobs = make()
    assert caplog.text.count("does not fit") == 1
    assert record.id in caplog.text
    assert path.with_suffix(".bin").read_bytes() == b"one"
    assert states(jobs, submit(jobs, "b.txt", "two")) == ["done"]
    assert jobs.find("acme", record.id) is None


def test_the_same_name_again_replaces_an_upload_that_still_waits(make, library):
    jobs = make()
    old, other = submit(jobs, "a.txt", "old"), submit(jobs, "a.txt", "beta's", "beta")
    new = submit(jobs, "a.txt", "new")
    assert states(jobs, new, old, other) == ["done", "superseded", "done"]
    assert library.texts == {("acme", "a.txt"): "new", ("beta", "a.txt"): "beta's"}


def test_a_store_that_fails_is_tried_again_until_it_works(make, library, monkeypatch):
    monkeypatch.setattr(ingest_jobs, "_LASTING_PAUSE", 0.001)
    failures = [*[StoreError("down")] * 10, StoreFullError("full")]

    def before(name, text):
        if failures:
            raise failures.pop(0)

    library.before = before
    jobs = make()
    record = submit(jobs, "a.txt", "one")
    jobs.start()
    done = wait(jobs, record)
    assert (done["state"], done["attempts"], done["error"]) == ("done", 1, None), "it is no fault of the upload"


def test_what_fails_is_named_and_the_next_upload_goes_in(make, library):
    skipped = {
        "a.txt": {"stage": "passage_writer", "cause": "OSError: /srv/secret", "next_step": "Run again"},
        "c.txt": {"cause": "the file is empty", "next_step": "Check the file"},
    }

    def before(name, text):
        if name == "b.txt":
            raise RuntimeError("the text of a document")
        return IngestedFile(file=name, skipped=[{"source": name, **skipped[name]}]) if name in skipped else None

    library.before = before
    jobs = make()
    records = [submit(jobs, name, "one") for name in ("a.txt", "b.txt", "c.txt", "d.txt")]
    assert states(jobs, *records) == ["failed", "failed", "failed", "done"]
    first, second, third = (wait(jobs, record) for record in records[:3])
    assert (first["attempts"], first["error"]["stage"], "secret" in str(first)) == (1, "passage_writer", False)
    assert (second["error"]["type"], "document" in str(second)) == ("internal", False)
    told = {"type": "refused", "stage": None, "message": "the file is empty.", "next_step": "Check the file."}
    assert (third["attempts"], third["error"]) == (1, told)


def test_an_old_version_that_had_to_wait_does_not_replace_a_newer_one(make, library, monkeypatch):
    monkeypatch.setattr(ingest_jobs, "_LASTING_PAUSE", 0.001)
    jobs = make()
    newer = []

    def before(name, text):
        if text == "old" and not newer:
            newer.append(submit(jobs, "a.txt", "new"))
            raise StoreError("down")

    library.before = before
    assert states(jobs, submit(jobs, "a.txt", "old")) == ["done"]
    assert wait(jobs, newer[0])["state"] == "done"
    assert library.texts == {("acme", "a.txt"): "new"}


def test_deleting_a_source_cancels_its_uploads_that_wait(make, library):
    jobs = make()
    record, other = submit(jobs, "a.txt", "one"), submit(jobs, "b.txt", "two")
    assert jobs.cancel("beta", "a.txt") == 0
    assert jobs.cancel("acme", "a.txt") == 1
    assert jobs.cancel("acme", "a.txt") == 0
    submit(jobs, "\u00e9.txt", "three")
    assert jobs.cancel("acme", "e\u0301.txt") == 1  # as macOS writes it
    assert states(jobs, record, other) == ["cancelled", "done"]
    assert library.texts == {("acme", "b.txt"): "two"}


def test_deleting_a_source_stops_its_ingest_at_its_next_step(make, library):
    jobs = make()

    def before(name, text):
        jobs.cancel("acme", name)

    library.before = before
    record, other = submit(jobs, "a.txt", "one"), submit(jobs, "b.txt", "two", "beta")
    assert states(jobs, record, other) == ["cancelled", "done"]
    assert library.texts == {("beta", "b.txt"): "two"}


def test_a_deletion_in_the_last_step_of_an_ingest_wins(make, library):
    jobs = make()

    def before(name, text):
        library.texts["acme", name] = text
        jobs.cancel("acme", name)
        # What follows would be the writing: no further step is told of.
        return IngestedFile(file=name, sources=1)

    library.before = before
    ingest = library.ingest
    library.ingest = lambda files, *, tenant_id, progress: ingest(files, tenant_id=tenant_id, progress=lambda *_: None)
    assert states(jobs, submit(jobs, "a.txt", "one")) == ["cancelled"]
    jobs.stop()
    assert library.texts == {}


def test_a_tenant_may_not_fill_the_queue(make, monkeypatch):
    monkeypatch.setattr(ingest_jobs, "_MOST_WAITING", 2)
    jobs = make()
    submit(jobs, "a.txt", "1")
    submit(jobs, "b.txt", "2")
    with pytest.raises(ApiError) as raised:
        submit(jobs, "c.txt", "3")
    assert raised.value.status_code == 429
    submit(jobs, "c.txt", "3", "beta")
    assert len(list(jobs.folder.waiting())) == 3


def test_an_upload_that_cannot_be_written_leaves_nothing_and_says_so(make, monkeypatch):
    jobs = make()

    def full(*_):
        raise OSError(28, "No space left on device", "/srv/secret")

    monkeypatch.setattr("shiguan.serving.ingest_jobs.os.fsync", full)
    with pytest.raises(ApiError) as raised:
        submit(jobs, "a.txt", "one")
    assert (raised.value.status_code, raised.value.kind) == (503, "storage_full")
    assert "secret" not in raised.value.message
    assert [name for name in files(jobs) if not name.endswith(".json")] == []


def test_an_upload_into_a_folder_that_is_gone_is_an_error_of_the_store(make, tmp_path):
    jobs = make()
    (tmp_path / "uploads").rmdir()
    with pytest.raises(StoreError, match="The upload cannot be kept"):
        submit(jobs, "a.txt", "one")


def test_a_disk_that_is_full_for_a_while_loses_no_upload(make, library, monkeypatch):
    jobs = make()
    record = submit(jobs, "a.txt", "one")
    save, failures = JobFolder.save, [1, 1]

    def full_at_first(self, record):
        if failures:
            failures.pop()
            raise OSError(28, "No space left on device")
        save(self, record)

    monkeypatch.setattr(JobFolder, "save", full_at_first)
    assert states(jobs, record) == ["done"]
    jobs.check()


def test_an_upload_that_ends_the_process_each_time_is_given_up(make, library):
    jobs = make()
    record = submit(jobs, "a.txt", "one")
    jobs.folder.save(replace(record, state="running", attempts=8))
    assert states(jobs, record) == ["failed"]
    assert library.texts == {}


def test_stopping_leaves_an_unfinished_upload_for_the_next_process(make, library):
    jobs = make()
    library.before = lambda name, text: jobs._stopping.set()
    record = submit(jobs, "a.txt", "one")
    jobs.start()
    jobs.stop()
    with pytest.raises(ConfigurationError, match="does not run"):
        jobs.check()
    assert jobs.folder.is_waiting(record.id)
    library.before = lambda name, text: None
    assert states(make(), record) == ["done"]


def test_of_two_processes_on_one_folder_one_works_and_the_other_takes_over(make, library):
    first, second = make(), make()
    assert states(first, submit(first, "a.txt", "one")) == ["done"]
    assert states(second, submit(second, "b.txt", "two")) == ["done"]
    first.stop()
    assert wait(second, submit(second, "c.txt", "three"))["state"] == "done"


def test_only_the_last_finished_uploads_are_remembered(make, monkeypatch):
    monkeypatch.setattr("shiguan.serving.ingest_jobs._KEPT_FINISHED", 2)
    jobs = make()
    records = [submit(jobs, f"{n}.txt", "x") for n in range(4)]
    assert states(jobs, records[-1]) == ["done"]
    jobs.stop()
    assert [jobs.find("acme", record.id) is not None for record in records] == [False, False, True, True]


def test_uploads_of_one_name_at_once_end_with_the_last_one_in_the_library(make, library):
    jobs = make()
    jobs.start()
    with ThreadPoolExecutor(20) as pool:
        records = list(pool.map(lambda n: (submit(jobs, "a.txt", str(n)), str(n)), range(20)))
    assert {wait(jobs, record)["state"] for record, _ in records} <= {"done", "superseded"}
    last, text = max(records, key=lambda pair: pair[0].id)
    assert wait(jobs, last)["state"] == "done"
    assert library.texts == {("acme", "a.txt"): text}
    jobs.stop()
    assert [name for name in files(jobs) if not name.endswith(".json")] == []


def test_an_upload_whose_bytes_come_slowly_is_later_than_one_that_was_accepted_meanwhile(make, library):
    jobs = make()

    class Slow(io.BytesIO):
        def read(self, size=-1):
            if not quick:
                quick.append(submit(jobs, "a.txt", "quick"))
            return super().read(size)

    quick = []
    slow = jobs.submit("acme", "a.txt", Slow(b"slow"))
    assert slow.id > quick[0].id
    assert states(jobs, slow, quick[0]) == ["done", "superseded"]
    assert library.texts == {("acme", "a.txt"): "slow"}


def test_an_upload_that_takes_long_holds_no_other_tenant_up(make, library):
    began, end = threading.Event(), threading.Event()

    def before(name, text):
        if text == "long":
            began.set()
            assert end.wait(10)

    library.before = before
    jobs = make()
    long, next_of_it = submit(jobs, "long.txt", "long"), submit(jobs, "next.txt", "next")
    jobs.start()
    assert began.wait(10)
    short = submit(jobs, "short.txt", "short", tenant="globex")
    assert wait(jobs, short)["state"] == "done"
    # Of one tenant the order stays.
    assert [jobs.find("acme", record.id)["state"] for record in (long, next_of_it)] == ["running", "queued"]
    end.set()
    assert wait(jobs, next_of_it)["state"] == "done"


def test_tenants_take_turns(make, library, monkeypatch):
    monkeypatch.setattr(ingest_jobs, "_WORKERS", 1)
    jobs = make()
    order = []
    library.before = lambda name, text: order.append(name)
    for name in ("a1", "a2", "a3", "a4", "b1", "b2", "c1"):
        submit(jobs, name, "x", tenant=name[0])
    jobs.start()
    wait_until(lambda: len(order) == 7)
    assert order == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]
