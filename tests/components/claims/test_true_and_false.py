"""What a passage makes false is not supported, and what it makes true is not contradicted: sentences by hand."""

from pathlib import Path

import pytest
import yaml

from shiguan.claims.checker import ClaimChecker
from shiguan.claims.claims import split_claims

CASES = yaml.safe_load((Path(__file__).parents[2] / "data" / "claims.yml").read_text(encoding="utf-8"))


def verdicts(claim, passage):
    checker = ClaimChecker({1: passage})
    return {one.support.verdict for one in checker.check(split_claims(claim))}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_no_false_sentence_is_supported_and_no_true_one_contradicted(case):
    assert [one for one in case["not"] if verdicts(one, case["passage"]) == {"supported"}] == []
    assert [one for one in case.get("says", ()) if "contradicted" in verdicts(one, case["passage"])] == []
