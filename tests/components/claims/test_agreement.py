import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.claims.agreement import agreement

ENGLISH = (
    "In the winter of 755 An Lushan rose in Fanyang. He had 150,000 men under him. Guo Ziyi did not join the rising. "
    "The court fled to Chengdu in the following summer. Grain prices in the capital rose fourfold."
)
CHINESE = "天寶十四載十一月，安祿山反於范陽，眾十五萬。郭子儀，華州鄭縣人也。玄宗幸蜀，次馬嵬驛。史思明不從其命。"


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("In the winter of 755 An Lushan rose in Fanyang.", "supported"),
        ("An Lushan rose in Fanyang in 755.", "supported"),
        ("An Lushan rose in Fanyang in 756.", "contradicted"),
        ("An Lushan had 150,000 men.", "supported"),
        ("He had 200,000 men under him.", "contradicted"),
        ("He had a hundred and fifty thousand men under him.", "supported"),
        ("Guo Ziyi joined the rising.", "contradicted"),
        ("Guo Ziyi did not join the rising.", "supported"),
        ("Li Guangbi did not join the rising.", "contradicted"),
        ("The court fled to Luoyang in the following summer.", "contradicted"),
        ("The price of salt fell in the south.", "unsupported"),
        ("Whales are mammals.", "unsupported"),
        ("", "unsupported"),
    ],
)
def test_english_claims_get_their_verdict(claim, verdict):
    assert agreement(claim, ENGLISH).verdict == verdict


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("天寶十四載十一月，安祿山反於范陽，眾十五萬。", "supported"),
        ("天宝十四载十一月，安禄山反于范阳，众十五万。", "supported"),
        ("郭子仪是华州郑县人。", "supported"),
        ("安禄山于756年反于范阳。", "contradicted"),
        ("天宝十三载十一月，安禄山反于范阳，众十五万。", "contradicted"),
        ("天宝十四载十一月，安禄山反于范阳，众二十万。", "contradicted"),
        ("李光弼，華州鄭縣人也。", "contradicted"),
        ("史思明从其命。", "contradicted"),
        ("鲸鱼是哺乳动物。", "unsupported"),
    ],
)
def test_chinese_claims_get_their_verdict(claim, verdict):
    assert agreement(claim, CHINESE).verdict == verdict


def test_span_is_the_whole_sentence_that_supports_the_claim():
    found = agreement("Grain prices rose fourfold.", ENGLISH)
    assert ENGLISH[found.start : found.end] == "Grain prices in the capital rose fourfold."
    assert found.similarity == 1.0


def test_a_claim_of_two_sentences_gets_both():
    found = agreement("An Lushan rose in Fanyang with 150,000 men.", ENGLISH)
    assert ENGLISH[found.start : found.end] == ENGLISH[: ENGLISH.index(" Guo")]


def test_empty_passage_supports_nothing():
    assert agreement("He rose.", "").verdict == "unsupported"
    assert agreement("He rose.", " \n ").score == 0.0


@given(st.text(), st.text() | st.text(alphabet="ab cd.。史安祿山十一23 不not"))
def test_any_claim_and_passage_give_a_valid_span(claim, passage):
    found = agreement(claim, passage)
    assert 0 <= found.start <= found.end <= len(passage)
    assert 0.0 <= found.score <= 1.0
    assert 0.0 <= found.similarity <= 1.0 + 1e-9


@pytest.mark.parametrize("language", ["en", "zh"])
def test_untouched_evidence_is_supported_and_a_changed_number_is_not(public_data, language):
    with gzip.open(public_data / "evidence_expmrc" / f"{language}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    alarms = [agreement(row["evidences"][0]["text"], row["source"]).verdict != "supported" for row in rows]
    assert sum(alarms) <= 0.05 * len(rows)
    changed = []
    for row in rows:
        claim = row["evidences"][0]["text"]
        digits = [at for at, character in enumerate(claim) if character in "12345678"]
        if digits:
            at = digits[0]
            other = claim[:at] + str(int(claim[at]) + 1) + claim[at + 1 :]
            changed.append(agreement(other, row["source"]).verdict != "supported")
    assert len(changed) > 50
    assert sum(changed) >= 0.95 * len(changed)
