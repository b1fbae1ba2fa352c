"""The settings of the server: places, limits and secrets, each from one environment variable."""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from shiguan.errors import ConfigurationError
from shiguan.resources import data_folder

_MIB = 1024 * 1024
_LARGEST = 10**12
_ORIGIN = re.compile(r"(?!http:.*:80$|https:.*:443$)https?://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:\d{1,5})?")


def _origins(given: Any) -> tuple[str, ...]:
    origins = tuple(part.strip() for part in given.split(",") if part.strip()) if isinstance(given, str) else given
    if not all(map(_ORIGIN.fullmatch, origins)):
        raise ValueError(
            "Expected origins such as https://app.example.org, as a browser sends them, without a path or the usual "
            "port, separated by commas; `*` is not accepted"
        )
    return tuple(origins)


_Count = Annotated[int, Field(ge=1, le=100_000)]
_Bytes = Annotated[int, Field(ge=1024, le=_LARGEST)]
_Seconds = Annotated[float, Field(ge=0.05, le=86_400)]


class ServingSettings(BaseModel, frozen=True, extra="forbid"):
    """Places, limits and secrets; a field's variable is its name after `SHIGUAN_`. `.env.example` lists all of them."""

    deployment: str = Field(
        "embedded",
        description="Which folder of pipelines/ is used where `--deployment` names none, by the server and by every "
        "command.",
    )
    tenant: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        "default", description="Whose library Hayhooks' own server answers from; `shiguan serve` reads it from the key."
    )
    data_dir: Path | None = Field(None, description="Where the embedded library, uploads, jobs and keys are kept.")
    keys_file: Path | None = Field(None, description="The file of API keys; default: keys.json in the data folder.")
    cors_origins: Annotated[tuple[str, ...], BeforeValidator(_origins)] = Field(
        (), description="Web origins that a browser may ask from, separated by commas. None by default."
    )
    max_in_flight: _Count = Field(
        200,
        description="Requests in the server at once; more get 503 at once. Half of them run and the others wait; with "
        "keys one tenant may have half of them, and more get 429.",
    )
    request_timeout: _Seconds = Field(
        60.0,
        description="Seconds until a request is given up with 504. The LLM may take 30 s of them for an answer, "
        "finding passages and each helping call 10 s, or half and a sixth where that is more.",
    )
    upload_timeout: _Seconds = Field(600.0, description="The same for an upload.")
    max_body_bytes: _Bytes = Field(2 * _MIB, description="The largest body of a request other than an upload.")
    max_upload_bytes: _Bytes = Field(100 * _MIB, description="The largest upload.")
    receipt_days: Annotated[int, Field(ge=0, le=3650)] = Field(
        30, description="Days for which the receipts of answers are kept; 0 for none. They hold question and answer."
    )
    receipt_prompts: Literal["off", "on"] = Field(
        "off", description="`on` keeps in each receipt the prompt that was sent, with the text of every passage in it."
    )

    @classmethod
    def from_environment(cls) -> Self:
        """Read the settings; an empty variable counts as unset."""
        texts = {name: os.environ.get(_variable(name), "").strip() for name in cls.model_fields}
        try:
            return cls.model_validate({name: text for name, text in texts.items() if text})
        except ValidationError as error:
            problem = error.errors()[0]
            name, reason = str(problem["loc"][0]), problem.get("ctx", {}).get("error", problem["msg"])
            raise ConfigurationError(
                f"{_variable(name)} is `{texts[name]}`. {reason}. {cls.model_fields[name].description}"
            ) from None

    @property
    def folder(self) -> Path:
        return data_folder(self.data_dir)

    @property
    def keys_path(self) -> Path:
        return self.keys_file if self.keys_file is not None else self.folder / "keys.json"


def _variable(name: str) -> str:
    return f"SHIGUAN_{name.upper()}"
