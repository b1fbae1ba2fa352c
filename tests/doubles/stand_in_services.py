"""
Public services on this machine: a database of persons, and an encyclopedia.

`/person.php` answers as the China Biographical Database does (https://input.cbdb.fas.harvard.edu/cbdbapi/index.html),
`/w/api.php` as the MediaWiki API (https://www.mediawiki.org/wiki/API:Search).

    with StandInServices() as services:
        services.next("/person.php", status=503, times=2)     # then as always
        services.next("/w/api.php", body=b"<html>", type="text/html")
"""

import json
import threading
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.doubles.local_server import LocalHandler, LocalServer

WANG = {
    "BasicInfo": {
        "PersonId": "1762", "EngName": "Wang Anshi", "ChName": "王安石", "Gender": "0", "YearBirth": "1021",
        "YearDeath": "1086", "YearsLived": "66", "Dynasty": "宋", "IndexAddr": "臨川", "Notes": "",
    },
    "PersonSources": "",
    "PersonAliases": {"Alias": [{"AliasType": "字", "AliasName": "介甫"}, {"AliasType": "號", "AliasName": "半山"}]},
    "PersonKinshipInfo": {"Kinship": {"KinPersonName": "王益", "KinRelName": "父"}},
    "PersonPostings": {"Posting": [{"OfficeName": "參知政事", "FirstYear": "1069"}]},
    "PersonSocialAssociation": "",
}  # fmt: skip
ARTICLES = [
    {"pageid": 2, "ns": 0, "title": "New Policies", "index": 2, "extract": "The New Policies began in 1069.",
     "fullurl": "https://en.wikipedia.org/wiki/New_Policies"},
    {"pageid": 1, "ns": 0, "title": "Wang Anshi", "index": 1, "extract": "Wang Anshi was a Song chancellor.",
     "fullurl": "https://en.wikipedia.org/wiki/Wang_Anshi"},
]  # fmt: skip


@dataclass
class _Fault:
    status: int = 200
    body: bytes | None = None
    type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


class StandInServices(LocalServer):
    """The server; `requests` has the path and the parameters of each request, in their order."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.persons: dict[str, Any] = {"王安石": WANG, "Wang Anshi": WANG}
        self.articles: list[dict[str, Any]] = ARTICLES
        self._faults: dict[str, list[_Fault]] = {}
        self._lock = threading.Lock()

    def next(self, path: str, *, times: int = 1, **fault: Any) -> None:
        with self._lock:
            self._faults.setdefault(path, []).extend([_Fault(**fault)] * times)

    def fault(self, path: str) -> _Fault | None:
        with self._lock:
            waiting = self._faults.get(path)
            return waiting.pop(0) if waiting else None


class _Handler(LocalHandler):
    server: StandInServices

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        given = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.server.requests.append((parts.path, given))
        fault = self.server.fault(parts.path)
        if fault is not None:
            self._send(fault.status, fault.body if fault.body is not None else b"{}", fault.type, fault.headers)
            return
        status, reply = self._reply(parts.path, given)
        self._send(status, json.dumps(reply, ensure_ascii=False).encode(), "application/json; charset=utf-8", {})

    def _reply(self, path: str, given: dict[str, str]) -> tuple[int, Any]:
        if path == "/person.php":
            person = self.server.persons.get(given.get("name", ""))
            if person is None:
                return 404, {"error": {"code": 404, "message": "Person not found."}}
            info = {"DataSource": "CBDB", "Version": "20131220", "PersonInfo": {"Person": person}}
            return 200, {"Package": {"PersonAuthority": info}}
        if path == "/w/api.php":
            pages = self.server.articles
            return 200, {"batchcomplete": True, **({"query": {"pages": pages}} if pages else {})}
        return 404, {}

    def _send(self, status: int, body: bytes, kind: str, headers: dict[str, str]) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):  # who asked has had enough
            self.close_connection = True
