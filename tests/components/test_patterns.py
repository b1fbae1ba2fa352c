from shiguan.resources import read_patterns


def test_layout_underscores_and_parts_of_a_table_become_one_pattern(tmp_path):
    table = tmp_path / "cues.yaml"
    table.write_text(
        "parts:\n  kin: >-\n    father|\n    old_aunt\nasks:\n  en: {who: {weight: 2, pattern: 'the_(?:{kin})\n    of'}}\n"
    )
    cue = read_patterns(table)["asks"]["en"]["who"]
    assert cue["weight"] == 2
    assert cue["pattern"].fullmatch("The old auntof")
    assert not cue["pattern"].search("the old_auntof")
