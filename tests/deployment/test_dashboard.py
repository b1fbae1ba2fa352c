"""The dashboard asks for numbers that the server gives, and the containers find it."""

import json
import re
from pathlib import Path

import pytest
import yaml

from shiguan.serving.telemetry import REGISTRY

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
DASHBOARD = json.loads((DOCKER / "grafana" / "shiguan.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]
SUFFIXES = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}
LABELS = {
    metric.name + suffix: {*REGISTRY._names_to_collectors[metric.name]._labelnames}
    for metric in REGISTRY.collect()
    for suffix in SUFFIXES[metric.type]
}


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_names_metrics_and_labels_that_there_are(query):
    names = re.findall(r"shiguan_\w+", query)
    assert names
    assert set(names) <= set(LABELS)
    known = set.intersection(*(LABELS[name] for name in names)) | {"le"}
    for labels in re.findall(r"by \(([^)]*)\)", query):
        assert set(labels.split(", ")) <= known


def test_every_metric_of_the_server_is_drawn():
    drawn = " ".join(QUERIES)
    for metric in REGISTRY.collect():
        assert re.search(rf"\b{metric.name}(_total|_bucket|_sum)?\b", drawn), metric.name


def test_the_containers_find_the_dashboard_its_source_and_the_servers():
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    mounted = dict(volume.removesuffix(":ro").split(":") for volume in services["grafana"]["volumes"])
    assert all((ROOT / source).is_file() for source in mounted if source.startswith("./"))
    [provider] = yaml.safe_load((DOCKER / "grafana" / "dashboards.yml").read_text(encoding="utf-8"))["providers"]
    assert mounted["./docker/grafana/shiguan.json"] == provider["options"]["path"] + "/shiguan.json"
    [source] = yaml.safe_load((DOCKER / "grafana" / "datasources.yml").read_text(encoding="utf-8"))["datasources"]
    assert {panel["datasource"]["uid"] for panel in PANELS} == {source["uid"]}
    assert source["url"] == "http://prometheus:9090"
    [job] = yaml.safe_load((DOCKER / "prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"]
    assert set(job["dns_sd_configs"][0]["names"]) < set(services)
    assert job["authorization"]["credentials_file"] in " ".join(services["prometheus"]["command"])
