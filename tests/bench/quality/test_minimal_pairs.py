"""Shares of verdicts on minimal pairs, and whether their bars are kept."""

import pytest
from bench.quality.minimal_pairs import Outcome, Pair, rows_of


def outcome(true, false, form="verbatim"):
    pair = Pair("roles-1", "en", "roles", form, "Otto met Karl.", "Karl met Otto.", ("Otto met Karl.",), 0)
    return Outcome(pair, true, false, "", "", in_place=True)


@pytest.mark.parametrize(
    ("name", "value", "holds"),
    [
        ("en: false and supported, roles", 1 / 4, False),  # at most .02
        ("en: false and contradicted", 2 / 4, True),
        ("en: true and contradicted", 0.0, True),
        ("en: true, verbatim, supported", 3 / 4, True),  # no bar of its own
        ("en: true, verbatim or nearly, supported", 3 / 4, False),  # at least .97
    ],
)
def test_a_row_has_its_share_of_all_cases_and_keeps_its_bar_or_not(name, value, holds):
    verdicts = [
        ("supported", "supported"),
        ("supported", "partial"),
        ("partial", "contradicted"),
        ("supported", "contradicted"),
    ]
    rows = {row.name: row for row in rows_of([outcome(*verdict) for verdict in verdicts])}
    assert (rows[name].cases, rows[name].value, rows[name].holds) == (4, value, holds)
