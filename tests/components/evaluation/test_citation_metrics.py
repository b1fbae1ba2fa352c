"""Citation precision and recall in ALCE's sense, on cases small enough to judge by eye."""

from shiguan.evaluation.answer_metrics import score_citations

SALT = "In 758 Diwu Qi made salt a monopoly of the state."
SIEGE = "Zhang Xun held the town of Suiyang for ten months."
POET = "Du Fu wrote of a broken country whose rivers remain."
PASSAGES = {1: SALT, 2: SIEGE, 3: POET}


def counted(answer):
    scores = score_citations(answer, PASSAGES)
    return scores.claims, scores.recalled, scores.citations, scores.precise


def test_a_quotation_with_its_passage_is_recalled_and_precise():
    assert counted(f"{SALT} [1] {SIEGE} [2]") == (2, 2, 2, 2)


def test_a_claim_with_the_wrong_passage_is_neither():
    scores = score_citations(f"{SALT} [2]", PASSAGES)
    assert (scores.recall, scores.precision) == (0.0, 0.0)


def test_a_claim_without_a_citation_is_not_recalled():
    assert counted(f"{SALT} [1] {SIEGE}") == (2, 1, 1, 1)


def test_a_further_citation_that_adds_nothing_is_not_precise():
    assert counted(f"{SALT} [1][3]") == (1, 1, 2, 1)


def test_two_passages_that_support_a_claim_only_together_are_both_precise():
    halves = {
        1: "Diwu Qi made salt a monopoly of the state.",
        2: "Zhang Xun held the town of Suiyang for ten months.",
    }
    both = "Diwu Qi made salt a monopoly of the state and Zhang Xun held the town of Suiyang for ten months. [1][2]"
    scores = score_citations(both, halves)
    assert (scores.recalled, scores.precise) == (1, 2)


def test_a_number_that_no_passage_has_is_a_citation_and_not_precise():
    assert counted(f"{SALT} [9]") == (1, 0, 1, 0)


def test_a_swapped_number_is_not_recalled():
    assert counted("In 785 Diwu Qi made salt a monopoly of the state. [1]")[1] == 0


def test_an_answer_that_claims_nothing_has_no_scores():
    scores = score_citations("The sources do not say this.", PASSAGES)
    assert (scores.claims, scores.recall, scores.precision) == (0, 0.0, 0.0)


def test_chinese_claims_are_judged_too():
    scores = score_citations("顏真卿起兵響應朝廷。[1]王維寫下輞川詩。[1]", {1: "平原太守颜真卿起兵响应朝廷。"})
    assert (scores.claims, scores.recalled) == (2, 1)
