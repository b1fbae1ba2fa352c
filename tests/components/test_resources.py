import re

import pytest

from shiguan.resources import cache_folder, data_folder, read_patterns, utc_time


def test_a_moment_is_written_in_one_way():
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", utc_time())
    assert utc_time(days=-(10**12)) < utc_time() < utc_time(days=1) < utc_time(days=10**12)


def test_layout_underscores_and_parts_of_a_table_become_one_pattern(tmp_path):
    table = tmp_path / "cues.yaml"
    table.write_text(
        "parts:\n  kin: >-\n    father|\n    old_aunt\nasks:\n  en: {who: {weight: 2, pattern: 'the_(?:{kin})\n    of'}}\n"
    )
    cue = read_patterns(table)["asks"]["en"]["who"]
    assert cue["weight"] == 2
    assert cue["pattern"].fullmatch("The old auntof")
    assert not cue["pattern"].search("the old_auntof")


@pytest.mark.parametrize(
    ("variable", "folder"), [("SHIGUAN_DATA_DIR", data_folder), ("SHIGUAN_CACHE_DIR", cache_folder)]
)
def test_a_blank_variable_of_a_folder_is_none(monkeypatch, tmp_path, variable, folder):
    monkeypatch.delenv(variable, raising=False)
    default = folder()
    monkeypatch.setenv(variable, "  ")
    assert folder() == default
    monkeypatch.setenv(variable, f"{tmp_path}/a b\n")
    assert folder() == tmp_path / "a b"
