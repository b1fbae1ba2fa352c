"""axe-core finds nothing: every view, both languages, light and dark, desktop and phone."""

import pytest
from tests.doubles.page_site import WAIT, Script, ask, passage, source

from shiguan.serving.error_replies import ApiError

pytestmark = pytest.mark.browser


def findings(page):
    why = "axe is not installed: pip install .[dev]"
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason=why)
    page.evaluate("document.getAnimations().forEach((one) => one.finish())")
    # At the end of the page nothing lies half below the composer; elsewhere the fonts of the machine decide what does.
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    wrong = axe.Axe().run(page, options={"runOnly": rules}).response["violations"]
    return [f"{one['id']}: {one['help']}: {node['html'][:120]}" for one in wrong for node in one["nodes"]]


LOOKS = [("en-US", "light", 320), ("zh-CN", "dark", 390), ("zh-CN", "light", 1280), ("en-US", "dark", 1280)]
"""Locale, colours and width: colours do not depend on the language, nor what is laid out on the colours."""


@pytest.mark.parametrize(("locale", "scheme", "width"), LOOKS)
def test_axe_finds_nothing(site, opened, locale, scheme, width):
    site.sources = [source("a.epub", "A"), source("b.epub", None, complete=False, vectors=2)]
    site.conversations = [{"id": "c1", "title": "First", "turns": 2}]
    script = Script(
        ["One.", "Two.", "Three.", "Four."],
        changes=[{"claim": "Five.", "kind": "removed", "was": [1], "numbers": [], "reason": "no"}],
        warnings=["w"],
    )
    site.script = script.events()
    page = opened(site.url + "/", width=width, locale=locale, scheme=scheme)
    assert findings(page) == []
    ask(page)
    page.evaluate("document.querySelectorAll('.more details, .judge details').forEach((one) => { one.open = true })")
    page.fill(".lost textarea", "words")
    page.locator(".lost button").click()
    page.wait_for_selector(".ranks .missed")
    if width > 1000:
        page.locator("button.verdict").nth(1).click()
        page.wait_for_selector(".beside mark")
    assert findings(page) == []
    if width < 1000:
        page.locator("button.verdict").nth(1).click()
        page.wait_for_selector(".beside mark")
        assert findings(page) == []
    for view, ready in (
        ("library", ".source"),
        ("book?source=tang.epub&passage=p1&start=0&end=9", ".page mark"),
        ("past", ".past li"),
    ):
        page.goto(f"{site.url}/#/{view}")
        page.wait_for_selector(ready)
        assert findings(page) == [], view


def test_axe_finds_nothing_where_the_key_is_asked_and_where_something_failed(site, opened):
    site.keys = {"sk-1"}
    page = opened(site.url + "/", wait=False)
    page.wait_for_selector("dialog[open]")
    assert findings(page) == []
    page.keyboard.press("Escape")
    page.wait_for_selector(".failure")
    assert findings(page) == []


@pytest.mark.parametrize(("locale", "scheme", "width"), LOOKS[1:])
@pytest.mark.parametrize("status", ["quoted", "closest", "not_found", "reading", "failed"])
def test_axe_finds_nothing_where_an_answer_is_unsure_or_on_its_way(site, asked, status, locale, scheme, width):
    hebrew = "הקברניט ציווה לקפל את המפרש. הרוח התחזקה."
    site.passages = [passage(place, hebrew, language="he", title="סיפורי הים", section=["פרק"]) for place in range(3)]
    script = Script([hebrew], quote=(0, 9))
    told = script.events()
    if status == "reading":
        site.script = [*told[:3], (WAIT, None), *told[3:]]
    elif status == "failed":
        site.script = [*told[:3], ("error", ApiError("upstream_unavailable").body())]
    else:
        answer = script.quotations(status, absent=[{"term": "קולומבוס", "near": ["יונה"]}], waiting=3)
        site.script = [("generation_complete", answer)]
    page = asked("מי היה קולומבוס?", done=False, width=width, locale=locale, scheme=scheme)
    wide = {"reading": ".beside .passage p", "failed": ".failure"}.get(status, ".turn .more")
    page.wait_for_selector(".readings .passage p" if status == "reading" and width < 1000 else wide)
    assert findings(page) == []
