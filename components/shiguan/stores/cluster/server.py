"""A server's address, and its errors as a person can use them."""

import os
import ssl
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
from elastic_transport import ConnectionError as ElasticConnectionError
from elastic_transport import ConnectionTimeout, TransportError
from elasticsearch import ApiError, Elasticsearch
from haystack.document_stores.errors import DocumentStoreError
from haystack.utils import Secret
from qdrant_client import QdrantClient
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from shiguan.errors import ConfigurationError, ShiguanError, StoreError, StoreUnavailableError

_BUSY = (429, 502, 503, 504)
_NAMED = 5
_AUTHORITY = "SHIGUAN_CA_FILE"
_WAITS = (1.0, 2.0, 4.0)
_LONGEST_WAIT = 10.0
"""Who asks for more seconds is told of at once: somebody waits for an answer."""


@dataclass(frozen=True)
class Server:
    """One server as a person knows it."""

    name: str
    address: Secret
    api_key: Secret | None
    timeout: float
    """Seconds that a request may take."""

    @property
    def variable(self) -> str:
        """What the environment calls its address."""
        return f"SHIGUAN_{self.name.upper()}_URL"

    def urls(self) -> list[str]:
        """Read the address."""
        example = f"http://localhost:{9200 if self.name == 'Elasticsearch' else 6333}"
        try:
            value = self.address.resolve_value()
        except ValueError:
            value = None
        urls = [url.strip().rstrip("/") for url in str(value or "").split(",") if url.strip()]
        if not urls:
            raise ConfigurationError(
                f"{self.variable} is not set: the deployment `elasticsearch_qdrant` does not know where {self.name} "
                f"is. Set it to an address such as {example}."
            )
        for url in urls:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ConfigurationError(
                    f"{self.variable} holds {bare_url(url)!r}, which is no HTTP address. Set it to one such as "
                    f"{example}."
                )
        return urls

    def encryption(self) -> ssl.SSLContext | None:
        """Trust the authority whose certificates the servers have, where it is one of our own."""
        path = os.environ.get(_AUTHORITY)
        try:
            return ssl.create_default_context(cafile=path) if path else None
        except OSError as error:
            raise ConfigurationError(
                f"{_AUTHORITY} names {path}, which is no certificate ({error}). Name one in PEM format."
            ) from error

    def open(self, timeout: float | None = None) -> Any:
        """Open a client, of Qdrant one that asks again where the server is busy; nothing is asked yet."""
        trusted, seconds = self.encryption(), timeout or self.timeout
        key = self.api_key.resolve_value() if self.api_key else None
        if self.name == "Elasticsearch":
            own: dict[str, Any] = {"ssl_context": trusted} if trusted else {}
            return Elasticsearch(self.urls(), api_key=key, request_timeout=seconds, **own)
        verified: dict[str, Any] = {"verify": trusted} if trusted else {}
        with warnings.catch_warnings():
            # Whether a key may travel without encryption is the operator's decision, see docs/deploy.md.
            warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
            client = QdrantClient(
                url=self.urls()[0], api_key=key, timeout=int(seconds), check_compatibility=False, **verified
            )
        client.http.client.add_middleware(patiently)
        return client

    @property
    def place(self) -> str:
        """The server and its address without user name, password and query, for messages."""
        return f"{self.name} at {', '.join(bare_url(url) for url in self.urls())}"

    def refusal(self, verb: str, refused: list[tuple[str, str]], count: int, index: str) -> StoreError:
        """Make the error for passages that the server did not take, by id and reason."""
        named = "; ".join(f"`{document_id}` ({reason})" for document_id, reason in refused[:_NAMED])
        more = f" and {len(refused) - _NAMED:,} more" if len(refused) > _NAMED else ""
        return StoreError(
            f"{self.place} refused to {verb} {len(refused):,} of {count:,} passages in {index}: {named}{more}. The "
            "others are done. See to the cause and run the same again; only what is missing is repeated."
        )

    def whole(self, answer: Any) -> Any:
        """Let through what all shards took part in: a part of an answer looks like an answer."""
        shards = answer.get("_shards") or {}
        failures = [*(shards.get("failures") or ()), *(answer.get("failures") or ())]
        failed = max(int(shards.get("failed") or 0), len(failures))
        if not failed and not answer.get("timed_out"):
            return answer
        reason = (failures[0].get("reason") or failures[0].get("cause") or {}) if failures else {}
        cause = f": {reason.get('type')}: {reason.get('reason')}" if isinstance(reason, dict) and reason else ""
        what = f"{failed} of {shards.get('total', failed)} parts failed{cause}" if failed else "it ran out of time"
        raise StoreUnavailableError(
            f"{self.place} did only a part of what was asked ({what}). Nothing was answered from it: see "
            "`shiguan stores status`, and try again when all shards are there."
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
            return StoreUnavailableError(
                f"{self.place} did not answer in time. See how it does with `shiguan stores status` and in its own "
                "log, then try again."
            )
        status = error.meta.status if isinstance(error, ApiError) else getattr(error, "status_code", None)
        if isinstance(error, ResourceExhaustedResponse):
            status = 429
        if status is None:
            return StoreUnavailableError(
                f"{self.place} cannot be reached ({_reason(error)}). Start it, or correct {self.variable}; "
                "`shiguan stores status` looks again."
            )
        if status in (401, 403):
            return StoreError(
                f"{self.place} refuses our credentials (status {status}). Correct "
                f"SHIGUAN_{self.name.upper()}_API_KEY, and see in docs/deploy.md what the key must be allowed to do."
            )
        if status in _BUSY:
            wait = _asked_wait(error)
            return StoreUnavailableError(
                f"{self.place} takes no more for now (status {status}: {_reason(error)}). Try again "
                f"{'later' if wait is None else f'in {wait:g} seconds, as it asks'}, or give it more memory or nodes."
            )
        if status == 404:
            return StoreError(
                f"{self.place} does not have what was asked for ({_reason(error)}). Run `shiguan stores init` and try "
                "again."
            )
        return StoreError(
            f"{self.place} refused a request (status {status}: {_reason(error)}). `shiguan stores status` shows "
            "whether its indexes are as they should be."
        )


def patiently(request: Any, send: Callable[[Any], Any]) -> Any:
    """Send a request to Qdrant again after 1, 2 and 4 seconds where it is not there or busy, or when it says to."""
    for wait in _WAITS:
        try:
            response = send(request)
        except ResponseHandlingException as error:
            # What may have been done is not repeated here; every write can be, by running the same again.
            if not isinstance(error.source, httpx.ConnectError | httpx.RemoteProtocolError):
                raise
            time.sleep(wait)
            continue
        if response.status_code not in _BUSY:
            return response
        asked = response.headers.get("Retry-After", "")
        seconds = float(asked) if asked.isdecimal() else wait
        if seconds > _LONGEST_WAIT:
            return response
        time.sleep(seconds)
    return send(request)


def bare_url(url: str) -> str:
    """Take the secrets out of an address."""
    parts = urlsplit(url)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        port = ""
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return f"{parts.scheme}://{host}{port}{parts.path}" if parts.scheme else host or "an address without a scheme"


def _known(error: BaseException | None) -> BaseException | None:
    """Find the client library's own error behind Haystack's."""
    first = error
    while error is not None:
        if isinstance(error, ApiError | TransportError | ApiException | QdrantException | httpx.HTTPError):
            return error
        error = error.__cause__
    return first if isinstance(first, DocumentStoreError) else None


def _asked_wait(error: BaseException) -> float | None:
    if isinstance(error, ResourceExhaustedResponse):
        return float(error.retry_after_s)
    asked = str(error.meta.headers.get("retry-after", "")) if isinstance(error, ApiError) else ""
    return float(asked) if asked.isdecimal() else None


def _reason(error: BaseException) -> str:
    """Say in one short clause what the server or the connection said."""
    if isinstance(error, ApiError):
        body = error.body
        details = body.get("error") if isinstance(body, dict) else None
        if isinstance(details, dict):
            roots = details.get("root_cause") or [details]
            return f"{roots[0].get('type')}: {roots[0].get('reason')}"
        return str(error.message)
    if isinstance(error, UnexpectedResponse):
        return error.content.decode("utf-8", "replace")[:300]
    if isinstance(error, ResponseHandlingException):
        return str(error.source)
    if isinstance(error, ElasticConnectionError):
        return str(error.message).rsplit(": ", 1)[-1].strip("() ")
    return str(error)
