"""/api/v1/reports: each tenant's own folder, and nothing else on the machine."""

import json
import os

import pytest
from tests.doubles.asgi_caller import AsgiCall
from tests.doubles.served_app import served_app

from shiguan.serving.keys import KeyFile
from shiguan.serving.review_routes import router
from shiguan.serving.settings import ServingSettings

PAGE = (
    "<!doctype html><title>Recall of simple &amp; more</title><style>p{}</style><p>before</p>"
    '<main>Of <p class="x" onclick="alert(1)" style="top:0">one<b>two</b><script>alert(1)</script> three</p>'
    '<a href="javascript:alert(1)">not</a> four<!-- no --><svg viewBox="0 0 1 1"><path d="M0 0"/><script>1</script></svg></main>'
)


@pytest.fixture
def ask(tmp_path):
    """Ask for a report as a tenant whose reports lie in the folder of its name."""
    folder = tmp_path / "reports"
    for name in ("acme/run/report.html", "acme/notes.txt", "acme/run/deep/er.html", "beta/report.html"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PAGE.replace("simple", name), encoding="utf-8")
    (folder / "acme" / "later.html").write_text("no title", encoding="utf-8")
    for name, written in (("acme/later.html", 2_000_000_000), ("acme/run/report.html", 1_000_000_000)):
        os.utime(folder / name, (written, written))
    (tmp_path / "secret.html").write_text("secret", encoding="utf-8")
    (folder / "acme" / "link.html").symlink_to(tmp_path / "secret.html")
    settings = ServingSettings(data_dir=tmp_path / "data", reports_dir=folder)
    app = served_app(settings, router)
    file, keys = KeyFile(settings.keys_path), {}

    async def call(path, tenant="acme"):
        if tenant not in keys:
            keys[tenant] = file.add(tenant, "read")[0]
        headers = {"authorization": f"Bearer {keys[tenant]}"}
        return await AsgiCall(app, path, method="GET", headers=headers).done()

    call.app = app
    return call


async def test_a_tenant_reads_the_reports_in_its_folder(ask):
    listed = json.loads((await ask("/api/v1/reports")).body)["reports"]
    assert listed == [
        {"name": "later.html", "title": "later.html", "written": "2033-05-18T03:33:20+00:00"},
        {"name": "run/report.html", "title": "Recall of acme/run/report.html & more", "written": "2001-09-09T01:46:40+00:00"},
    ]  # fmt: skip
    read = json.loads((await ask("/api/v1/reports/run/report.html")).body)
    assert read["title"] == "Recall of acme/run/report.html & more"
    assert read["body"] == ["Of ", ["p", {"class": "x"}, "one", ["b", {}, "two"], " three"], " four"]
    assert json.loads((await ask("/api/v1/reports/later.html")).body)["body"] == []


@pytest.mark.parametrize(
    "name",
    ["notes.txt", "link.html", "run/deep/er.html", "../beta/report.html", "..%2Fbeta%2Freport.html", "/etc/passwd", "none.html",
     "run%2F..%2Flater.html"],
)  # fmt: skip
async def test_nothing_else_is_a_report(ask, name):
    assert (await ask(f"/api/v1/reports/{name}")).status == 404


@pytest.mark.parametrize("tenant", ["..", ".", "acme/run", "acme/..", "/", "none", "acme/../beta"])
async def test_the_name_of_a_tenant_leads_nowhere_else(ask, tenant):
    assert json.loads((await ask("/api/v1/reports", tenant)).body) == {"reports": []}
    assert (await ask("/api/v1/reports/report.html", tenant)).status == 404


async def test_without_a_folder_and_without_a_key_there_are_none(ask):
    assert (await AsgiCall(ask.app, "/api/v1/reports", method="GET").done()).status == 200  # no key is made yet
    await ask("/api/v1/reports")
    assert (await AsgiCall(ask.app, "/api/v1/reports", method="GET").done()).status == 401
    ask.app.state.settings = ask.app.state.settings.model_copy(update={"reports_dir": None})
    assert json.loads((await ask("/api/v1/reports")).body) == {"reports": []}
