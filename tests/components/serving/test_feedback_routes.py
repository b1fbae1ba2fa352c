"""Feedback at the server: on receipts of the key's own tenant, with any key that asks."""

import json
import sqlite3
from contextlib import closing

import pytest
from tests.doubles.asgi_caller import AsgiCall
from tests.doubles.receipts import receipt
from tests.doubles.served_app import served_app

from shiguan.serving.engine import ReceiptFolder
from shiguan.serving.keys import KeyFile
from shiguan.serving.review_routes import router
from shiguan.serving.settings import ServingSettings

MINE, THEIRS = receipt("a", "Who rose?", quotes=["An Lushan rose."]), receipt("b")
PATH = "/api/v1/feedback"


@pytest.fixture
def served(tmp_path):
    """The route behind the real gate, with a receipt of each of two tenants: `call(key, body)`."""
    keys = KeyFile(tmp_path / "keys.json")
    tokens = {
        "reader": keys.add("a", "read")[0], "writer": keys.add("a", "write")[0], "b": keys.add("b", "read")[0],
        "metrics": keys.add("", "metrics")[0],
    }  # fmt: skip
    settings = ServingSettings(data_dir=tmp_path)
    for one in (MINE, THEIRS):
        ReceiptFolder(settings).keep(one)
    app = served_app(settings, router)

    async def call(key, body):
        headers = {"Authorization": f"Bearer {tokens[key]}"} if key else {}
        headers |= {"Content-Type": "application/json"}
        called = await AsgiCall(app, PATH, headers=headers, body=json.dumps(body).encode()).done(30)
        return called.status, json.loads(called.body)

    call.file = tmp_path / "feedback.sqlite"
    return call


async def test_a_read_key_judges_its_own_tenants_answers(served):
    status, given = await served("reader", {"receipt": MINE.id, "kind": "wrong_citation", "note": "another\nyear"})
    assert (status, given["kind"], given["note"], given["query"]) == (
        201,
        "wrong_citation",
        "another year",
        "Who rose?",
    )
    with closing(sqlite3.connect(served.file)) as database:
        assert database.execute("SELECT tenant, receipt FROM feedback").fetchall() == [("a", MINE.id)]


async def test_an_unknown_receipt_one_of_another_tenants_and_one_that_can_be_none_are_the_same_404(served):
    replies = [
        await served("reader", {"receipt": name, "kind": "right"}) for name in (THEIRS.id, "0" * 64, "../../keys", "")
    ]
    assert [status for status, _ in replies] == [404] * 4
    assert len({json.dumps({**body["error"], "request_id": ""}) for _, body in replies}) == 1
    assert not served.file.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "good"}, {"kind": None}, {"note": "x" * 2_001}, {"note": 7}, {"receipt": "0" * 65}, {"receipt": None},
        {"tenant_id": "b"}, {"kind": ["right"]},
    ],
)  # fmt: skip
async def test_fields_that_are_wrong_are_refused_by_name(served, wrong):
    status, body = await served("reader", {"receipt": MINE.id, "kind": "right", **wrong})
    assert (status, body["error"]["fields"][0]["field"]) == (422, *wrong)
    assert not served.file.exists()


async def test_without_a_key_and_with_one_for_metrics_nothing_is_kept(served):
    body = {"receipt": MINE.id, "kind": "right"}
    assert [(await served(key, body))[0] for key in (None, "metrics")] == [401, 403]
    assert not served.file.exists()
