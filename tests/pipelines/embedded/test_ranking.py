"""What stands first in a real library on a machine without a cross-encoder: the fused order, said where it is asked for."""

import json

import pytest
from tests.doubles.small_library import own_library

from shiguan.engine.runner import Runner

RECORDS = [
    ("office", "The salt office sat by the river. The salt office had forty clerks and a salt store. Salt was dear."),
    ("price", "The price of salt rose every spring. Salt, salt, salt, said the people of the state."),
    ("merchants", "Licensed merchants sold it in the provinces. They paid the state in silver for every load of salt."),
    ("iron", "The state owned the iron mines too. Convicts worked them."),
    ("horses", "回紇每歲送馬數萬匹至長安，朝廷以絹帛償之。"),
]
CHINESE = [
    ("盐", "盐铁使负责全国的食盐专卖，盐价每年都在上涨。"),
    ("马", "回纥每年把几万匹马送到长安，朝廷用丝绸付款。"),
    ("墙", "长安的城墙高八米，九〇四年被拆毁。"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    def rows(records):
        return "\n".join(json.dumps({"id": name, "title": "", "text": text, "meta": {}}) for name, text in records)

    texts = {"t": {"t.jsonl": rows(RECORDS)}, "zh": {"zh.jsonl": rows(CHINESE)}}
    return own_library(tmp_path_factory.mktemp("ranking"), **texts)


@pytest.fixture(scope="module", params=["simple", "advanced", "precise"])
def mode(request, library):
    with Runner("embedded", request.param, data_dir=library, outputs=["documents"]) as runner:
        yield runner


@pytest.mark.parametrize(
    ("tenant", "question", "record"),
    [
        ("t", "Who sold the salt of the state?", "merchants"),
        ("t", "回紇送來多少馬？", "horses"),
        # No word in common: found by meaning alone.
        ("zh", "Who brought horses to the capital?", "马"),
        ("zh", "How high was the city wall?", "墙"),
    ],
)
def test_a_question_in_any_language_finds_its_passage_without_a_warning(mode, tenant, question, record):
    documents, warnings = mode.search(question, tenant_id=tenant)
    assert (documents[0].meta["record_id"], warnings) == (record, [])


def test_scores_fall_along_the_order_and_top_k_of_a_request_counts(mode):
    documents, _ = mode.search("Who sold the salt of the state?", tenant_id="t")
    scores = [document.score for document in documents]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1] >= 0
    assert len(mode.search("salt", tenant_id="t", top_k=2)[0]) == 2
