"""Settings that cannot be meant, titles that nobody sees, and what the description of the interface says."""

import json

import pytest
from fastapi import FastAPI
from pydantic import ValidationError
from tests.doubles.served_app import Served

from shiguan.errors import ConfigurationError
from shiguan.llm.model_settings import is_endpoint_configured
from shiguan.serving import openai_routes, page_routes, rag_routes, status_routes
from shiguan.serving.authentication import check_keys_file
from shiguan.serving.error_replies import ApiError
from shiguan.serving.review_routes import Title
from shiguan.serving.settings import ServingSettings


def test_a_file_of_keys_that_does_not_exist_does_not_open_the_server(tmp_path):
    with pytest.raises(ConfigurationError, match="which does not exist"):
        check_keys_file(ServingSettings(data_dir=tmp_path, keys_file=tmp_path / "none.json"))
    check_keys_file(ServingSettings(data_dir=tmp_path))


@pytest.mark.parametrize(
    "address", ["notaurl", "localhost:11434/v1", "http://", "https:///v1", "http://a b", "ftp://a"]
)
def test_an_address_of_the_model_that_is_none_is_refused(monkeypatch, address):
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    with pytest.raises(ConfigurationError, match="OPENAI_BASE_URL is not an address"):
        is_endpoint_configured()


@pytest.mark.parametrize("address", ["http://localhost:11434/v1", "https://[::1]/v1"])
def test_an_address_of_the_model_is_taken(monkeypatch, address):
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    assert is_endpoint_configured()


@pytest.mark.parametrize("title", ["\u200b", " \u2060 ", "\u202e", "\u200d\u200c", "\n", ""])
def test_a_title_that_nobody_sees_is_refused(title):
    with pytest.raises(ValidationError):
        Title(title=title)


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


async def test_the_policy_of_the_page_is_strict(tmp_path):
    served = Served(ServingSettings(data_dir=tmp_path), page_routes.router)
    for path in ("/", "/docs", "/ui/app.js"):
        policy = (await served(path, who=None)).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy


def test_half_a_character_in_a_message_can_be_sent():
    json.dumps(ApiError("refused", message="It is \ud800.").body(), ensure_ascii=False).encode()
