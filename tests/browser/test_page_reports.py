"""Reports of `shiguan eval` in the page: the same parts, whatever stands in their texts, on every sheet."""

import pytest
from tests.browser.test_page_access import findings
from tests.browser.test_page_hostile import HOSTILE, quiet

from shiguan.evaluation.report import write_report
from shiguan.evaluation.tables import Report, Section, Table
from shiguan.serving.review_routes import report_body

pytestmark = pytest.mark.browser
NAME = "run 5/report.html"


def written(folder, rows):
    quality = Section("Quality", "Means.", Table(["metric", ">mean"], rows))
    report = Report("Ranking of simple", "100 questions", [quality], notes=["A note."])
    return report_body(write_report(report, folder / "report"))


@pytest.mark.parametrize(("width", "locale", "scheme"), [(390, "zh-CN", "dark"), (1440, "en-US", "light")])
def test_a_report_opens_from_the_library(site, opened, tmp_path, width, locale, scheme):
    site.reports = {NAME: written(tmp_path, [["Recall@5", "0.900"], ["A long name of a metric " * 6, "0.1"]])}
    page = opened(site.url + "/#/library", width=width, locale=locale, scheme=scheme)
    page.locator("a[href='#/reports']").click()
    page.wait_for_selector(".past li")
    assert findings(page) == []
    page.locator(".past a").click()
    page.wait_for_selector(".report section")
    assert page.locator(".report h1").inner_text() == "Ranking of simple"
    assert page.locator(".report section").nth(0).locator("td span").nth(1).inner_text() == "0.900"
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_nothing_in_a_report_runs(site, opened, tmp_path):
    site.reports = {"hostile.html": written(tmp_path, [[text, text] for text in HOSTILE])}
    page = opened(f"{site.url}/#/reports/hostile.html", width=390)
    page.wait_for_selector(".report section")
    assert page.locator(".report td span").nth(2).evaluate("one => one.textContent") == HOSTILE[1]
    quiet(page)
