"""Feedback at the server: on receipts of the key's own tenant, with any key that asks."""

import json
import sqlite3
from contextlib import closing
from functools import partial

import pytest
from tests.doubles.receipts import receipt
from tests.doubles.served_app import Served

from shiguan.serving.engine import ReceiptFolder
from shiguan.serving.review_routes import router
from shiguan.serving.settings import ServingSettings

MINE, THEIRS = receipt("a", "Who rose?", quotes=["An Lushan rose."]), receipt("b")


@pytest.fixture
def served(tmp_path):
    """The route behind the real gate, with a receipt of each of two tenants."""
    settings = ServingSettings(data_dir=tmp_path)
    for one in (MINE, THEIRS):
        ReceiptFolder(settings).keep(one)
    return partial(Served(settings, router), "/api/v1/feedback")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "feedback.sqlite"


async def test_a_read_key_judges_its_own_tenants_answers(served, file):
    call = await served({"receipt": MINE.id, "kind": "wrong_citation", "note": "another\nyear"}, who="a")
    told = {name: call.json[name] for name in ("kind", "note", "query")}
    assert (call.status, told) == (201, {"kind": "wrong_citation", "note": "another year", "query": "Who rose?"})
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT tenant, receipt FROM feedback").fetchall() == [("a", MINE.id)]


async def test_an_unknown_receipt_one_of_another_tenants_and_one_that_can_be_none_are_the_same_404(served, file):
    names = (THEIRS.id, "0" * 64, "../../keys", "")
    replies = [await served({"receipt": name, "kind": "right"}, who="a") for name in names]
    assert [reply.status for reply in replies] == [404] * 4
    assert len({json.dumps({**reply.error, "request_id": ""}) for reply in replies}) == 1
    assert not file.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "good"}, {"kind": None}, {"note": "x" * 2_001}, {"note": 7}, {"receipt": "0" * 65}, {"receipt": None},
        {"tenant_id": "b"}, {"kind": ["right"]},
    ],
)  # fmt: skip
async def test_fields_that_are_wrong_are_refused_by_name(served, file, wrong):
    call = await served({"receipt": MINE.id, "kind": "right", **wrong}, who="a")
    assert (call.status, call.error["fields"][0]["field"]) == (422, *wrong)
    assert not file.exists()


async def test_without_a_key_and_with_one_for_metrics_nothing_is_kept(served, file):
    body = {"receipt": MINE.id, "kind": "right"}
    assert (await served(body, who=None)).status == 401
    assert (await served(body, who="", role="metrics")).status == 403
    assert not file.exists()
