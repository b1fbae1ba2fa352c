"""Whatever moment the process dies at, running again gives the store of one clean run."""

import json
import os
from pathlib import Path

import pytest
from tests.doubles.small_library import copy_library
from tests.doubles.started import Started

from shiguan.engine.loading import load_stores
from shiguan.stores.embedded.shards import close_all_shards

SCRIPT = Path(__file__).with_name("ingest_and_die.py")
POINTS = 10
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")]


def run_all(*runs):
    """Run ingests one after the other, each in a process of its own; give what each printed."""
    arguments = []
    for data_dir, last_step, files in runs:
        arguments += ["--"] * bool(arguments) + [str(data_dir), str(last_step), *map(str, files)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = Started(SCRIPT, *arguments, environment=environment, fresh=True).finished(3600)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def everything_in(data_dir):
    stores = load_stores("embedded", data_dir=data_dir)
    found = {}
    for name, store in stores.items():
        documents = [document.to_dict(flatten=False) for document in store.unscoped().filter_documents()]
        found[name] = sorted(json.dumps(document, sort_keys=True) for document in documents)
    close_all_shards()
    return found


def write_version(folder, version):
    """A book of 60 paragraphs and 20 records; in the second version some differ, some are new and some are gone."""
    changed = version == 2
    paragraphs = [
        f"Chapter {n}{' revised' if changed and n % 3 == 0 else ''}. " + f"The garrison marched on day {n}. " * 12
        for n in range(45 if changed else 60)
    ]
    (folder / "book.txt").write_text("\n\n".join(paragraphs))
    rows = [
        {"id": str(n), "text": f"Record {n}{' corrected' if changed and n % 2 else ''}. " + "He came and he went. " * 9}
        for n in range(0, 20, 1 + changed)
    ]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return [folder / "book.txt", folder / "rows.jsonl"]


def test_a_second_run_after_kill_9_at_any_of_ten_points_gives_the_store_of_one_clean_run(tmp_path):
    books = tmp_path / "books"
    books.mkdir()
    never = 10**6

    # The libraries hold the first version, then the second replaces it; "clean" never knew the first.
    files = write_version(books, 1)
    names = [f"killed-{point}" for point in range(POINTS)]
    run_all((tmp_path / "whole", never, files))
    for name in names:
        copy_library(tmp_path / "whole", tmp_path / name)
    files = write_version(books, 2)
    whole, clean = run_all((tmp_path / "whole", never, files), (tmp_path / "clean", never, files))
    steps, embedded = map(int, whole.split())
    assert steps > POINTS, "too few steps to be killed between"
    assert 0 < embedded < int(clean.split()[1]), "unchanged passages were embedded again"

    points = [round(point * (steps - 1) / (POINTS - 1)) for point in range(POINTS)]
    killed = run_all(*[(tmp_path / name, point, files) for name, point in zip(names, points, strict=True)])
    assert killed == ["killed"] * POINTS
    interrupted = [everything_in(tmp_path / name) for name in names]
    expected = everything_in(tmp_path / "clean")
    assert all(found != expected for found in interrupted)
    for found in interrupted:  # leads to a passage
        parents = {json.loads(parent)["id"] for parent in found["parents"]}
        assert {json.loads(child)["meta"]["parent_id"] for child in found["children"]} <= parents

    run_all(*[(tmp_path / name, never, files) for name in names])
    assert everything_in(tmp_path / "whole") == expected
    for name in names:
        assert everything_in(tmp_path / name) == expected, name


def test_after_kill_9_among_the_vectors_resuming_without_the_files_gives_the_same_store(tmp_path):
    books = tmp_path / "books"
    books.mkdir()
    files = write_version(books, 1)
    steps, embedded = map(int, run_all((tmp_path / "whole", 10**6, files))[0].split())
    expected = everything_in(tmp_path / "whole")
    for lost in (1, 4):
        library = tmp_path / f"killed-{lost}"
        (killed,) = run_all((library, steps - lost, files))
        assert killed == "killed"
        for file in files:
            file.rename(file.with_suffix(".away"))
        children = load_stores("embedded", data_dir=library)["children"]
        missing = len(children.unscoped().list_ids_without_vector())
        close_all_shards()
        # All slices before the one that was being made are there.
        assert 6 * (lost - 1) < missing <= 6 * lost
        (resumed,) = run_all((library, 10**6, []))
        assert int(resumed.split()[1]) == missing < embedded
        assert everything_in(library) == expected
        for file in files:
            file.with_suffix(".away").rename(file)


@pytest.mark.parametrize("command", ["delete", "copy"])
def test_a_delete_or_a_copy_that_is_killed_at_any_point_is_finished_by_the_same_command(tmp_path, command):
    """Nothing else is lost meanwhile, and no child is there without its parent."""
    books = tmp_path / "books"
    books.mkdir()
    never = 10**6
    book, rows = write_version(books, 1)
    run_all((tmp_path / "rows", never, [rows]))
    copy_library(tmp_path / "rows", tmp_path / "both")
    run_all((tmp_path / "both", never, [book]))
    both, without = everything_in(tmp_path / "both"), everything_in(tmp_path / "rows")
    work, part, expected = (["delete", book.name], "", without) if command == "delete" else (["copy"], "target", both)

    def library(name):
        """The two books in a folder, which is copied to another beside it."""
        copy_library(tmp_path / "both", tmp_path / name / ("" if command == "delete" else "source"))
        return tmp_path / name

    steps = int(run_all((library("whole"), never, work))[-1].split()[0])
    assert everything_in(tmp_path / "whole" / part) == expected
    points = sorted({round(point * (steps - 1) / (POINTS - 1)) for point in range(POINTS)})
    assert len(points) >= 8, f"too few steps to be killed between: {steps}"
    libraries = {point: library(f"killed-{point}") for point in points}
    assert run_all(*[(folder, point, work) for point, folder in libraries.items()]) == ["killed"] * len(points)
    for folder in libraries.values():
        found = everything_in(folder / part)
        if command == "delete":
            assert all(set(found[kind]) >= set(without[kind]) for kind in without)
        else:
            assert everything_in(folder / "source") == both
        parents = {json.loads(parent)["id"] for parent in found["parents"]}
        assert {json.loads(child)["meta"]["parent_id"] for child in found["children"]} <= parents
    run_all(*[(folder, never, work) for folder in libraries.values()])
    for point, folder in libraries.items():
        assert everything_in(folder / part) == expected, point
