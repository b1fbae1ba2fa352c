"""What the tests of whole pipelines share."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from examples.build_book import build_book
from tests.doubles.small_library import TENANT
from tests.doubles.waiting import waits  # noqa: F401  a fixture

from shiguan.engine.library import Library
from shiguan.engine.runner import Runner


@pytest.fixture(scope="session")
def sample_book(tmp_path_factory):
    """The library of the sample book, for the tenant of `small_library`."""
    folder = tmp_path_factory.mktemp("sample-book")
    book = build_book(folder / "an-lushan-rebellion.epub")
    # In a thread, since a fixture of an asynchronous test is set up inside its event loop.
    with ThreadPoolExecutor(1) as pool:
        ingest = Library(data_dir=folder / "library").ingest
        (result,) = pool.submit(lambda: list(ingest([book], tenant_id=TENANT))).result()
    assert result.parents > 60
    return folder / "library"


@pytest.fixture
def endpoint(stand_in_llm, monkeypatch):
    """A scripted model behind the environment's endpoint."""
    monkeypatch.setenv("OPENAI_BASE_URL", stand_in_llm.url)
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    return stand_in_llm


@pytest.fixture
def opened():
    """Open a mode on a library; it is closed when the test is over."""
    with ExitStack() as runners:
        yield lambda mode, library: runners.enter_context(Runner("embedded", mode, data_dir=library))


@pytest.fixture
def llm(endpoint):
    """One that answers with one supported sentence."""
    endpoint.default = "Yang Yan proposed the two-tax reform in 780. [1]"
    return endpoint
