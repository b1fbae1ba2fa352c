from tests.doubles.cluster import elasticsearch, qdrant, small_models, waits  # noqa: F401  fixtures
