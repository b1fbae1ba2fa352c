"""The tests against real servers, run against stand-ins: what they name exists, and they leave nothing behind."""

import os
import subprocess
import sys

import pytest
from tests.conftest import ROOT
from tests.doubles.stand_in_elasticsearch import StandInElasticsearch
from tests.doubles.stand_in_qdrant import StandInQdrant


@pytest.mark.slow
def test_they_pass_and_leave_nothing_behind():
    """Also where servers are late, and yellow before they are green."""
    with StandInElasticsearch() as elasticsearch, StandInQdrant() as qdrant:
        elasticsearch.late = qdrant.late = 0.02
        elasticsearch.fresh, elasticsearch.recovering_health = 3, "yellow"
        elasticsearch.indexes["somebody-elses"] = {}
        servers = {"SHIGUAN_ELASTICSEARCH_URL": elasticsearch.url, "SHIGUAN_QDRANT_URL": qdrant.url}
        environment = os.environ | servers | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        command = [sys.executable, "-m", "pytest", "-q", "-m", "integration", "-p", "no:cacheprovider"]
        command.append("tests/integration/test_elasticsearch_qdrant.py")
        how = {"cwd": ROOT, "capture_output": True, "text": True, "timeout": 600}
        done = subprocess.run(command, check=False, env=environment, **how)
        assert done.returncode == 0, done.stdout[-4000:]
        assert "skipped" not in done.stdout
        assert list(elasticsearch.indexes) == ["somebody-elses"]
        assert qdrant.configs == {}
