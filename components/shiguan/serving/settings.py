"""The settings of the server: places, limits and secrets, each from one environment variable."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from platformdirs import user_data_path

from shiguan.errors import ConfigurationError

_MIB = 1024 * 1024
_LARGEST = 10**12


def _setting(variable: str, default: Any, about: str, parse: Callable[[str], Any]) -> Any:
    # Keys stay out of whatever prints the settings.
    return field(
        default=default,
        repr=variable != "SHIGUAN_API_KEYS",
        metadata={"variable": variable, "about": about, "parse": parse},
    )


def _number(low: float, high: float) -> Callable[[str], float]:
    expected = f"a number from {low:g} to {high:g}"

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ValueError(expected) from None
        if not low <= value <= high:  # not so for `nan`, too
            raise ValueError(expected)
        return value

    return parse


def _whole(low: int, high: int = _LARGEST) -> Callable[[str], int]:
    expected = f"a whole number from {low:,} " + ("up" if high == _LARGEST else f"to {high:,}")

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or not low <= int(text) <= high:
            raise ValueError(expected)
        return int(text)

    return parse


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _origins(text: str) -> tuple[str, ...]:
    origins = _names(text)
    for origin in origins:
        if origin == "*" or not origin.startswith(("http://", "https://")):
            raise ValueError("origins such as https://app.example.org, separated by commas; `*` is not accepted")
    return origins


_POSITIVE_SECONDS = _number(0.05, 86_400)


@dataclass(frozen=True)
class ServingSettings:
    """
    How the server is set up.

    Behaviour is in the pipelines' YAML; what stands here are places, limits and secrets. Every field names its
    environment variable in its metadata, and `.env.example` lists all of them with the same words.

        settings = ServingSettings.from_environment()
        settings.max_in_flight      # 200
    """

    deployment: str = _setting("SHIGUAN_DEPLOYMENT", "embedded", "Which folder of pipelines/ is served.", str)
    data_dir: Path | None = _setting(  # noqa: RUF009
        "SHIGUAN_DATA_DIR", None, "Where the embedded library, uploads, jobs and keys are kept.", Path
    )
    keys_file: Path | None = _setting(  # noqa: RUF009
        "SHIGUAN_KEYS_FILE", None, "The file of API keys; default: keys.json in the data folder.", Path
    )
    api_keys: str = _setting(
        "SHIGUAN_API_KEYS",
        "",
        "API keys beside the file: TENANT:ROLE:SHA256 separated by commas, as `shiguan keys add --print-hash` gives.",
        str,
    )
    cors_origins: tuple[str, ...] = _setting(
        "SHIGUAN_CORS_ORIGINS",
        (),
        "Web origins that a browser may ask from, separated by commas. None by default.",
        _origins,
    )
    max_in_flight: int = _setting(
        "SHIGUAN_MAX_IN_FLIGHT",
        200,
        "Requests in the server at once, waiting ones included; more get 503 at once.",
        _whole(1, 100_000),
    )
    max_running: int = _setting(
        "SHIGUAN_MAX_RUNNING", 100, "How many of these run at once; the others wait their turn.", _whole(1, 100_000)
    )
    max_per_tenant: int = _setting(
        "SHIGUAN_MAX_PER_TENANT",
        100,
        "How many of these one tenant may have; more get 429. Only where there are keys.",
        _whole(1, 100_000),
    )
    request_timeout: float = _setting(
        "SHIGUAN_REQUEST_TIMEOUT", 60.0, "Seconds until a request is given up with 504.", _POSITIVE_SECONDS
    )
    upload_timeout: float = _setting("SHIGUAN_UPLOAD_TIMEOUT", 600.0, "The same for an upload.", _POSITIVE_SECONDS)
    llm_timeout: float = _setting("SHIGUAN_LLM_TIMEOUT", 30.0, "Seconds for one call of the LLM.", _POSITIVE_SECONDS)
    retrieval_timeout: float = _setting(
        "SHIGUAN_RETRIEVAL_TIMEOUT", 10.0, "Seconds for finding passages.", _POSITIVE_SECONDS
    )
    rewriting_timeout: float = _setting(
        "SHIGUAN_REWRITING_TIMEOUT", 10.0, "Seconds for rewording a question.", _POSITIVE_SECONDS
    )
    max_body_bytes: int = _setting(
        "SHIGUAN_MAX_BODY_BYTES", 2 * _MIB, "The largest body of a request that is no upload.", _whole(1024)
    )
    max_upload_bytes: int = _setting("SHIGUAN_MAX_UPLOAD_BYTES", 100 * _MIB, "The largest upload.", _whole(1024))
    max_pending_jobs: int = _setting(
        "SHIGUAN_MAX_PENDING_JOBS",
        100,
        "Uploads of one tenant that may wait to be ingested; more get 429.",
        _whole(1, 100_000),
    )
    batch_concurrency: int = _setting(
        "SHIGUAN_BATCH_CONCURRENCY", 4, "Questions of one batch that are answered side by side.", _whole(1, 50)
    )
    torch_threads: int = _setting(
        "SHIGUAN_TORCH_THREADS",
        1,
        "Threads of one call of a torch model (extra `transformers`). More than one spins on busy cores.",
        _whole(1, 256),
    )
    mermaid_url: str = _setting(
        "SHIGUAN_MERMAID_URL", "", "A Mermaid server that draws /draw as PNG; without one /draw is Mermaid text.", str
    )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None, **given: Any) -> Self:
        """Read the settings."""
        environment = os.environ if environment is None else environment
        values: dict[str, Any] = {}
        for setting in fields(cls):
            text = environment.get(setting.metadata["variable"], "").strip()
            if not text:
                continue
            try:
                values[setting.name] = setting.metadata["parse"](text)
            except ValueError as error:
                raise ConfigurationError(
                    f"{setting.metadata['variable']} is `{text}`. Expected {error}. {setting.metadata['about']}"
                ) from None
        settings = cls(**{**values, **given})
        if settings.max_running > settings.max_in_flight:
            settings = cls(**{**values, "max_running": settings.max_in_flight, **given})
        return settings

    @property
    def folder(self) -> Path:
        """The data folder: as set, else the user's own."""
        return self.data_dir if self.data_dir is not None else user_data_path("shiguan")

    @property
    def keys_path(self) -> Path:
        """The file of API keys: as set, else in the data folder."""
        return self.keys_file if self.keys_file is not None else self.folder / "keys.json"

    @property
    def spool_path(self) -> Path:
        """Where uploads and the records of their jobs are kept."""
        return self.folder / "uploads"

    @classmethod
    def table(cls) -> list[tuple[str, str, str]]:
        """List every setting for the documentation."""
        return [
            (setting.metadata["variable"], _shown(setting.default), setting.metadata["about"])
            for setting in fields(cls)
        ]


def _shown(value: Any) -> str:
    if value is None or value in ("", ()):
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
