"""What needs no model asks none, so that one which refuses stops nothing."""

import json

import pytest

QUESTION = "Who proposed the two-tax reform?"


@pytest.fixture
def refusing(endpoint):
    """A configured model that answers every call with 401."""
    endpoint.next(times=99, status=401)
    return endpoint


def test_a_text_is_checked_to_its_end(shiguan, refusing, tmp_path):
    draft = tmp_path / "draft.md"
    draft.write_text("The wall of the capital was eight metres high. Yang Yan proposed the two-tax reform in 790.")
    code, out, _ = shiguan("verify", draft, "--json")
    found = json.loads(out)
    assert (code, [item["verdict"] for item in found["items"]]) == (0, ["supported", "contradicted"])
    assert refusing.calls == 0


def test_passages_are_found(shiguan, refusing):
    code, out, _ = shiguan("search", QUESTION, "--json")
    assert (code, json.loads(out)["results"][0]["source"], refusing.calls) == (0, "tax.txt", 0)
