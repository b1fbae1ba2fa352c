"""`shiguan feedback`: what readers say of answers."""

import json

import pytest
from tests.doubles.receipts import receipt

from shiguan.cli import main
from shiguan.serving.engine import ReceiptFolder
from shiguan.serving.settings import ServingSettings

MINE = receipt("a", "Who rose?", quotes=["An Lushan rose."])


@pytest.fixture
def shiguan(tmp_path, capsys):
    ReceiptFolder(ServingSettings(data_dir=tmp_path)).keep(MINE)

    def run(*arguments, tenant="a", folder=tmp_path):
        code = main([*map(str, arguments), "--tenant", tenant, "--data-dir", str(folder)])
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def test_a_judgement_by_id_and_by_file_is_exported_a_line_each(shiguan, tmp_path):
    file = tmp_path / "eye.json"
    other = receipt("a", "Who fell?")
    file.write_text(other.model_dump_json())
    assert shiguan("feedback", "give", MINE.id, "right")[0] == 0
    code, out, _ = shiguan("feedback", "give", file, "missing", "--note", "Zhang Xun")
    assert (code, json.loads(out)["note"]) == (0, "Zhang Xun")
    _, out, _ = shiguan("feedback", "export")
    assert [(one["receipt"], one["kind"]) for one in map(json.loads, out.splitlines())] == [
        (other.id, "missing"),
        (MINE.id, "right"),
    ]
    assert shiguan("feedback", "export", tenant="b") == (0, "", "")


def test_judgements_are_deleted_for_the_tenant_that_asks_alone(shiguan):
    shiguan("feedback", "give", MINE.id, "right")
    assert json.loads(shiguan("feedback", "delete", "--receipt", MINE.id, tenant="b")[1]) == {"deleted": 0}
    assert json.loads(shiguan("feedback", "delete", "--older-than", "1")[1]) == {"deleted": 0}
    assert json.loads(shiguan("feedback", "delete", "--receipt", MINE.id)[1]) == {"deleted": 1}
    assert shiguan("feedback", "export") == (0, "", "")
    with pytest.raises(SystemExit) as refused:
        shiguan("feedback", "delete")
    assert refused.value.code == 2


@pytest.mark.parametrize(
    ("arguments", "tenant", "told"),
    [
        ((MINE.id, "good"), "a", "`good` is not a kind of feedback. Expected right, wrong, wrong_citation, missing."),
        ((MINE.id, "wrong", "--note", "x" * 2_001), "a", "The note has 2,001 characters."),
        ((MINE.id, "right"), "b", "has no such receipt of this tenant"),
        (("0" * 64, "right"), "a", "has no such receipt of this tenant"),
        (("keys.json", "right"), "a", "keys.json is not a file"),
        (("mine.json", "right"), "b", "is not a file of at most"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_kept(shiguan, monkeypatch, tmp_path, arguments, tenant, told):
    monkeypatch.chdir(tmp_path)
    code, out, err = shiguan("feedback", "give", *arguments, tenant=tenant)
    assert (code, out) == (2, "")
    assert told in err
    assert not (tmp_path / "feedback.sqlite").exists()


def test_a_file_of_another_tenant_is_refused(shiguan, tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(MINE.model_dump_json())
    code, _, err = shiguan("feedback", "give", file, "right", tenant="b")
    assert (code, "of another tenant" in err) == (2, True)


def test_a_mistyped_folder_is_named_and_not_made(shiguan, tmp_path):
    for command in (
        ("feedback", "give", MINE.id, "right"),
        ("feedback", "export"),
    ):
        code, _, err = shiguan(*command, folder=tmp_path / "nowhere")
        assert (code, "There is no folder" in err) == (2, True)
    assert not (tmp_path / "nowhere").exists()
