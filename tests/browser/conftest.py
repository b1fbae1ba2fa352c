"""A real browser, where this machine has one."""

import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.doubles.page_site import PageSite, ask

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = (
    "--no-sandbox --headless --disable-gpu --disable-background-networking --disable-component-update --disable-sync "
    "--no-first-run"
).split()


@pytest.fixture(scope="session")
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install .[browser]")
    if not CHROMIUM or not Path(CHROMIUM).exists():
        pytest.skip("no chromium on this machine; name one in CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def site():
    with PageSite() as site:
        yield site


@pytest.fixture
def opened(chromium):
    """Open a page; at the end nothing was thrown in it, and nothing but its own server was asked."""
    contexts, errors, foreign = [], [], []

    def open_page(url, *, width=1280, height=800, locale="en-US", scheme="light", wait=True):
        context = chromium.new_context(viewport={"width": width, "height": height}, locale=locale, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: (errors.append(dialog.message), dialog.dismiss()))
        page.on("console", lambda message: "Content Security" in message.text and errors.append(message.text))
        own = (f"http://{urlsplit(url).netloc}/", "blob:", "data:")
        page.on("request", lambda request: request.url.startswith(own) or foreign.append(request.url))
        page.goto(url)
        if wait:
            page.wait_for_selector("body[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []
    assert foreign == []


@pytest.fixture
def asked(site, opened):
    """Open the page and ask there; the server tells what it is given, or what the test has set."""

    def open_and_ask(query="Who rose?", *, told=None, done=True, **look):
        site.script = told or site.script
        page = opened(site.url + "/", **look)
        ask(page, query, done=done)
        return page

    return open_and_ask
