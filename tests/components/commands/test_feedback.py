"""`shiguan feedback`: what readers say of answers."""

import json

import pytest
from tests.doubles.receipts import receipt

from shiguan.engine.feedback import FeedbackFile

MINE, OTHER = receipt("a", "Who rose?", quotes=["An Lushan rose."]), receipt("a", "Who fell?")


@pytest.fixture
def data_dir(tmp_path):
    FeedbackFile(tmp_path).give(MINE, "right", reader="key")
    FeedbackFile(tmp_path).give(OTHER, "missing", "Zhang Xun", reader="key")
    return tmp_path


def test_judgements_are_deleted_for_the_tenant_that_asks_alone(shiguan):
    assert json.loads(shiguan("feedback", "delete", "--receipt", MINE.id, tenant="b")[1]) == {"deleted": 0}
    assert json.loads(shiguan("feedback", "delete", "--older-than", "1")[1]) == {"deleted": 0}
    assert json.loads(shiguan("feedback", "delete", "--receipt", MINE.id)[1]) == {"deleted": 1}
    assert json.loads(shiguan("feedback", "delete", "--receipt", OTHER.id)[1]) == {"deleted": 1}
    with pytest.raises(SystemExit) as refused:
        shiguan("feedback", "delete")
    assert refused.value.code == 2
