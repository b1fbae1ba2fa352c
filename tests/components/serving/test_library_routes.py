"""The library over HTTP: passages where they stand, contents, a search, the names of uploads; nobody else's."""

import json
from contextlib import closing
from urllib.parse import urlencode

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from tests.doubles.served_app import Served
from tests.doubles.small_library import TENANT, TEXTS, small_library

from shiguan.engine.library import Library
from shiguan.serving import openai_routes, page_routes, rag_routes, status_routes
from shiguan.serving.document_routes import router as library_router
from shiguan.serving.document_routes import source_name
from shiguan.serving.engine import Engine, in_use
from shiguan.serving.error_replies import ApiError
from shiguan.serving.settings import ServingSettings
from shiguan.serving.verify_routes import router as verify_router

PLACE = "/api/v1/library"
BOOK = (
    "# The War\n\nThe war began.\n\n## The rising\n\nAn Lushan rose at Fanyang in 755.\n\n"
    "## The flight\n\nThe emperor fled to Shu.\n\n# The Peace\n\nThe war ended in 763.\n"
)


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    data = small_library(folder)
    book = folder / "war.md"
    book.write_text(BOOK, encoding="utf-8")
    [done] = Library(data_dir=data).ingest([book], tenant_id=TENANT)
    assert done.parents == 4
    return ServingSettings(data_dir=data)


@pytest.fixture(scope="module")
def library(settings):
    """That of the engine in use."""
    with closing(Engine(settings, modes=["simple"])) as engine, in_use(engine):
        yield engine.library


@pytest.fixture
def server(settings, library):
    served = Served(settings, page_routes.router, library_router, rag_routes.router, verify_router)

    async def call(path, *, who=TENANT, body=None, **query):
        return await served(f"{path}?{urlencode(query, doseq=True)}" if query else path, body, who=who)

    return call


async def read(server, path, **more):
    call = await server(path, **more)
    assert call.status == 200, call.body
    return call.json


async def test_a_passage_is_read_with_those_around_it(server, library):
    [work] = library.contents("war.md", tenant_id=TENANT)
    texts = library.passages(work["source_id"], tenant_id=TENANT, first=0, last=9)
    assert [one["position"] for one in texts] == [0, 1, 2, 3]
    found = await read(server, f"{PLACE}/passages/{texts[1]['id']}", neighbours=1)
    assert found["passage"]["text"] == "An Lushan rose at Fanyang in 755."
    assert found["passage"]["section"] == ["The War", "The rising"]
    assert [one["text"] for one in found["before"]] == ["The war began."]
    assert [one["text"] for one in found["after"]] == ["The emperor fled to Shu."]
    assert (await read(server, f"{PLACE}/passages/{texts[0]['id']}"))["before"] == []


async def test_the_contents_have_every_section_with_its_positions(server):
    [work] = (await read(server, f"{PLACE}/contents", source="war.md"))["works"]
    assert [(one["section"], one["first"], one["last"]) for one in work["sections"]] == [
        (["The War"], 0, 0), (["The War", "The rising"], 1, 1), (["The War", "The flight"], 2, 2),
        (["The Peace"], 3, 3),
    ]  # fmt: skip
    stretch = await read(server, f"{PLACE}/passages", source_id=work["source_id"], first=1, last=2)
    assert [one["position"] for one in stretch["passages"]] == [1, 2]
    assert stretch["next"] is None


async def test_a_search_can_be_limited_to_a_source_and_a_section(server):
    found = await read(server, f"{PLACE}/search", query="Who rose at Fanyang?")
    assert found["passages"][0]["text"].startswith("An Lushan rose")
    salt = await read(server, f"{PLACE}/search", query="Who rose at Fanyang?", source="salt.txt")
    assert {one["source"] for one in salt["passages"]} == {"salt.txt"}
    flight = await read(server, f"{PLACE}/search", query="Who rose at Fanyang?", section="the flight ")
    assert [one["text"] for one in flight["passages"]] == ["The emperor fled to Shu."]
    chapter = await read(server, f"{PLACE}/search", query="Who rose at Fanyang?", section="The War")
    assert {one["position"] for one in chapter["passages"]} <= {0, 1, 2}
    call = await server(f"{PLACE}/search", query="Who?", section="The Plague")
    told = "There is no section `The Plague` in the sources that are asked. Name a heading, such as: `The "
    assert (call.status, told in call.error["message"]) == (400, True)


TWICE = "it is given more than once, and one value is expected"


@pytest.mark.parametrize(("path", "query", "wrong", "told"), [
    ("/search", {"query": "Who?", "source": ["war.md", "salt.txt"], "top_k": ["1"]}, "", ""),
    ("/search", {"query": "Who?", "sources": "war.md"}, "sources", "there is no such field"),
    ("/timeline", {"year": "755"}, "year", "there is no such field"),
    ("/contents", {"source": "war.md", "tenant_id": "b"}, "tenant_id", "there is no such field"),
    ("/search", {"query": "war", "top_k": ["1", "2"]}, "top_k", TWICE),
    ("/search", {"query": ["war", "peace"]}, "query", TWICE),
    ("/contents", {"source": ["war.md", "salt.txt"]}, "source", TWICE),
    ("/timeline", {"when": ["755", "763"]}, "when", TWICE),
])  # fmt: skip
async def test_a_parameter_that_would_limit_nothing_is_refused_by_its_name(server, path, query, wrong, told):
    call = await server(f"{PLACE}{path}", **query)
    assert call.status == (422 if wrong else 200), call.body
    if wrong:
        (field,) = call.error["fields"]
        assert (field["field"], told in field["problem"]) == (wrong, True)


@pytest.mark.parametrize(("query", "told"), [
    ("", "The question is empty. Type a question of 1 to 2,000 characters."),
    (" ", "The question is empty. Type a question of 1 to 2,000 characters."),
    ("x" * 2001, "The question has 2,001 characters, the limit is 2,000. Shorten it"),
    ("？？", "The question `？？` has no words."), (" war" + " " * 2000, ""),
])  # fmt: skip
async def test_what_is_no_question_is_refused_in_the_same_words_on_every_route(server, query, told):
    for call in (
        server(f"{PLACE}/search", query=query),
        server(f"{PLACE}/timeline", query=query),
        server("/api/v1/rag/query", body={"query": query}),
    ):
        done = await call
        assert done.status == (422 if told else 200), done.body
        assert not told or done.error["message"].startswith(told)


async def test_a_text_is_checked_at_once_and_as_a_stream(server):
    text = "It says “An Lushan rose at Fanyang in 755”. The war ended in 763. And “An Lushan rose at Fanyang in 756”."
    found = await read(server, "/api/v1/verify", body={"text": text})
    verdicts = ["found", "supported", "altered"]
    assert [item["verdict"] for item in found["items"]] == verdicts
    assert found["items"][0]["section"] == ["The War", "The rising"]
    call = await server("/api/v1/verify", body={"text": text, "stream": True})
    assert call.status == 200
    events = [block.splitlines() for block in call.body.decode().strip().split("\n\n")]
    assert [lines[0] for lines in events[:-1]] == ["event: item"] * 3 + ["event: generation_complete"]
    told = [json.loads(lines[1].removeprefix("data: ")) for lines in events[:-1]]
    assert [one["verdict"] for one in told[:3]] == verdicts
    assert [(one["number"], one["count"]) for one in told[:3]] == [(1, 3), (2, 3), (3, 3)]
    assert (told[3]["items"], told[3]["counts"]) == (3, found["counts"])
    assert events[-1] == ["data: [DONE]"]


async def test_quotations_are_checked_by_id_in_the_callers_library_alone(server):
    quotes = [{"id": "q", "text": "The two-tax reform of tenant b was proposed"}]
    other = await read(server, "/api/v1/verify", body={"quotes": quotes}, who="b")
    assert [(item["id"], item["verdict"]) for item in other["items"]] == [("q", "found")]
    mine = await read(server, "/api/v1/verify", body={"quotes": quotes})
    assert mine["items"][0]["verdict"] != "found"
    assert (await server("/api/v1/verify", body={"quotes": quotes}, who=None)).status == 401


@pytest.mark.parametrize("body", [{}, {"text": "a", "quotes": []}, {"quotes": [{"id": 1}]}, {"text": 3}, {"txt": "a"}])
async def test_a_body_that_cannot_be_checked_is_refused(server, body):
    call = await server("/api/v1/verify", body=body)
    assert (call.status, call.error["type"]) in ((422, "invalid_request"), (400, "refused"))


_PART = 'Content-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\ntext\r\n'


@pytest.mark.parametrize("path", ["/api/v1/documents", "/api/v1/verify/text"])
@pytest.mark.parametrize(("kind", "body", "told"), [
    ("application/json", "{}", "send the file as multipart/form-data"),
    ("multipart/form-data", "--x--", "the multipart body cannot be read"),
    ("multipart/form-data; boundary=x", f"--x\r\n{_PART}--x\r\n{_PART}--x--", "or has more than one file"),
    ("Multipart/Form-Data; boundary=x", "--x--", "there is no part `file` with a file in it"),
    ("multipart/mixed; boundary=x", "--x--", "send the file as multipart/form-data"),
])  # fmt: skip
async def test_a_form_that_cannot_be_read_is_refused_in_the_same_words_on_both_routes(settings, path, kind, body, told):
    served = Served(settings, library_router, verify_router, ingest_jobs=None)
    call = await served(path, body.encode(), who=TENANT, role="write", **{"content-type": kind})
    assert (call.status, told in call.error["message"]) == (422, True)


@pytest.mark.parametrize(("name", "told"), [("a.txt", "a.txt"), ("a\u202e\x9b2J.txt", "a.txt"), ("\u202e", "the file")])
@pytest.mark.usefixtures("library")
async def test_a_file_that_cannot_be_checked_is_named_without_what_does_not_show(settings, name, told):
    part = f'Content-Disposition: form-data; name="file"; filename="{name}"'
    body = b"".join((f"--x\r\n{part}\r\n\r\n".encode(), bytes(range(256)), b"\r\n--x--\r\n"))
    kind = {"content-type": "multipart/form-data; boundary=x"}
    call = await Served(settings, verify_router)("/api/v1/verify/text", body, who=TENANT, **kind)
    assert call.error["message"].startswith(f"{told} is not text")


@pytest.mark.parametrize(("path", "method", "status", "allowed"), [
    ("/api/v1/documents", "PUT", 405, "GET, POST"),
    ("/api/v1/documents/war.md", "POST", 405, "DELETE"),
    ("/api/v1/library/search", "POST", 405, "GET"), ("/", "DELETE", 405, "GET, HEAD"),
    ("/api/v1/nothing", "PUT", 404, None), ("/api/v1/documents", "GET", 200, None),
])  # fmt: skip
@pytest.mark.usefixtures("library")
async def test_a_method_that_an_address_does_not_take_is_refused_with_those_that_it_takes(
    settings, path, method, status, allowed
):
    served = Served(settings, page_routes.router, library_router, ingest_jobs=None)
    call = await served(path, who=TENANT, role="write", method=method)
    assert (call.status, call.headers.get("allow")) == (status, allowed)


async def test_nobody_reads_what_is_not_theirs(server, library):
    [work] = library.contents("war.md", tenant_id=TENANT)
    [one, *_] = library.passages(work["source_id"], tenant_id=TENANT, last=0)
    for path, query in ((f"{PLACE}/passages/{one['id']}", {}), (f"{PLACE}/contents", {"source": "war.md"})):
        theirs = await server(path, who="b", **query)
        missing = await server(path.replace(one["id"], "none"), who="b", **dict.fromkeys(query, "none"))
        assert (theirs.status, theirs.error["message"]) == (missing.status, missing.error["message"])
        assert missing.status == 404
    assert (await read(server, f"{PLACE}/passages", who="b", source_id=work["source_id"]))["passages"] == []
    hits = (await read(server, f"{PLACE}/search", who="b", query="salt"))["passages"]
    assert TEXTS["salt.txt"] not in [hit["text"] for hit in hits]
    lines = (await read(server, f"{PLACE}/timeline", who="b"))["lines"]
    assert "war.md" not in {one["source"] for one in lines}
    assert (await server(f"{PLACE}/contents", who=None, source="war.md")).status == 401


async def test_the_page_needs_no_key_and_has_a_strict_policy_and_what_is_not_of_it_is_not_there(server):
    for path in ("/", "/docs", "/ui/app.js", "/ui/style.css"):
        page = await server(path, who=None)
        policy = page.headers["content-security-policy"]
        assert (page.status, "default-src 'none'" in policy, "unsafe" in policy) == (200, True, False)
        assert "require-trusted-types-for 'script'" in policy
    for path in ("/ui/", "/ui/none.js", "/ui/..", "/ui/../app.py", "/ui/a/b.js"):
        assert (await server(path, who=None)).status == 404
    for path in ("/openapi.json", "/ui", "/docs/", "//"):
        assert (await server(path, who=None)).status == 401


async def test_the_timeline_lists_passages_by_year_with_their_place(server):
    found = await read(server, f"{PLACE}/timeline", source="war.md", query="Fanyang", when="755")
    (line,) = found["lines"]
    assert (line["as"], line["from"], line["western"], line["section"][-1]) == ("755", 755, None, "The rising")
    passage = (await read(server, f"{PLACE}/passages/{line['passage']}"))["passage"]
    assert passage["text"][line["start"] : line["end"]] == line["text"]
    for route in ("timeline", "search"):
        call = await server(f"{PLACE}/{route}", query="war", when="763..755")
        assert call.status in (400, 422)
        assert "it runs backwards, from 763 to 755" in call.error["message"]


async def test_a_search_within_years_reads_only_what_is_dated_in_them(server):
    found = await read(server, f"{PLACE}/search", query="war rose fled", when="755", source="war.md")
    assert [one["section"][-1] for one in found["passages"]] == ["The rising"]


@pytest.mark.parametrize(("given", "name"), [
    ("book.epub", "book.epub"), ("史記.txt", "史記.txt"), ("rows.jsonl.gz", "rows.jsonl.gz"),
    ("../../etc/passwd.txt", "passwd.txt"), ("/etc/cron.d/x.md", "x.md"), ("C:\\Users\\me\\notes.docx", "notes.docx"),
    ("..\\..\\x.pdf", "x.pdf"), ("...hidden.txt", "hidden.txt"), ("a\x00b\r\n.txt", "ab.txt"),
    ("gpj.\u202etxt", "gpj.txt"), ("e\u0301.txt", "\u00e9.txt"), ("e\u200d\u0301.txt", "\u00e9.txt"),
    ("  spaced name.txt  ", "spaced name.txt"), ("\ud800lone.txt", "?lone.txt"), ("Shouting.TXT", "Shouting.TXT"),
])  # fmt: skip
def test_a_name_is_what_a_person_would_read(given, name):
    assert source_name(given) == name


@pytest.mark.parametrize(
    "given",
    [None, "", ".", "..", "/", "x/", "noending", "a.exe", "a.txt.sh", ".txt", "..txt", "\u202e.txt", "a.txt/..",
     "x" * 197 + ".txt", "字" * 66 + ".txt", "a.txt\x00.exe"],
)  # fmt: skip
def test_what_is_no_name_of_a_readable_file_is_refused(given):
    with pytest.raises(ApiError) as raised:
        source_name(given)
    assert raised.value.status_code == 422
    assert raised.value.fields[0]["field"] == "file"


@given(st.text(max_size=80), st.sampled_from([".txt", ".epub", ".jsonl.gz"]))
def test_a_name_never_holds_a_path_or_what_does_not_show(text, ending):
    try:
        name = source_name(text + ending)
    except ApiError:
        return
    assert name.endswith(ending)
    assert not set(name) & set("/\\\0\n\r\u202e\u200b")
    assert not name.startswith(".")
    assert source_name(name) == name


def test_the_description_says_what_is_sent():
    app = FastAPI()
    for routes in (status_routes, openai_routes, rag_routes, page_routes):
        app.router.routes.extend(routes.router.routes)
    page_routes.describe(app)
    schema = app.openapi()
    assert (schema["info"]["title"], schema["security"]) == ("Shiguan", [{"key": []}, {"header": []}])
    assert "/" not in schema["paths"]
    assert [*schema["paths"]["/health"]["get"]["responses"]["200"]["content"]] == ["text/plain"]
    query = schema["paths"]["/api/v1/rag/query"]["post"]
    assert query["requestBody"]["content"]["application/json"]["example"]["mode"] == "simple"
    for path in ("/api/v1/rag/query", "/v1/chat/completions"):
        replies = schema["paths"][path]["post"]["responses"]
        assert "422" not in replies
        assert replies["default"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}
    shape, sent = schema["components"]["schemas"]["Error"], ApiError("not_ready").body()
    assert (shape["required"], shape["properties"]["error"]["required"]) == ([*sent], [*sent["error"]])
