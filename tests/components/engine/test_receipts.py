"""Receipts: what they hold of an answer, what replay makes of a library that went on, and files that are no receipts."""

import json

import pytest
from tests.doubles.small_library import TENANT, TEXTS, copy_library, ingest_small_library
from tests.doubles.stand_in_llm import StandInLlm

from shiguan.engine.library import Library
from shiguan.engine.receipts import Receipt, read_receipt, replay
from shiguan.engine.runner import Runner
from shiguan.errors import RefusedError, StoreFullError
from shiguan.resources import resource_folder, text_hash
from shiguan.stores.embedded.shards import close_all_shards

QUESTION = "Who set up the salt monopoly?"
ANSWER = "The salt monopoly was set up by Diwu Qi in 758. [1]"


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with a library, its texts, and the receipt of an answer that cites `salt.txt`."""
    folder = tmp_path_factory.mktemp("kept")
    data, receipts = ingest_small_library(folder), []
    with (
        StandInLlm(default=ANSWER) as llm,
        pytest.MonkeyPatch.context() as environment,
        Runner(data_dir=data, keep_receipt=receipts.append) as runner,
    ):
        environment.setenv("OPENAI_BASE_URL", llm.url)
        answer = runner.ask(QUESTION, tenant_id=TENANT, top_k=3)
    (folder / "receipt.json").write_text(json.dumps(receipts[0].model_dump(mode="json")))
    (folder / "answer.json").write_text(json.dumps(answer))
    close_all_shards()
    return folder


@pytest.fixture
def library(kept, tmp_path):
    """A copy of the library; the texts stay in their folder, since a source is known by its path."""
    copy_library(kept / "data", tmp_path / "data")
    yield Library(data_dir=tmp_path / "data")
    close_all_shards()
    for name, text in TEXTS.items():
        (kept / "texts" / name).write_text(text, encoding="utf-8")


@pytest.fixture
def receipt(kept):
    found = read_receipt(kept / "receipt.json")
    assert {one.source for one in found.answer.citations} == {"salt.txt"}
    return found


def test_a_receipt_holds_how_the_answer_came_about(kept):
    receipt = read_receipt(kept / "receipt.json")
    answer = json.loads((kept / "answer.json").read_text())
    assert answer["metadata"].pop("receipt") == receipt.id == receipt.own_id()
    # What only repeats passages and citations for the reader is not kept once more.
    told = receipt.answer.model_dump(mode="json")
    for name in ("citations", "documents"):
        for kept_one, given in zip(told[name], answer[name], strict=True):
            assert kept_one == {key: given[key] for key in kept_one}
    repeated = {"citations", "documents"}
    assert {k: v for k, v in told.items() if k not in repeated} == {k: answer[k] for k in set(told) - repeated}
    assert set(answer) - set(told) == {
        "rewritten_query", "retrieved_count", "generation_time", "formatted_citations", "sources",
    }  # fmt: skip
    assert (receipt.tenant_id, receipt.deployment, receipt.parameters["top_k"]) == (TENANT, "embedded", 3)
    path = resource_folder("pipelines") / "embedded" / "simple.yml"
    assert receipt.mode_sha256 == text_hash(path.read_text(encoding="utf-8"))
    read = [(passage.number, passage.id) for passage in receipt.passages]
    assert read == [(document["number"], document["id"]) for document in answer["documents"]]
    assert receipt.passages[0].sha256 == text_hash(TEXTS["salt.txt"])
    # Prompts are kept only where that is switched on.
    assert set(receipt.prompt["prompt_rendered"]) == {"sha256"}


def test_a_receipt_holds_every_call_the_prompt_and_the_attempts(kept, endpoint):
    endpoint.default = f"{ANSWER} It was set up by Yang Guozhong in 931. [1]"
    receipts = []
    with Runner(mode="precise", data_dir=kept / "data", keep_receipt=receipts.append, keep_prompts=True) as runner:
        answer = runner.ask(QUESTION, tenant_id=TENANT, temperature=0.5)
    (receipt,) = receipts
    assert len(receipt.calls) == answer["metadata"]["llm_calls"] == endpoint.calls
    tokens = [call["tokens"]["total_tokens"] for call in receipt.calls]
    assert sum(tokens) == answer["metadata"]["usage"]["total_tokens"]
    assert all(call["ms"] > 0 and call["model"] for call in receipt.calls)
    assert "generator" in {call["stage"] for call in receipt.calls}
    assert receipt.prompt["prompt"] == "precise"
    assert "persona/shiguan" in receipt.prompt["prompt_layers"]
    assert receipt.parameters["temperature"] == 0.5
    assert len(receipt.grading["history"]) == receipt.grading["attempts"]
    assert any("931" in str(removed) for removed in receipt.grading["removed"])
    messages = receipt.prompt["prompt_rendered"]["messages"]
    assert "\n".join(message["text"] for message in messages) in endpoint.prompts[-1]


@pytest.mark.parametrize("mode", ["simple", "advanced", "precise"])
def test_what_is_not_found_has_a_receipt_too_in_every_mode_and_in_the_stream(kept, mode):
    receipts = []
    with Runner(mode=mode, data_dir=kept / "data", keep_receipt=receipts.append) as runner:
        answer = runner.ask("Who invented the telephone in Boston?", tenant_id=TENANT)

        async def last():
            return [event async for event in runner.stream("Who set up salt?", tenant_id=TENANT)][-1]

        event = runner._loop.run(last())
    assert [one.id for one in receipts] == [answer["metadata"]["receipt"], event.data["metadata"]["receipt"]]
    assert receipts[0].answer.status == answer["status"] == "not_found"


@pytest.mark.parametrize(
    ("failure", "why"),
    [(OSError(28, "No space left on device"), "No space left"), (StoreFullError("/srv/x has 3 MB"), "StoreFullError")],
)
def test_a_full_disk_costs_a_warning_and_not_the_answer(kept, failure, why):
    def fail(receipt):
        raise failure

    with Runner(data_dir=kept / "data", keep_receipt=fail) as runner:
        answer = runner.ask(QUESTION, tenant_id=TENANT)
    (warning,) = answer["metadata"]["warnings"]
    assert why in warning
    assert "/srv" not in warning
    assert answer["citations"]


SALT = TEXTS["salt.txt"]


@pytest.mark.parametrize(("name", "text", "deleted", "state"), [
    ("salt.txt", SALT, False, "stands"),
    ("salt.txt", "The salt monopoly was set up by Liu Yan in 760. It paid little.", False, "gone"),
    ("salt.txt", f"Salt is white. {SALT}", False, "stands"),
    ("sea.txt", SALT, True, "gone"),
], ids=["ingested again", "other words", "further on", "another source"])  # fmt: skip
def test_a_citation_stands_while_its_source_says_so(kept, library, receipt, name, text, deleted, state):
    (kept / "texts" / name).write_text(text, encoding="utf-8")
    (result,) = library.ingest([kept / "texts" / name], tenant_id=TENANT)
    assert result.parents == 1
    if deleted:
        library.delete("salt.txt", tenant_id=TENANT)
    for tenant_id, expected in ((TENANT, state), ("b", "gone")):
        assert set(replay(receipt, library.stores["parents"], tenant_id=tenant_id)) == {expected}


# ---- the commands -----------------------------------------------------------------------------------------------------


@pytest.fixture
def data_dir(kept):
    return kept / "data"


def test_ask_writes_a_receipt_and_replay_reads_it(shiguan, library, tmp_path, endpoint):
    endpoint.default = ANSWER
    file, place = tmp_path / "r.json", {"folder": library.data_dir}
    code, out, _ = shiguan("ask", QUESTION, "--receipt", file, "--json", **place)
    assert code == 0
    assert json.loads(out)["metadata"]["receipt"] == read_receipt(file).id
    code, out, _ = shiguan("replay", file, **place)
    assert code == 0
    assert "[1] stands  salt.txt" in out
    library.delete("salt.txt", tenant_id=TENANT)
    code, out, _ = shiguan("replay", file, "--json", **place)
    assert code == 1
    assert {entry["state"] for entry in json.loads(out)["citations"]} == {"gone"}
    code, _, err = shiguan("replay", file, tenant="default", **place)
    assert code == 2
    assert "of the tenant `a`" in err


@pytest.mark.parametrize("place", ["/dev/null", "nowhere/r.json", "."])
def test_a_receipt_goes_to_a_plain_file_or_the_question_is_refused(shiguan, tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    code, out, err = shiguan("ask", QUESTION, "--receipt", place)
    assert (code, out) == (2, "")
    assert f"{place} cannot be written. Name a file in a folder that exists." in err


def sealed(data):
    """Make a file that has been tampered with whole again: it has the id of its content."""
    return {**data, "id": Receipt.model_validate(data).own_id()}


def spoiled(good):
    first = good["passages"][0]
    return {
        "nothing": b"",
        "no JSON": b"%PDF-1.7",
        "a list": b"[]",
        "null": b"null",
        "nested": b"[" * 200_000 + b"]" * 200_000,
        "nested in a field": json.dumps(good).encode().replace(b'"parameters": {', b'"parameters": {"x": ' + b"[" * 500_000 + b"]" * 500_000 + b", ", 1),
        "huge": b'{"answer": "' + b"x" * (5 << 20) + b'"}',
        "bytes": b"\xff\xfe\x00\x01",
        "a number of many digits": b'{"version": ' + b"9" * 10_000 + b"}",
        "lone surrogate": json.dumps({**good, "tenant_id": "\ud800"}).encode(),
        "another version": json.dumps({**good, "version": 2}).encode(),
        "another id": json.dumps({**good, "tenant_id": "b"}).encode(),
        "citations of another type": json.dumps({**good, "answer": {**good["answer"], "citations": "\x1b]0;x"}}).encode(),
        "a span of another type": json.dumps({**good, "passages": [{**first, "cut": [-1, "x"]}]}).encode(),
        "too many passages": json.dumps({**good, "passages": [first] * 1001}).encode(),
        "a reply without a receipt": b'{"receipt": null, "stale": false}',
    }  # fmt: skip


KINDS = list(spoiled({"passages": [{}], "answer": {}}))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_no_receipt_ends_in_one_sentence(shiguan, kept, tmp_path, kind):
    file = tmp_path / "r.json"
    file.write_bytes(spoiled(json.loads((kept / "receipt.json").read_text()))[kind])
    code, out, err = shiguan("replay", file)
    assert (code, out) == (2, "")
    assert err.startswith(f"shiguan: {file} is not a")
    assert len(err.splitlines()) == 1
    assert err.strip().isprintable()


@pytest.mark.parametrize("place", ["missing.json", "."])
def test_what_is_no_file_is_refused(tmp_path, place):
    with pytest.raises(RefusedError, match=r"does not exist\. Expected a file that `shiguan ask --receipt"):
        read_receipt(tmp_path / place)


def test_whatever_a_receipt_says_speaks_to_no_terminal_and_opens_no_file(shiguan, kept, tmp_path):
    data = json.loads((kept / "receipt.json").read_text())
    evil = "\x1b]0;owned\x07\x9b2J\u202e../../etc/passwd"
    data["answer"] = {
        **data["answer"], "query": evil, "mode": evil, "status": evil,
        "citations": [{**data["answer"]["citations"][0], "quote": evil, "source": evil, "section": [evil], "parent_id": evil}],
    }  # fmt: skip
    file = tmp_path / "r.json"
    file.write_text(json.dumps(sealed(data)))
    code, out, err = shiguan("replay", file)
    assert (code, err) == (1, "")
    assert all(line.isprintable() for line in out.splitlines())
    assert "gone" in out
    data["tenant_id"] = evil
    file.write_text(json.dumps(sealed(data)))
    code, out, err = shiguan("replay", file)
    assert (code, out) == (2, "")
    assert err.strip().isprintable()


def test_a_receipt_that_names_another_tenants_passages_finds_nothing(library):
    receipts = []
    with Runner(data_dir=library.data_dir, keep_receipt=receipts.append) as runner:
        runner.ask("Who proposed the two-tax reform of tenant b?", tenant_id="b")
    theirs = receipts[0].model_copy(update={"tenant_id": TENANT})
    assert theirs.answer.citations
    assert set(replay(theirs, library.stores["parents"], tenant_id=TENANT)) == {"gone"}
