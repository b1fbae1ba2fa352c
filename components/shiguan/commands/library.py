"""`shiguan ingest`, `sources` and `delete`: add files to the library, list its sources, remove one."""

import argparse
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shiguan.commands.options import open_library, print_error, print_json, print_result, tenant
from shiguan.commands.terminal import IngestProgress, counted, print_ingest_summary, source_lines
from shiguan.engine.library import SUFFIXES, IngestedFile, Library
from shiguan.errors import RefusedError

# After a signal, running writes may finish within it; what was written is safe in any case.
_TIDY_SECONDS = 1.0
_HEARING_SECONDS = 0.2


def ingest(options: argparse.Namespace) -> int:
    if options.resume is bool(options.paths):
        raise RefusedError("Name files or folders to add, or give `--resume` alone to finish what is in the library.")
    run = _Run(options)
    # The work has its own thread, so that this one gets a signal at once, whatever the work waits for.
    with _stopping(run.stopped), ThreadPoolExecutor(1, "ingest") as executor:
        work = executor.submit(run.work)
        # A signal delivered to another thread does not wake this one, which handles it.
        while not wait([work], _HEARING_SECONDS).done:
            pass
        return work.result()


class _Run:
    """One run of the command: its results so far and its messages, also when it is stopped."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.results: list[IngestedFile] = []
        self.progress: IngestProgress | None = None

    def work(self) -> int:
        started = time.perf_counter()
        options = self.options
        files, others = ([], {}) if options.resume else find_files(options.paths)
        library = Library(options.deployment, data_dir=options.data_dir)
        with IngestProgress(files, show=not options.json) as self.progress:
            callback = self.progress.callback
            if options.resume:
                self.results = [library.resume(tenant_id=tenant(options), progress=callback)]
            else:
                for result in library.ingest(files, tenant_id=tenant(options), progress=callback):
                    self.results.append(result)
                    self.progress.advance(result)
        results = self.results
        totals = ("sources", "parents", "children", "new", "removed", "vectors", "missing")
        summary: dict[str, Any] = {
            **{name: sum(getattr(result, name) for result in results) for name in totals},
            "skipped": [entry for result in results for entry in result.skipped],
            "warnings": list(dict.fromkeys(text for result in results for text in result.warnings)),
            "other_files": dict(others),
            "seconds": round(time.perf_counter() - started, 2),
        }
        if options.json:
            print_json(summary)
        else:
            print_ingest_summary(summary, resumed=options.resume)
        # A file without any source is a failure; a few bad rows of a file are not.
        return 1 if any(result.skipped and not result.sources for result in results) else 0

    def stopped(self, name: str) -> None:
        """Print in one sentence what is saved and how to continue, and shut down what can end soon."""
        if self.progress is not None:
            self.progress.close()
        if self.options.resume:
            message = f"Stopped by {name}: the vectors made so far are kept, and the same command makes the rest."
        else:
            message = (
                f"Stopped by {name}: {counted(len(self.results), 'file')} finished; the part of the next that was "
                "stored is kept, and the same command continues from there."
            )
        print_error(message, as_json=self.options.json)
        release_all()


def release_all() -> None:
    """End the processes and close the folders of this one, which a signal ends without what runs at an exit."""
    processes = sys.modules.get("shiguan.limited_process")
    if processes is not None:
        processes.end_all()
    stores = sys.modules.get("shiguan.stores.embedded.shards")
    if stores is not None:
        stores.close_all_shards()


@contextmanager
def _stopping(stopped: Callable[[str], None]) -> Iterator[None]:
    """End the process soon after a signal, whatever runs: what a store has written is on disk when a write returns."""

    def end(number: int, _: Any) -> None:
        # A second signal ends the process at once.
        for name in handled:
            signal.signal(name, lambda again, _: os._exit(128 + again))
        # In a thread, because this one may hold a lock that the tidying needs.
        tidying = threading.Thread(target=stopped, args=[signal.Signals(number).name], daemon=True)
        tidying.start()
        tidying.join(_TIDY_SECONDS)
        os._exit(128 + number)

    handled = [signal.SIGINT, signal.SIGTERM]
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {name: signal.signal(name, end) for name in handled}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def sources(options: argparse.Namespace) -> int:
    found = open_library(options).sources(tenant_id=tenant(options))
    print_result(options, {"sources": found}, *source_lines(found))
    return 0


def delete(options: argparse.Namespace) -> int:
    deleted = open_library(options).delete(options.source, tenant_id=tenant(options))
    if not deleted:
        raise RefusedError(f"There is no source `{options.source}` in the library. `shiguan sources` lists them.")
    line = f"Removed {options.source} from the library: {counted(deleted, 'passage')}."
    print_result(options, {"source": options.source, "deleted": deleted}, line)
    return 0


def find_files(paths: list[str | Path]) -> tuple[list[Path], Counter[str]]:
    files: dict[Path, Path] = {}
    others: Counter[str] = Counter()
    for given in map(Path, paths):
        if not given.exists():
            raise RefusedError(f"{given} does not exist. Check the path.")
        if not given.is_dir():
            files.setdefault(given.resolve(), given)
            continue
        for path in sorted(given.rglob("*")):
            if not path.is_file() or any(part.startswith(".") for part in path.relative_to(given).parts):
                continue
            if path.name.lower().endswith(SUFFIXES):
                files.setdefault(path.resolve(), path)
            else:
                others[path.suffix.lower() or path.name] += 1
    if not files:
        named = ", ".join(str(path) for path in paths)
        raise RefusedError(f"There is nothing to ingest in {named}. It reads {', '.join(SUFFIXES)}.")
    return list(files.values()), others
