"""What holds of a store on either server."""

import threading
from concurrent.futures import ThreadPoolExecutor

import certifi
import httpx
import pytest
from elastic_transport import TlsError
from qdrant_client.http.exceptions import ResponseHandlingException
from tests.components.stores.cluster.conftest import ALL, TENANT, child
from tests.doubles.recording_server import Reply

from shiguan.errors import ConfigurationError, StoreError, StoreUnavailableError
from shiguan.stores.cluster.elasticsearch_store import ElasticsearchStore
from shiguan.stores.cluster.qdrant_store import QdrantStore

MADE = {
    "Elasticsearch": lambda **more: ElasticsearchStore("children", **more).unscoped(),
    "Qdrant": lambda **more: QdrantStore("children", embedding_dim=2, **more).unscoped(),
}
UNTRUSTED = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)"
KINDS = {"Elasticsearch": "index", "Qdrant": "collection"}


def busy(times, status=503, headers=None):
    left = [Reply({"status": {"error": "too many"}}, status=status, headers=headers or {}) for _ in range(times)]
    return lambda request: left.pop() if left else None


def test_two_set_ups_at_once_both_succeed_and_nothing_is_deleted(name, server):
    seen = threading.Barrier(2, timeout=10)
    left = [0, 1]

    def both_look_first(request):
        if left and (request.method == "HEAD" or request.path.endswith("/exists")):
            left.pop()
            server.lock.release()
            try:
                seen.wait()
            finally:
                server.lock.acquire()
            gone = Reply({"result": {"exists": False}, "status": "ok", "time": 0.0})
            return Reply({}, status=404) if request.method == "HEAD" else gone
        return None

    server.faults.append(both_look_first)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: MADE[name]().set_up(), range(2)))
    assert sorted(done[0].rsplit(" ", 1)[1] for done in results) == ["made", "there"]
    assert not [request for request in server.requests if request.method == "DELETE"]


def test_a_store_that_was_never_set_up_says_so_and_makes_nothing(name, server):
    store = MADE[name]()
    for _ in range(2):
        with pytest.raises(StoreError, match=rf"has no {KINDS[name]} `children`\. Make it with `shiguan stores init`"):
            store.write_documents([child(1)], policy=ALL)
    assert not [request for request in server.requests if request.method in ("PUT", "POST")]


def test_a_busy_server_is_asked_again_and_a_store_whose_first_call_failed_works_once_it_does(store, server, waits):
    server.faults.append(busy(99))
    with pytest.raises(StoreUnavailableError, match="is overloaded"):
        store.count_documents()
    assert waits == [0.1, 1.0, 2.0, 4.0]
    server.faults[:] = [busy(2)]
    assert store.count_documents() == 0
    assert waits[4:] == [0.1, 1.0]


def test_a_server_is_given_the_time_it_asks_for_unless_that_is_long(store, server, waits):
    server.faults.append(busy(1, 429, {"Retry-After": "3"}))
    assert store.count_documents() == 0
    assert waits == [3.0]
    server.faults[:] = [busy(99, 429, {"Retry-After": "120"})]
    with pytest.raises(StoreUnavailableError, match=r"status 429: .*wait 120 seconds, as it asks"):
        store.count_documents()
    assert waits == [3.0]


def test_a_server_that_goes_down_or_hangs_is_named(name, server, store, monkeypatch):
    monkeypatch.setattr("shiguan.stores.cluster.server.TIMEOUT", 1.0)
    store.count_documents()
    released = threading.Event()
    server.faults.append(lambda request: released.wait(timeout=30) and None)
    with pytest.raises(StoreUnavailableError, match=rf"{name} at {server.url} did not answer in time"):
        store.count_documents()
    released.set()
    server.stop()
    with pytest.raises(StoreUnavailableError, match=rf"{name} at {server.url} cannot be reached .*Start it"):
        store.list_ids()


def test_a_read_that_broke_is_sent_again(store, server):
    """A server that stops resets the connections that are in use."""
    store.write_documents([child(1), child(2)], policy=ALL)
    broken = []

    def reset(request):
        if request.path.endswith(("/_search", "/scroll")) and len(broken) < 3:
            broken.append(request)
            server.hang_up()
        return

    server.faults.append(reset)
    assert sorted(store.list_ids(TENANT)) == ["c1", "c2"]
    assert len(broken) == 3


def test_passages_are_deleted_by_id_and_by_filter(store):
    store.write_documents([child(1), child(2), child(3, "b")], policy=ALL)
    store.delete_documents(["c1", "never there"])
    assert store.list_ids() == ["c2", "c3"]
    assert store.delete_by_filter(TENANT) == 1
    assert store.list_ids() == ["c3"]
    with pytest.raises(ValueError, match="must name what to delete"):
        store.delete_by_filter({})


def test_a_server_that_is_away_is_named_without_its_password(name, monkeypatch):
    monkeypatch.setenv(f"SHIGUAN_{name.upper()}_URL", "http://elastic:geheim@127.0.0.1:9")
    told = rf"{name} at http://127\.0\.0\.1:9 cannot be reached.*SHIGUAN_{name.upper()}_URL"
    with pytest.raises(StoreUnavailableError, match=told) as error:
        MADE[name]().count_documents()
    assert "geheim" not in str(error.value)


@pytest.mark.parametrize("address", ["", "  ", "localhost:9200", "ftp://localhost", "http://localhost:port"])
def test_an_address_that_is_none_is_refused_with_the_variables_name(name, monkeypatch, address):
    monkeypatch.setenv(f"SHIGUAN_{name.upper()}_URL", address)
    with pytest.raises(ConfigurationError, match=f"SHIGUAN_{name.upper()}_URL"):
        MADE[name]().count_documents()


def test_an_authority_of_ones_own_is_told_to_the_client(name, monkeypatch, tmp_path):
    monkeypatch.setenv(f"SHIGUAN_{name.upper()}_URL", "https://127.0.0.1:9")
    monkeypatch.setenv("SHIGUAN_CA_FILE", certifi.where())
    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        MADE[name]().set_up()
    monkeypatch.setenv("SHIGUAN_CA_FILE", str(tmp_path / "missing.crt"))
    with pytest.raises(ConfigurationError, match=r"SHIGUAN_CA_FILE names .*missing\.crt, which is not a certificate"):
        MADE[name]().set_up()


def test_the_key_is_sent_and_a_wrong_one_is_named(name, server, monkeypatch):
    server.api_key = "right"
    variable = f"SHIGUAN_{name.upper()}_API_KEY"
    with pytest.raises(StoreError, match=rf"refuses our credentials \(status 401\)\. Correct {variable}"):
        MADE[name]().set_up()
    monkeypatch.setenv(variable, "right")
    store = MADE[name](keyword_fields=["colour"])
    store.set_up()
    data = store.to_dict()
    assert "right" not in str(data)
    again = type(store).from_dict(data)
    assert again.to_dict() == data
    assert (again.index, again.keyword_fields) == ("children", ["colour"])


def test_a_wrong_password_in_the_address_is_looked_for_there(name, server, monkeypatch):
    server.api_key = "right"
    variable = f"SHIGUAN_{name.upper()}_URL"
    monkeypatch.setenv(variable, server.url.replace("://", "://elastic:geheim@"))
    with pytest.raises(StoreError, match=rf"Correct the user name and the password in {variable}, and see") as error:
        MADE[name]().set_up()
    assert "geheim" not in str(error.value)
    monkeypatch.setenv(f"SHIGUAN_{name.upper()}_API_KEY", "wrong")
    with pytest.raises(StoreError, match=rf"Correct SHIGUAN_{name.upper()}_API_KEY, and see"):
        MADE[name]().set_up()


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("Elasticsearch", TlsError(f"Connection error caused by: SSLError({UNTRUSTED})")),
        ("Qdrant", ResponseHandlingException(httpx.ConnectError(UNTRUSTED))),
    ],
)
def test_a_certificate_that_is_not_trusted_names_the_authoritys_variable(name, error, monkeypatch):
    """The errors are those that both clients raise for a server whose certificate is its own authority."""
    monkeypatch.setenv(f"SHIGUAN_{name.upper()}_URL", "https://localhost:9")
    told = pytest.raises(StoreError, match=r"not trusted .* certificate of its authority in SHIGUAN_CA_FILE")
    with told, MADE[name]().server.reporting():
        raise error
