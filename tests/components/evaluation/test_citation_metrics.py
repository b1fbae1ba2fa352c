"""Citation precision and recall in ALCE's sense, on cases small enough to judge by eye."""

import pytest

from shiguan.evaluation.answer_metrics import score_citations

SALT = "In 758 Diwu Qi made salt a monopoly of the state."
SIEGE = "Zhang Xun held the town of Suiyang for ten months."
PASSAGES = {
    1: SALT,
    2: SIEGE,
    3: "Du Fu wrote of a broken country whose rivers remain.",
    4: "平原太守颜真卿起兵响应朝廷。",
}


@pytest.mark.parametrize(
    ("answer", "claims", "recalled", "citations", "precise"),
    [
        pytest.param(f"{SALT} [1] {SIEGE} [2]", 2, 2, 2, 2, id="quotations with their passages"),
        pytest.param(f"{SALT} [2]", 1, 0, 1, 0, id="the wrong passage"),
        pytest.param(f"{SALT} [1] {SIEGE}", 2, 1, 1, 1, id="no citation"),
        pytest.param(f"{SALT} [1][3]", 1, 1, 2, 1, id="one more that adds nothing"),
        pytest.param(f"{SALT[:-1]} and {SIEGE} [1][2]", 1, 1, 2, 2, id="only together they support it"),
        pytest.param(f"{SALT} [9]", 1, 0, 1, 0, id="a number that no passage has"),
        pytest.param(f"{SALT.replace('758', '785')} [1]", 1, 0, 1, 0, id="a swapped number"),
        pytest.param("The sources do not say this.", 0, 0, 0, 0, id="nothing is claimed"),
        pytest.param("顏真卿起兵響應朝廷。[4]王維寫下輞川詩。[4]", 2, 1, 2, 1, id="Chinese"),
    ],
)
def test_claims_are_recalled_and_citations_precise(answer, claims, recalled, citations, precise):
    scores = score_citations(answer, PASSAGES)
    assert scores == (claims, recalled, citations, precise)
    assert scores.recall == (recalled / claims if claims else 0)
    assert scores.precision == (precise / citations if citations else 0)
