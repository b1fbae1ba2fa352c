import pytest

from shiguan.stores.embedded.shards import close_all_shards


@pytest.fixture(autouse=True)
def closed_shards():
    yield
    close_all_shards()
