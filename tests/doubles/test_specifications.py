"""Every test with a stand-in of a server holds its requests against the server's specification; this shows that it does."""

import pytest
from tests.doubles import specifications
from tests.doubles.recording_server import Request

pytestmark = pytest.mark.skipif(
    not specifications.FOLDER.is_dir(), reason="the servers' specifications are not at ../shared/specs"
)


def asked(server, method, path, body=None, query=None):
    return specifications.wrong(server, [Request(method, path, query or {}, body, {})])


def test_what_fits_is_not_told():
    assert asked("es", "POST", "/fits/_count", {"query": {"match_all": {}}}) == []
    assert asked("qdrant", "POST", "/collections/fits/points/count", {"exact": True}) == []


@pytest.mark.parametrize(
    ("server", "path", "body", "query"),
    [
        ("es", "/c/_search", {"sizes": 3}, {}),
        ("es", "/c/_search", {"query": {"term": {"a": {"values": 1}}}}, {}),
        ("es", "/c/_search", {"query": {"match_all": {}}}, {"allow_partial_results": "false"}),
        ("qdrant", "/collections/c/points/query", {"query": {"nearest": [1.0]}, "params": {"hnsw_ef": "many"}}, {}),
        ("qdrant", "/collections/c/points/query", {"query": {"nearest": [1.0]}, "limits": 3}, {}),
    ],
)
def test_what_does_not_fit_is_told(server, path, body, query):
    assert asked(server, "POST", path, body, query)
