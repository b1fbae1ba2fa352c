from shiguan.resources import utc_time


def test_a_moment_is_written_in_one_way():
    assert utc_time(1_000_000_000.9) == "2001-09-09T01:46:40+00:00"
    assert utc_time(1_000_000_000, days=2) == "2001-09-11T01:46:40+00:00"
    assert utc_time(1_000_000_000, days=-(10**12)) == "1901-10-04T01:46:40+00:00"
    assert utc_time() < utc_time(days=1) < utc_time(days=10**12)
