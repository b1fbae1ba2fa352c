"""Hayhooks as it comes, without Shiguan's server: it deploys the files of the modes as they are."""

import pytest
from tests.doubles.small_library import ingest_small_library
from tests.hayhooks.test_app_routes import ROOT

pytestmark = pytest.mark.slow
MODES = ["simple", "advanced", "precise", "agent"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return ingest_small_library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def stock(library, tmp_path, monkeypatch):
    """A Hayhooks server that knows nothing of Shiguan, beside the library of two tenants."""
    from fastapi.testclient import TestClient
    from hayhooks.server import app as hayhooks_app

    monkeypatch.setenv("SHIGUAN_DATA_DIR", str(library))
    monkeypatch.setattr(hayhooks_app.settings, "pipelines_dir", str(tmp_path))
    with TestClient(hayhooks_app.create_app()) as client:
        yield client


@pytest.mark.parametrize("mode", MODES)
def test_it_deploys_a_mode_and_needs_only_the_question_and_the_tenant(stock, mode):
    source = (ROOT / "pipelines" / "embedded" / f"{mode}.yml").read_text(encoding="utf-8")
    deploy = {"name": mode, "source_code": source, "save_file": False, "overwrite": True}
    assert stock.post("/deploy-yaml", json=deploy).status_code == 200
    question = "Who proposed the two-tax reform?"
    for tenant, named in (("a", "Yang Yan"), ("b", "Li Mi")):
        asked = stock.post(f"/{mode}/run", json={"query": question, "tenant_id": tenant})
        assert asked.status_code == 200, asked.text
        (answer,) = asked.json()["result"]["answers"]["value"]
        assert [name for name in ("Yang Yan", "Li Mi") if name in answer["data"]] == [named]
        assert answer["meta"]["citations"]
    assert stock.post(f"/{mode}/run", json={"query": question}).status_code == 422
    assert stock.post(f"/undeploy/{mode}").status_code == 200
