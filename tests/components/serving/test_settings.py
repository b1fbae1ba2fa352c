"""The settings of the server, and that `.env.example` tells of all of them."""

import re
from pathlib import Path

import pytest

from shiguan.errors import ConfigurationError
from shiguan.llm.model_settings import is_endpoint_configured
from shiguan.serving.settings import ServingSettings

ROOT = Path(__file__).resolve().parents[3]


def test_every_setting_stands_in_the_example_file_with_its_words():
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    plain = " ".join(re.sub(r"^# ?", "", example, flags=re.MULTILINE).split())
    for name, field in ServingSettings.model_fields.items():
        variable, default = f"SHIGUAN_{name.upper()}", field.default
        assert re.search(rf"^# {variable}=", example, re.MULTILINE), variable
        assert field.description in plain, variable
        if default not in (None, "", (), "embedded"):
            shown = f"{default:g}" if isinstance(default, float) else default
            assert f"# {variable}={shown}" in example, variable


def test_variables_are_read_and_an_empty_one_is_none(monkeypatch):
    for name, value in (("MAX_IN_FLIGHT", "7"), ("DATA_DIR", "/srv/x"), ("REQUEST_TIMEOUT", ""), ("OTHER", "1")):
        monkeypatch.setenv(f"SHIGUAN_{name}", value)
    settings = ServingSettings.from_environment()
    assert settings.max_in_flight == 7
    assert settings.keys_path == Path("/srv/x/keys.json")
    assert settings.request_timeout == 60


@pytest.mark.parametrize(("variable", "value", "expected"), [
    ("SHIGUAN_MAX_IN_FLIGHT", "many", "a valid integer"),
    ("SHIGUAN_MAX_IN_FLIGHT", "0", "greater than or equal to 1"),
    ("SHIGUAN_REQUEST_TIMEOUT", "-1", "greater than or equal to 0.05"),
    ("SHIGUAN_REQUEST_TIMEOUT", "nan", "less than or equal to 86400"),
    ("SHIGUAN_CORS_ORIGINS", "*", "SHIGUAN_CORS_ORIGINS is `*`. Expected origins such as"),
    ("SHIGUAN_CORS_ORIGINS", "example.org", "origins such as"),
    *(
        ("SHIGUAN_CORS_ORIGINS", f"https://good.example,{origin}", "as a browser sends them, without a path")
        for origin in (
            *("https://example.org/", "https://example.org/app", "https://example.org?x", "https://me@example.org"),
            *("https://", "https://*.example.org", "https://example.org:", "https://example.org:443"),
            *("http://example.org:80", "https://Example.org", "HTTPS://example.org", "https://例.org", "ftp://a.b"),
        )
    ),
])  # fmt: skip
def test_a_value_that_cannot_be_is_refused_with_what_was_expected(monkeypatch, variable, value, expected):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError) as raised:
        ServingSettings.from_environment()
    assert variable in str(raised.value)
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    "origin",
    ["https://app.example.org", "http://localhost:3000", "http://127.0.0.1:443", "http://[::1]:8080", "https://a:8443"],
)
def test_an_origin_that_a_browser_can_send_is_taken(monkeypatch, origin):
    monkeypatch.setenv("SHIGUAN_CORS_ORIGINS", f" {origin} , https://b.example.org,")
    assert ServingSettings.from_environment().cors_origins == (origin, "https://b.example.org")


def test_an_address_of_the_model_is_taken_and_refused_if_it_is_none(monkeypatch):
    for address in ("http://localhost:11434/v1", "https://[::1]/v1"):
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        assert is_endpoint_configured()
    for address in ("notaurl", "localhost:11434/v1", "http://", "https:///v1", "http://a b", "ftp://a"):
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        with pytest.raises(ConfigurationError, match="OPENAI_BASE_URL is not an address"):
            is_endpoint_configured()
