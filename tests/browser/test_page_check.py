"""A text that is checked in the page: its parts beside their passages, whatever stands in them."""

import pytest
from tests.browser.test_page_access import findings
from tests.browser.test_page_hostile import HOSTILE, quiet

pytestmark = pytest.mark.browser


def item(number, verdict, text, **more):
    return ("item", {"number": number, "count": 3, "kind": "quotation", "verdict": verdict, "text": text,
                     "places": 0, "difference": [], **more})  # fmt: skip


def place(quote, **more):
    return {"source": "tang.epub", "title": "The Tang", "section": ["1 War"], "parent_id": "p1", "start": 0, "end": 9,
            "anchor": None, "quote": quote, "places": 1, **more}  # fmt: skip


PARTS = [
    item(1, "found", "rose at Fanyang", **place("rose at Fanyang", places=3)),
    item(2, "altered", "in 756", **place("in 755") | {"difference": [{"quoted": "756", "stands": "755"}]}),
    item(3, "nothing", "Hello.", kind="claim"),
]
DONE = ("generation_complete", {"items": 3, "counts": {"quotation": {"found": 1, "altered": 1}}, "warnings": ["Note."]})


@pytest.mark.parametrize(("width", "locale", "scheme"), [(390, "zh-CN", "dark"), (1440, "en-US", "light")])
def test_a_text_stands_beside_its_passages(site, opened, width, locale, scheme):
    site.script = [*PARTS, DONE]
    page = opened(site.url + "/#/check", width=width, locale=locale, scheme=scheme)
    assert findings(page) == []
    page.locator("#text").fill("“rose at Fanyang” “in 756”")
    page.locator("form button[type=submit]").click()
    page.wait_for_selector(".checked .part >> nth=2")
    assert site.asked == [{"text": "“rose at Fanyang” “in 756”", "stream": True}]
    verdicts = page.locator(".checked .part").evaluate_all("all => all.map((one) => one.dataset.verdict)")
    assert verdicts == ["found", "altered", "nothing"]
    second = page.locator(".checked .part").nth(1)
    assert (second.locator("del").inner_text(), second.locator("ins").inner_text()) == ("756", "755")
    assert "passage=p1" in second.locator("a.link").get_attribute("href")
    page.locator("p.count", has_text="Note.").wait_for()
    colours = page.locator(".standing .verdict").evaluate_all("all => all.map((one) => getComputedStyle(one).color)")
    assert len(set(colours)) == 3
    only = page.locator(".filter button").nth(1)
    only.click()
    assert [page.locator(".checked .part").nth(place).is_visible() for place in range(3)] == [False, True, False]
    only.click()
    assert page.locator(".checked .part:visible").count() == 3
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("locale", "partly", "another"), [
    ("en-US", "the same words, not checked further", "another source has “756” in the place of “755”"),
    ("zh-CN", "字词相同，未再核实", "另一种资料作“756”，不作“755”"),
])  # fmt: skip
def test_a_sentence_has_its_reason_and_the_source_that_disagrees(site, opened, locale, partly, another):
    why = "a passage says so word for word; another source has “756” in the place of “755”"
    against = place("in 756", parent_id="p2", title="The New Tang")
    site.script = [
        item(1, "partial", "He rose.", kind="claim", reason="the same words, not checked further", **place("He rose")),
        item(2, "supported", "In 755.", kind="claim", reason=why, against=against, **place("in 755")),
        DONE,
    ]
    page = opened(site.url + "/#/check", locale=locale)
    page.locator("#text").fill("He rose. In 755.")
    page.locator("form button[type=submit]").click()
    page.wait_for_selector(".checked .part >> nth=1")
    first, second = page.locator(".checked .part").all()
    assert first.locator(".reason").inner_text() == partly
    assert another in second.locator(".reason").inner_text()
    assert second.locator(".theirs blockquote").all_inner_texts() == ["in 755", "in 756"]
    assert "The New Tang" in second.inner_text()
    assert findings(page) == []


def test_a_file_is_read_here_or_by_the_server(site, opened):
    page = opened(site.url + "/#/check")
    page.locator("#draft").set_input_files({"name": "a.md", "mimeType": "text/markdown", "buffer": "“甲”".encode()})
    expect = pytest.importorskip("playwright.sync_api").expect
    expect(page.locator("#text")).to_have_value("“甲”")
    page.locator("#draft").set_input_files({"name": "a.docx", "mimeType": "application/zip", "buffer": b"PK"})
    expect(page.locator("#text")).to_have_value("The text of the file.")
    assert "POST /api/v1/verify/text" in site.seen


def test_nothing_in_a_checked_text_runs(site, opened):
    site.script = [item(n, text, text, **place(text, title=text)) for n, text in enumerate(HOSTILE, start=1)] + [DONE]
    page = opened(site.url + "/#/check", width=390)
    page.locator("#text").fill("a")
    page.locator("form button[type=submit]").click()
    page.wait_for_selector(f".checked .part >> nth={len(HOSTILE) - 1}")
    quiet(page)
