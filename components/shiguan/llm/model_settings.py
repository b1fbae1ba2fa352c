"""Settings of models: which model has which role, and what a question may spend."""

import os
import re
from collections.abc import Collection
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, ValidationError, field_validator, model_validator

from shiguan.errors import ConfigurationError, RefusedError, shown

Role = Literal["answer", "answer_strong", "helper", "judge"]
"""The roles of callers: writing answers, writing hard ones, helping on the way, judging an answer."""

# Accepts a temperature, which reasoning models refuse.
DEFAULT_MODEL = "gpt-4.1-mini"
# Local servers (Ollama, vLLM, llama.cpp) check no key, but the client insists on one.
_NO_KEY = "not-needed"


def is_endpoint_configured() -> bool:
    """Return whether the environment names an endpoint, by a key or an address, which must be one."""
    address = os.environ.get("OPENAI_BASE_URL", "")
    if address and not re.fullmatch(r"https?://[^/?#\s]+[^\s]*", address):
        raise ConfigurationError(
            "OPENAI_BASE_URL is not an address. Expected one that begins with http:// or https:// and names a host, "
            "such as http://localhost:11434/v1. Correct it, or unset it."
        )
    return bool(_key_in("OPENAI_API_KEY") or address)


def _key_in(variable: str) -> str:
    """Return the key in a variable, without white space around it; one that no header can hold is refused."""
    key = os.environ.get(variable, "").strip()
    if not re.fullmatch("[ -~]*", key):
        raise ConfigurationError(
            f"{variable} is not a key: it has a line break, or characters beyond ASCII. Correct it, or unset it."
        )
    return key


_KEY_NAME = re.compile(r"(?!SHIGUAN_)[A-Z][A-Z0-9_]*_KEY")


def _is_name_of_a_key(name: str) -> str:
    if not _KEY_NAME.fullmatch(name):
        raise ValueError(
            "must match [A-Z][A-Z0-9_]*_KEY, and not be one of Shiguan's own, which hold the keys of callers"
        )
    return name


def _is_address(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ValueError("must begin with http:// or https://")
    return url


_Price = Annotated[float | None, Field(ge=0, allow_inf_nan=False)]


class NamedModel(BaseModel, extra="forbid", frozen=True):
    """
    One model; without its own address and key variable it is at the endpoint that the environment names.

    Prices are for a million tokens; `window` (prompt and reply) and `max_tokens` are in tokens, `timeout` in seconds.
    """

    name: Annotated[str, Field(pattern=r"^[\w.:/-]{1,80}$")]
    base_url: Annotated[str, AfterValidator(_is_address)] | None = None
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    key_variable: Annotated[str, AfterValidator(_is_name_of_a_key)] | None = None
    price_in: _Price = None
    price_out: _Price = None
    window: Annotated[int, Field(ge=256)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the key that it names is set or, without its own address, the environment names an endpoint."""
        if self.key_variable is not None:
            return bool(_key_in(self.key_variable))
        return self.base_url is not None or is_endpoint_configured()

    @property
    def address(self) -> str | None:
        """The base URL; None for OpenAI itself."""
        return self.base_url or os.environ.get("OPENAI_BASE_URL") or None

    @property
    def key(self) -> str:
        """The key; that of the environment's endpoint is never sent to another address."""
        variable = self.key_variable or ("OPENAI_API_KEY" if self.base_url is None else "")
        return _key_in(variable) or _NO_KEY

    @property
    def model_name(self) -> str:
        return self.model or os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL

    def cost(self, tokens: dict[str, int]) -> float | None:
        """Compute what a call cost; None if no price is known."""
        if self.price_in is None and self.price_out is None:
            return None
        read, written = tokens.get("prompt_tokens", 0), tokens.get("completion_tokens", 0)
        return (read * (self.price_in or 0.0) + written * (self.price_out or 0.0)) / 1_000_000


class RoleRule(BaseModel, extra="forbid", frozen=True):
    """The role that answers instead of `answer`: from this complexity, for these types, from this attempt on."""

    role: Role
    complexity: Annotated[int, Field(ge=0, le=10)] | None = None
    types: list[str] | None = None
    attempt: Annotated[int, Field(ge=1)] | None = None

    def fits(self, asked: dict[str, Any]) -> bool:
        return (
            (self.complexity is None or (asked.get("complexity") or 0) >= self.complexity)
            and (self.types is None or asked.get("type") in self.types)
            and (self.attempt is None or (asked.get("attempt") or 1) >= self.attempt)
        )


class ModelRoles(BaseModel, extra="forbid", frozen=True):
    """The `models` section: roles list models in the order in which they are asked; rules choose who answers."""

    models: Annotated[list[NamedModel], Field(min_length=1, max_length=50)] = [NamedModel(name="default")]
    roles: dict[Role, Annotated[list[str], Field(min_length=1)]] = {"answer": ["default"]}
    rules: Annotated[list[RoleRule], Field(max_length=50)] = []

    @field_validator("models")
    @classmethod
    def _names_differ(cls, models: list[NamedModel]) -> list[NamedModel]:
        names = [model.name for model in models]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"the name `{twice[0]}` is used twice")
        return models

    @model_validator(mode="after")
    def _roles_are_known(self) -> Self:
        if "answer" not in self.roles:
            raise ValueError("no model has the role `answer`")
        known = {model.name for model in self.models}
        for role, names in self.roles.items():
            unknown = [name for name in names if name not in known]
            if unknown or len(set(names)) < len(names):
                wrong = f"names `{unknown[0]}`, which is not among the models" if unknown else "names a model twice"
                raise ValueError(f"the role `{role}` {wrong}")
        return self

    def role_for(self, role: Role, asked: dict[str, Any]) -> Role:
        """Choose the role that writes an answer, by what is known of the question; other roles stay as they are."""
        if role != "answer":
            return role
        return next((rule.role for rule in self.rules if rule.fits(asked)), role)

    def names(self, role: Role, usable: Collection[str]) -> list[str]:
        """List the usable models of a role, in the order in which they are asked."""
        found = [name for name in self.roles.get(role, []) if name in usable]
        return found or (self.names("answer", usable) if role != "answer" else [])


def read_model_roles(section: dict[str, Any] | None) -> ModelRoles:
    """Read a `models` section; None means the environment's endpoint in every role."""
    try:
        return ModelRoles.model_validate(section or {})
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        steps = [step for step in fault["loc"] if step != "[key]"]
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        problem = fault["msg"].removeprefix("Value error, ")
        raise ValueError(f"`models{where}`: {problem}. docs/models.md shows the section.") from None


_MOST = 1_000_000_000  # more, in seconds some thirty years, is a mistake, and a longer number cannot be written
_Count = Annotated[int | None, Field(ge=0, le=_MOST, strict=True)]
_Amount = Annotated[float | None, Field(ge=0, le=_MOST, strict=True, allow_inf_nan=False)]


class Budget(BaseModel, extra="forbid", frozen=True):
    """What one question may spend: requests to models, with retries, and seconds; None for no limit."""

    calls: _Count = None
    seconds: _Amount = None

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are set, by unit."""
        return self.model_dump(exclude_none=True)

    def within(self, other: "Budget") -> "Budget":
        """Combine two budgets; in every unit the stricter limit holds."""
        both = [*self.limits.items(), *other.limits.items()]
        return Budget.model_validate({unit: min(limit for one, limit in both if one == unit) for unit, _ in both})


def read_budget(given: Any) -> Budget:
    """Read the budget of a question."""
    try:
        return Budget.model_validate(given or {})
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in fault["loc"])
        raise RefusedError(
            f"The budget cannot be used: `{place or 'budget'}` is {shown(fault['input'])}. Expected `calls`, a "
            f"whole number, and `seconds`, a number, neither below 0 nor above {_MOST:,}. Correct it."
        ) from None
