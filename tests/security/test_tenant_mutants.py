"""No change of our files that lets a tenant see another's documents gets past the check."""

import pytest
from tests.security.mutant_parts import checked, load
from tests.security.tenant_mutants import FILES, mutants

from shiguan.checking.pipeline_check import check_pipeline


@pytest.mark.parametrize("file", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_file_itself_is_fine(file, tmp_path):
    assert check_pipeline(file, file.stem).findings == []
    assert checked(load(file), tmp_path).findings == []


# The files of the other deployment are the same outside of their seam (tests/pipelines/test_drift.py), and what
# `simple` and `precise` have the other modes have, too.
OURS = [path for path in FILES if path.parent.name == "embedded"]
AGAIN = [path for path in OURS if path.stem in ("simple", "precise")]


@pytest.mark.parametrize(
    "file",
    [*(path for path in OURS if path not in AGAIN), *(pytest.param(path, marks=pytest.mark.slow) for path in AGAIN)],
    ids=lambda path: path.stem,
)
def test_a_mutant_is_refused_for_what_was_done_to_it(file, tmp_path):
    tried = list(mutants(file))
    assert len(tried) == len({name for name, _ in tried}) >= 15
    for name, data in tried:
        findings = checked(data, tmp_path).findings
        assert "tenants" in {one.check for one in findings}, name
        # Whatever else is found would refuse a mutant that is broken rather than harmful.
        assert {one.check for one in findings} <= {"tenants", "starvation"}, (name, list(map(str, findings)))
