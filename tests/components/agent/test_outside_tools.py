"""What outside services send, and what becomes of it: records, nothing, and everything that a hostile one could."""

import json

import pytest
from tests.doubles.dripping import Dripping
from tests.doubles.stand_in_services import WANG

from shiguan.agent import tools
from shiguan.agent.cbdb_search import CBDBSearch
from shiguan.agent.tools import ToolError, WrongArgumentsError
from shiguan.agent.wikipedia_search import WikipediaSearch


@pytest.fixture
def cbdb(services):
    return CBDBSearch(f"{services.url}/person.php?o=json")


@pytest.fixture
def wikipedia(services):
    return WikipediaSearch(f"{services.url}/w/api.php")


def test_a_person_is_told_in_sentences_of_the_questions_language(cbdb, services):
    (chinese,) = cbdb.run("王安石")["documents"]
    (english,) = cbdb.run(" Wang  Anshi ", language="en")["documents"]
    assert chinese.content.splitlines() == [
        "王安石（Wang Anshi）是宋朝人。", "王安石生于1021年。", "王安石卒于1086年。", "王安石享年66岁。",
        "王安石籍贯臨川。", "王安石的字：介甫。", "王安石的號：半山。", "王安石的亲属：王益（父）。",
        "王安石的官职：參知政事。",
    ]  # fmt: skip
    assert english.content.splitlines()[1] == "Wang Anshi (王安石) was born in 1021."
    address = f"{services.url}/person.php?id=1762"
    about = {"source": f"query_cbdb {address}", "title": "王安石"}
    assert chinese.meta == {**about, "origin": "tool", "anchor": {"url": address}}
    assert services.requests[1] == ("/person.php", {"o": "json", "name": "Wang Anshi"})


def test_what_a_record_does_not_know_is_not_told(cbdb, services):
    services.persons["李四"] = {"BasicInfo": {"PersonId": "7", "ChName": "李四", "YearBirth": "0", "YearDeath": None}}
    services.persons["張三"] = [{"BasicInfo": ""}, "odd", {"BasicInfo": {"ChName": "張三", "YearBirth": "900"}}]
    assert cbdb.run("李四")["documents"] == []
    assert [found.content for found in cbdb.run("張三")["documents"]] == ["張三生于900年。"]
    assert cbdb.run("王五")["documents"] == []  # 404
    services.next("/person.php", body=b'{"Package": {"PersonAuthority": {"PersonInfo": ""}}}')
    assert cbdb.run("王五")["documents"] == []


def test_a_name_with_wildcards_asks_nobody(cbdb, services):
    for name in ("*", "%", "王%", "李_", "?安石", "a*", "1762", "王", "；DROP", "<b>王安石", "王\n*"):
        with pytest.raises(WrongArgumentsError, match="wildcards"):
            cbdb.run(name)
    assert services.requests == []


def test_articles_come_best_first_with_their_addresses(wikipedia, services):
    found = wikipedia.run("Wang Anshi")["documents"]
    assert [one.meta["title"] for one in found] == ["Wang Anshi", "New Policies"]
    assert found[0].content == "Wang Anshi was a Song chancellor."
    assert found[0].meta["source"] == "search_wikipedia https://en.wikipedia.org/wiki/Wang_Anshi"
    path, asked = services.requests[0]
    assert (path, asked["gsrsearch"], asked["generator"], asked["formatversion"]) == (
        "/w/api.php", "Wang Anshi", "search", "2",
    )  # fmt: skip
    services.articles = []
    assert wikipedia.run("x")["documents"] == []


def test_the_encyclopedia_of_the_questions_language_is_asked(monkeypatch):
    asked = []

    async def fetch(url, _):
        asked.append(url)
        return {}

    monkeypatch.setattr("shiguan.agent.wikipedia_search.fetch_json", fetch)
    WikipediaSearch().run("王安石", language="zh")
    WikipediaSearch().run("Wang Anshi", language="en")
    assert asked == ["https://zh.wikipedia.org/w/api.php", "https://en.wikipedia.org/w/api.php"]


def test_an_address_that_is_none_is_not_shown(wikipedia, services):
    services.articles = [{"title": "T", "extract": "E.", "fullurl": "javascript:alert(1)"}, {"title": "no text"}, 7]
    (found,) = wikipedia.run("x")["documents"]
    assert found.meta["anchor"] == {"url": f"{services.url}/w/api.php"}


def test_an_error_in_the_body_is_an_error(wikipedia, services):
    services.next("/w/api.php", body=b'{"error": {"code": "badvalue", "info": "Unrecognized"}}')
    with pytest.raises(ToolError):
        wikipedia.run("x")


@pytest.mark.parametrize(("fault", "reason", "passing"), [
    ({"body": b'{"Package": {'}, "not JSON", False),
    ({"body": b"<!doctype html>", "type": "text/html"}, "a web page", False),
    ({"body": b"[" * 100_000}, "not JSON", False),
    ({"body": b'{"x": 1}'}, "without `Package`", False),
    ({"body": b"[1, 2]"}, "without `Package`", False),
    ({"body": b'"' + b"a" * 10_000_000 + b'"'}, "more than 4,000,000 bytes", False),
    ({"status": 403}, "answered 403", False), ({"status": 429}, "answered 429", True),
    ({"status": 503}, "answered 503", True),
    ({"status": 302, "headers": {"Location": "https://127.0.0.1/secret"}}, "another scheme, host or port", False),
], ids=lambda value: str(value)[:40])  # fmt: skip
def test_what_cannot_be_used_is_named(cbdb, services, fault, reason, passing):
    services.next("/person.php", **fault)
    with pytest.raises(ToolError, match=reason) as caught:
        cbdb.run("王安石")
    assert caught.value.passing is passing


def test_a_service_that_sends_us_round_in_circles_is_left(cbdb, services):
    services.next("/person.php", status=302, times=9, headers={"Location": "/person.php"})
    with pytest.raises(ToolError, match="TooManyRedirects"):
        cbdb.run("王安石")
    assert len(services.requests) == 4


@pytest.mark.parametrize("part", ["head", "body"])
def test_a_service_that_sends_a_byte_at_a_time_is_left_at_the_limit(monkeypatch, part):
    """Each byte is a sign of life, and there is one limit for all of them."""
    monkeypatch.setattr(tools, "_SECONDS", 0.2)
    beginning = b"HTTP/1.1 200 OK\r\n" + (b"X-Slow: " if part == "head" else b"Content-Length: 100000\r\n\r\n")
    with Dripping(beginning) as service:
        with pytest.raises(ToolError, match=r"longer than 0\.2 s") as caught:
            CBDBSearch(service.url).run("王安石")
        assert service.left.wait(20)  # and the connection is closed
    assert caught.value.passing


def test_nobody_at_the_address_is_an_error_that_may_pass():
    with pytest.raises(ToolError, match=r"127\.0\.0\.1:9 could not be reached") as caught:
        CBDBSearch("http://user:secret@127.0.0.1:9/person.php").run("王安石")
    assert caught.value.passing
    assert "secret" not in str(caught.value)


def test_json_is_read_in_each_form_of_unicode(cbdb, services):
    body = json.dumps({"Package": {"PersonAuthority": {"PersonInfo": {"Person": WANG}}}}, ensure_ascii=False)
    for coding in ("utf-8", "utf-8-sig", "utf-16"):
        services.next("/person.php", body=body.encode(coding))
        assert "王安石籍贯臨川。" in cbdb.run("王安石")["documents"][0].content
