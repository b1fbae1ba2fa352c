from shiguan.resources import read_patterns, utc_time


def test_a_moment_is_written_in_one_way():
    assert utc_time(1_000_000_000.9) == "2001-09-09T01:46:40+00:00"
    assert utc_time(1_000_000_000, days=2) == "2001-09-11T01:46:40+00:00"
    assert utc_time(1_000_000_000, days=-(10**12)) == "1901-10-04T01:46:40+00:00"
    assert utc_time() < utc_time(days=1) < utc_time(days=10**12)


def test_layout_underscores_and_parts_of_a_table_become_one_pattern(tmp_path):
    table = tmp_path / "cues.yaml"
    table.write_text(
        "parts:\n  kin: >-\n    father|\n    old_aunt\nasks:\n  en: {who: {weight: 2, pattern: 'the_(?:{kin})\n    of'}}\n"
    )
    cue = read_patterns(table)["asks"]["en"]["who"]
    assert cue["weight"] == 2
    assert cue["pattern"].fullmatch("The old auntof")
    assert not cue["pattern"].search("the old_auntof")
