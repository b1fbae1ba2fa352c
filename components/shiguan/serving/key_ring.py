"""The keys that a running server accepts, kept up to date with their file."""

import threading

from haystack import logging

from shiguan.errors import ConfigurationError
from shiguan.serving.error_replies import ApiError
from shiguan.serving.keys import KeyFile, KeyRecord, hash_of, keys_of_environment
from shiguan.serving.principal import Principal
from shiguan.serving.settings import ServingSettings

logger = logging.getLogger(__name__)

_Stamp = tuple[int, int, int]


class KeyRing:
    """
    Tells whose a key is.

    A key that is added or revoked counts from the next request on: the file's time is looked at each time, which costs
    some microseconds. A server that has keys never falls back to having none: not when the last one is revoked, and
    not when the file disappears.
    """

    def __init__(self, settings: ServingSettings) -> None:
        """Read the keys."""
        self._file = KeyFile(settings.keys_path)
        self._fixed = {record.id: record for record in keys_of_environment(settings.api_keys)}
        self._records: dict[str, KeyRecord] | None = dict(self._fixed) if self._fixed else None
        self._stamp: _Stamp | None = None
        self._broken = False
        self._reading = threading.Lock()
        self._refresh()
        if self._broken:
            self._file.read()  # says what is wrong with it

    @property
    def keyless(self) -> bool:
        """Whether no keys are configured, so that only this machine may ask."""
        self._refresh()
        return self._records is None and not self._broken

    def principal(self, key: str) -> Principal | None:
        """Find whose a key is."""
        self._refresh()
        if self._broken:
            raise ApiError("not_ready", message="The server's API keys cannot be read.")
        record = (self._records or {}).get(hash_of(key)[:12])
        if record is None or not record.fits(key):
            return None
        return Principal(tenant_id=record.tenant, role=record.role, key_id=record.id)

    def _refresh(self) -> None:
        stamp = self._current_stamp()
        if stamp == self._stamp:
            return
        with self._reading:
            if stamp == self._stamp:
                return
            self._stamp = stamp
            if stamp is None:
                # The file was there and is gone: its keys are, too, but the server stays closed.
                self._records, self._broken = dict(self._fixed), False
                return
            try:
                self._records = {record.id: record for record in self._file.read()} | self._fixed
                self._broken = False
            except ConfigurationError as error:
                self._broken = True
                logger.error("{problem}", problem=str(error))

    def _current_stamp(self) -> _Stamp | None:
        try:
            status = self._file.path.stat()
        except FileNotFoundError:
            return None
        except OSError:
            return (0, 0, 0)
        return (status.st_mtime_ns, status.st_ino, status.st_size)
