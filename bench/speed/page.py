"""
Measure how smoothly the page writes: frames while sixty sentences stream, from a trace of Chromium.

    python -m bench.speed.page            # prints the line
    python -m bench.speed.page --docs     # and puts it into docs/serving.md

A frame is long where the page's main thread needs more than a sixtieth of a second of processor time. Sentences come
from a server in this process, an event every 20 ms, some three times as fast as a model writes.
"""

import argparse
import json
import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.speed.measuring import machine, name_machine
from tests.doubles.page_site import PageSite, Script

FRAME_MS = 1000 / 60
SENTENCES = [
    f"Sentence number {number} tells of the year {700 + number} and of the garrison then." for number in range(60)
]
CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--no-sandbox", "--headless", "--disable-gpu"]
_DOCS = Path(__file__).resolve().parents[2] / "docs" / "serving.md"
_MARK = "While sixty sentences stream, "


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed.page", description=__doc__.split("\n")[1])
    parser.add_argument("--docs", action="store_true", help="put the line into docs/serving.md")
    options = parser.parse_args(arguments)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, PageSite() as site:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        found = stream(browser, site, pause=0.02)
        browser.close()
    report = {**found, "machine": machine(), "date": datetime.now(UTC).date().isoformat()}
    text = line(report)
    sys.stdout.write(text + "\n")
    if options.docs:
        lines = _DOCS.read_text(encoding="utf-8").split("\n")
        at = next(place for place, one in enumerate(lines) if one.startswith(_MARK))
        lines[at] = text
        _DOCS.write_text("\n".join(lines), encoding="utf-8")


def stream(browser: Any, site: PageSite, *, pause: float = 0.0) -> dict[str, Any]:
    """Ask a question and give what the trace has of the time from its sending to its whole answer."""
    site.script, site.pause = Script(SENTENCES).events(), pause
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(site.url + "/")
    page.wait_for_selector("body[data-ready]")
    page.fill("#question", "Who rose?")
    browser.start_tracing(page=page, categories=CATEGORIES)
    page.press("#question", "Enter")
    page.wait_for_selector(".turn .more", timeout=60_000)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    page.close()
    return frames(events)


def frames(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Count the frames of a trace and those that took too long, and how much each layout had to place anew."""
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    own = [event for event in events if (event["pid"], event["tid"]) in threads and event.get("ph") == "X"]
    # Of the thread's own time: what other programs take of a busy machine is not the page's.
    tasks = [event.get("tdur", event.get("dur", 0)) / 1000 for event in own if event["name"] == "RunTask"]
    drawn = sum(1 for event in own if event["name"] == "Commit")
    placed = [event["args"]["beginData"]["dirtyObjects"] for event in own if event["name"] == "Layout"]
    return {
        "frames": drawn,
        "long": sum(1 for length in tasks if length > FRAME_MS),
        "longest_ms": max(tasks, default=0.0),
        "placed": placed,
    }


def line(report: dict[str, Any]) -> str:
    """Say it in a line of Markdown."""
    about = name_machine(report)[:-1]
    return (
        f"{_MARK}{report['long']} of {report['frames']:,} frames need more than a sixtieth of a second of the page's "
        f"thread, the longest {report['longest_ms']:.0f} ms (`python -m bench.speed.page`; {about})."
    )


if __name__ == "__main__":
    main()
