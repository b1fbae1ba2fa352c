from tests.doubles.cluster import elasticsearch, qdrant, small_models  # noqa: F401  fixtures
