import pytest

from shiguan.errors import RefusedError
from shiguan.evaluation.json_lines import fingerprint
from shiguan.evaluation.results import RunStore

CONFIGURATION = {"mode": "simple", "data": {"queries.jsonl": "aa"}}


def test_a_line_that_a_crash_cut_off_is_asked_again(tmp_path):
    store = RunStore(tmp_path, CONFIGURATION)
    store.add("q1", {"found": []})
    store.add("q2", {"found": []})
    file = tmp_path / "questions.jsonl"
    file.write_bytes(file.read_bytes()[:-6])
    store = RunStore(tmp_path, CONFIGURATION)
    assert list(store.records) == ["q1"]
    store.add("q2", {"found": ["史"]})
    assert RunStore(tmp_path, CONFIGURATION).records == {"q1": {"found": []}, "q2": {"found": ["史"]}}


def test_a_broken_line_in_the_middle_is_an_error_and_not_a_lost_question(tmp_path):
    RunStore(tmp_path, CONFIGURATION).add("q1", {})
    (tmp_path / "questions.jsonl").write_text('{"id": "q1"\n{"id": "q2"}\n')
    with pytest.raises(RefusedError, match="line 1 is broken"):
        RunStore(tmp_path, CONFIGURATION)


def test_another_configuration_in_the_same_folder_is_refused_by_name(tmp_path):
    RunStore(tmp_path, CONFIGURATION)
    with pytest.raises(RefusedError) as raised:
        RunStore(tmp_path, {"mode": "advanced", "data": {"queries.jsonl": "bb"}})
    assert "another configuration: `mode`, `data`." in str(raised.value)
    assert RunStore(tmp_path, CONFIGURATION).records == {}


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff", b""])
def test_a_broken_configuration_is_refused_with_its_file(tmp_path, content):
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(RefusedError, match=r"run\.json is broken"):
        RunStore(tmp_path, CONFIGURATION)
    with pytest.raises(RefusedError, match="cannot be written"):
        RunStore(tmp_path / "run.json" / "run", CONFIGURATION)


def test_a_fingerprint_does_not_depend_on_the_order_of_keys():
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1}) != fingerprint({"a": 1, "b": [3]})
