"""Checks every file of a folder while Python reports what the process does; prints one JSON object."""

import json
import re
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from shiguan.checking.parameters import refusal
from shiguan.checking.pipeline_check import check_pipeline

WATCHED = ("subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.remove", "os.rename",
           "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.putenv", "socket.", "ctypes.", "pickle.",
           "code.__new__", "webbrowser.", "shutil.", "tempfile.", "urllib.")  # fmt: skip

seen: list[str] = []
watching: list[str] = []
"""The file that is being checked; empty where nobody looks."""


def hook(event, arguments):
    if not watching:
        return
    if event == "import" and arguments[0] not in sys.modules:
        seen.append(f"import {arguments[0]}")
    elif event == "exec" and arguments[0].co_filename != "<template>":  # Jinja makes what it will render
        seen.append(f"exec {arguments[0]}")
    elif event == "open":
        path, mode, flags = arguments
        if any(letter in str(mode) for letter in "wax+") or (isinstance(flags, int) and flags & 0o1102):
            seen.append(f"open {path} {mode}")
    elif event.startswith(WATCHED):
        seen.append(f"{event} {arguments}"[:200])


def main(folder):
    results = {}
    # What the checks themselves load at their first file, and what any file may have imported.
    check_pipeline(folder / "warm-up.yml", "warm-up.yml")
    for path in folder.glob("*.yml"):
        for type_ in re.findall(rb'"type": "([\w.]+)"', path.read_bytes()):
            if refusal(type_.decode()) is None:
                with suppress(ImportError, ValueError):
                    import_module(type_.decode().rpartition(".")[0])
    sys.addaudithook(hook)
    for path in sorted(folder.glob("*.yml")):
        watching.append(path.name)
        report = check_pipeline(path, path.name)
        watching.clear()
        results[path.stem] = {"findings": [finding.as_dict() for finding in report.findings], "did": list(seen)}
        seen.clear()
    return {"files": results}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
