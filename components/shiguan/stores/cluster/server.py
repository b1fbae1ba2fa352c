"""A server's address, its clients, which retry if it is away, and its errors in words."""

import os
import ssl
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from threading import Lock
from typing import Any

import httpx
from elastic_transport import ConnectionError as ElasticConnectionError
from elastic_transport import ConnectionTimeout, TlsError, Transport, TransportError
from elasticsearch import ApiError, Elasticsearch
from haystack.document_stores.errors import DocumentStoreError
from qdrant_client import QdrantClient
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse
from urllib3.exceptions import NewConnectionError

from shiguan.errors import ConfigurationError, ShiguanError, StoreError, StoreUnavailableError

_BUSY = (429, 502, 503, 504)
_NAMED = 5
TIMEOUT = 10.0
"""Seconds that a request may take."""
_SET_UP_SECONDS = 60.0
_AUTHORITY = "SHIGUAN_CA_FILE"
# The first is short: a connection from before a restart is broken, and the next one is not.
_WAITS = (0.1, 1.0, 2.0, 4.0)
_LONGEST_WAIT = 10.0
"""A server that asks for more seconds is reported at once: somebody waits for the answer."""


class Server:
    """One server by its name, with the client of one store, checked at its first use and again after a failure."""

    def __init__(self, name: str, check: Callable[[Any], None]) -> None:
        self.name, self._check = name, check
        self.variable, self.key_variable = f"SHIGUAN_{name.upper()}_URL", f"SHIGUAN_{name.upper()}_API_KEY"
        self._client: Any = None
        self._opening = Lock()

    @property
    def _credentials(self) -> str:
        """What holds the credentials, in words: the key, or the address if it has a password and there is no key."""
        in_address = any(httpx.URL(url).userinfo for url in self.urls()) and not os.environ.get(self.key_variable)
        return f"the user name and the password in {self.variable}" if in_address else self.key_variable

    def urls(self) -> list[str]:
        """Read the address."""
        given = [url.strip().rstrip("/") for url in os.environ.get(self.variable, "").split(",") if url.strip()]
        if not given or any(_address(url) is None for url in given):
            raise ConfigurationError(
                f"{self.variable} {'holds no HTTP address' if given else 'is not set'}: the deployment "
                f"`elasticsearch_qdrant` does not know where {self.name} is. Set it to one such as "
                f"http://localhost:{9200 if self.name == 'Elasticsearch' else 6333}."
            )
        return given

    def open(self, seconds: float = TIMEOUT) -> Any:
        """Open a client, which retries if the server is away or busy; nothing is sent yet."""
        trusted, urls = _trusted_authority(), self.urls()
        key = os.environ.get(self.key_variable) or None
        if self.name == "Elasticsearch":
            own: dict[str, Any] = {"ssl_context": trusted} if trusted else {}
            # Of several nodes the next one is tried at once.
            own |= {"transport_class": _PatientTransport, "max_retries": len(urls) - 1}
            return Elasticsearch(urls, api_key=key, request_timeout=seconds, **own)
        verified: dict[str, Any] = {"verify": trusted} if trusted else {}
        with warnings.catch_warnings():
            # Whether a key may travel without encryption is the operator's decision, see docs/deploy.md.
            warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
            client = QdrantClient(url=urls[0], api_key=key, timeout=int(seconds), check_compatibility=False, **verified)
        client.http.client.add_middleware(lambda request, send: _patiently(partial(send, request), _qdrant_wait))
        return client

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Provide the client; errors in the block name the server and the next step."""
        with self.reporting():
            yield self.client()

    def client(self) -> Any:
        with self._opening, self.reporting():
            if self._client is None:
                client = self.open(TIMEOUT)
                try:
                    self._check(client)
                except BaseException:
                    client.close()
                    raise
                self._client = client
            return self._client

    def close(self) -> None:
        """Close the client; the next use opens another."""
        with self._opening:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def set_up(self, make: Callable[[Any], list[str]]) -> list[str]:
        """Let `make` create what is missing with a patient client, and report what it did."""
        with self.reporting(), closing(self.open(_SET_UP_SECONDS)) as client:
            return [f"{self.place}: {clause}" for clause in make(client)]

    @property
    def place(self) -> str:
        """The server and its address without user name, password and query, for messages."""
        return f"{self.name} at {', '.join(filter(None, map(_address, self.urls())))}"

    def missing(self, kind: str, index: str) -> StoreError:
        return StoreError(
            f"{self.place} has no {kind} `{index}`. Make it with `shiguan stores init`, then run the same again."
        )

    def refusal(self, verb: str, refused: list[tuple[str, str]], count: int, index: str) -> StoreError:
        """Make the error for passages that the server did not take, by id and reason."""
        named = "; ".join(f"`{document_id}` ({reason})" for document_id, reason in refused[:_NAMED])
        more = f" and {len(refused) - _NAMED:,} more" if len(refused) > _NAMED else ""
        return StoreError(
            f"{self.place} refused to {verb} {len(refused):,} of {count:,} passages in {index}: {named}{more}. The "
            "others are done. Remove the cause and run the same again; only what is missing is repeated."
        )

    def whole(self, answer: Any) -> Any:
        """Refuse a partial answer, in which not all shards took part: it looks like a whole one."""
        shards = answer.get("_shards") or {}
        failures = shards.get("failures") or ()
        failed = max(int(shards.get("failed") or 0), len(failures))
        if not failed and not answer.get("timed_out"):
            return answer
        cause = f": {_causes(failures[0].get('reason'))}" if failures else ""
        what = f"{failed} of {shards.get('total', failed)} shards failed{cause}" if failed else "it ran out of time"
        raise StoreUnavailableError(
            f"{self.place} did only a part of the request ({what}), which is not used. Try again "
            "when all shards are there."
        )

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Turn what the client libraries raise into errors that name the server and the next step."""
        try:
            yield
        except ShiguanError:
            raise
        except Exception as error:
            known = _known(error)
            if known is None:
                raise
            raise self._translated(known) from error

    def _translated(self, error: BaseException) -> StoreError:
        if isinstance(error, ConnectionTimeout) or "timed out" in str(error).lower():
            return StoreUnavailableError(f"{self.place} did not answer in time. Its own log says how it is. {_AGAIN}")
        status = error.meta.status if isinstance(error, ApiError) else getattr(error, "status_code", None)
        if isinstance(error, ResourceExhaustedResponse):
            status = 429
        if status is None and "CERTIFICATE_VERIFY_FAILED" in f"{error} {getattr(error, 'message', '')}":
            return StoreError(
                f"{self.place} has a certificate that is not trusted ({_reason(error)}). Name the certificate of its "
                f"authority in {_AUTHORITY}; if it is for another host, correct {self.variable}."
            )
        if status is None:
            return StoreUnavailableError(
                f"{self.place} cannot be reached ({_reason(error)}). Start it, or correct {self.variable}. {_AGAIN}"
            )
        if status in (401, 403) and "block_exception" not in _reason(error):
            return StoreError(
                f"{self.place} refuses our credentials (status {status}). Correct {self._credentials}, and see in "
                "docs/deploy.md what they must be allowed to do."
            )
        if status in _BUSY:
            wait = _asked_seconds(error)
            return StoreUnavailableError(
                f"{self.place} is overloaded (status {status}: {_reason(error)}). Give it more memory or "
                f"nodes, or wait{'' if wait is None else f' {wait:g} seconds, as it asks'}. {_AGAIN}"
            )
        if status == 404:
            return StoreError(
                f"{self.place} does not have what was asked for ({_reason(error)}). Run `shiguan stores init`, then "
                "the same again."
            )
        return StoreError(
            f"{self.place} refused a request (status {status}: {_reason(error)}). `shiguan stores init` says "
            "whether its indexes are as they should be."
        )


_AGAIN = "Then run the same again; a file that was being ingested is not whole until it is ingested again."


def _trusted_authority() -> ssl.SSLContext | None:
    path = os.environ.get(_AUTHORITY)
    try:
        return ssl.create_default_context(cafile=path) if path else None
    except OSError as error:
        raise ConfigurationError(
            f"{_AUTHORITY} names {path}, which is not a certificate ({error}). Name one in PEM format."
        ) from error


class _PatientTransport(Transport):
    """Elasticsearch's transport, with retries."""

    def perform_request(self, method: str, target: str, **options: Any) -> Any:
        conditional = "if_seq_no=" in target or "op_type=create" in target
        send = partial(super().perform_request, method, target, **options)
        return _patiently(send, partial(_elastic_wait, conditional=conditional))


def _patiently(send: Callable[[], Any], wait_of: Callable[[Any], float | None]) -> Any:
    """Send again, a few times, while `wait_of` gives an answer or error seconds to wait (0: our own), not None."""
    for wait in (*_WAITS, None):
        error = None
        try:
            outcome = send()
        except Exception as caught:
            outcome = error = caught
        asked = wait_of(outcome)
        if asked is None or wait is None or asked > _LONGEST_WAIT:
            break
        time.sleep(asked or wait)
    if error is not None:
        raise error
    return outcome


def _elastic_wait(outcome: Any, *, conditional: bool) -> float | None:
    if not isinstance(outcome, Exception):
        return _busy_wait(outcome.meta.status, outcome.meta.headers)
    if not isinstance(outcome, ElasticConnectionError) or isinstance(outcome, TlsError):
        return None
    # Every other write can be repeated; this one, if it was done, would be refused the second time.
    return None if conditional and not isinstance(outcome.__cause__, NewConnectionError) else 0.0


def _qdrant_wait(outcome: Any) -> float | None:
    if isinstance(outcome, ResponseHandlingException):
        broken = isinstance(outcome.source, httpx.NetworkError | httpx.RemoteProtocolError)
        return 0.0 if broken else None
    return None if isinstance(outcome, Exception) else _busy_wait(outcome.status_code, outcome.headers)


def _busy_wait(status: int, headers: Mapping[str, str]) -> float | None:
    return (_seconds(headers) or 0.0) if status in _BUSY else None


def _seconds(headers: Mapping[str, str]) -> float | None:
    asked = str(headers.get("retry-after", ""))
    return float(asked) if asked.isdecimal() else None


def _address(url: str) -> str | None:
    """Return an address without its secrets; None if it is not one of HTTP."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return None
    bare = str(parsed.copy_with(userinfo=b"", query=None)).rstrip("/")
    return bare if parsed.scheme in ("http", "https") and parsed.host else None


def _known(error: BaseException | None) -> BaseException | None:
    """Find the client library's own error behind Haystack's."""
    first = error
    while error is not None:
        if isinstance(error, ApiError | TransportError | ApiException | QdrantException | httpx.HTTPError):
            return error
        error = error.__cause__
    return first if isinstance(first, DocumentStoreError) else None


def _asked_seconds(error: BaseException) -> float | None:
    if isinstance(error, ResourceExhaustedResponse):
        return float(error.retry_after_s)
    return _seconds(error.meta.headers) if isinstance(error, ApiError) else None


def _reason(error: BaseException) -> str:
    """Return the server's or the connection's reason in one short clause."""
    if isinstance(error, ApiError):
        body = error.body
        details = body.get("error") if isinstance(body, dict) else None
        return _causes(details) if isinstance(details, dict) else str(error.message)
    if isinstance(error, UnexpectedResponse):
        return error.content.decode("utf-8", "replace")[:300]
    if isinstance(error, ResponseHandlingException):
        return str(error.source)
    if isinstance(error, ElasticConnectionError):
        return str(error.message).rsplit(": ", 1)[-1].strip("() ")
    return str(error)


def _causes(details: Any) -> str:
    """Name an error of Elasticsearch with those behind it: the outermost says what failed, the innermost why."""
    found: dict[str, None] = {}
    while isinstance(details, dict):
        found[f"{details.get('type')}: {details.get('reason')}"] = None
        shards = [one.get("reason") for one in details.get("failed_shards") or () if isinstance(one, dict)]
        details = next(filter(None, [details.get("caused_by"), *(details.get("root_cause") or ()), *shards]), None)
    return ", caused by ".join(found) or "no reason given"
