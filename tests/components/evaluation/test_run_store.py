import pytest

from shiguan.errors import RefusedError
from shiguan.evaluation.json_lines import fingerprint
from shiguan.evaluation.results import RunStore

CONFIGURATION = {"mode": "simple", "data": {"queries.jsonl": "aa"}}


def test_what_was_added_is_there_again(tmp_path):
    with RunStore(tmp_path / "run", CONFIGURATION) as store:
        store.add("q1", {"found": ["史"]})
    with RunStore(tmp_path / "run", CONFIGURATION) as store:
        assert store.records == {"q1": {"found": ["史"]}}


def test_a_line_that_a_crash_cut_off_is_asked_again(tmp_path):
    with RunStore(tmp_path, CONFIGURATION) as store:
        store.add("q1", {"found": []})
        store.add("q2", {"found": []})
    file = tmp_path / "questions.jsonl"
    file.write_bytes(file.read_bytes()[:-6])
    with RunStore(tmp_path, CONFIGURATION) as store:
        assert list(store.records) == ["q1"]
        store.add("q2", {"found": ["d"]})
    with RunStore(tmp_path, CONFIGURATION) as store:
        assert store.records == {"q1": {"found": []}, "q2": {"found": ["d"]}}


def test_a_broken_line_in_the_middle_is_an_error_and_not_a_lost_question(tmp_path):
    with RunStore(tmp_path, CONFIGURATION) as store:
        store.add("q1", {})
    (tmp_path / "questions.jsonl").write_text('{"id": "q1"\n{"id": "q2"}\n')
    with pytest.raises(RefusedError, match="line 1 is broken"), RunStore(tmp_path, CONFIGURATION):
        pass


def test_another_configuration_in_the_same_folder_is_refused_by_name(tmp_path):
    with RunStore(tmp_path, CONFIGURATION):
        pass
    changed = {"mode": "advanced", "data": {"queries.jsonl": "bb"}}
    with pytest.raises(RefusedError) as raised, RunStore(tmp_path, changed):
        pass
    assert "another configuration: `mode`, `data`." in str(raised.value)
    with RunStore(tmp_path, CONFIGURATION) as store:
        assert store.records == {}


def test_two_processes_do_not_write_to_one_folder(tmp_path):
    with (
        RunStore(tmp_path, CONFIGURATION),
        pytest.raises(RefusedError, match="Another process is writing"),
        RunStore(tmp_path, CONFIGURATION),
    ):
        pass


def test_a_fingerprint_does_not_depend_on_the_order_of_keys():
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1}) != fingerprint({"a": 1, "b": [3]})
