from tests.doubles.waiting import waits  # noqa: F401  a fixture
