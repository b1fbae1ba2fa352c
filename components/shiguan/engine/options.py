"""The options of a question: the single table for Python, the routes, the command line and docs/options.md."""

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, ValidationInfo, field_validator

from shiguan.conversations import CONVERSATION_ID, check_conversation_id
from shiguan.errors import ConfigurationError, RefusedError, shown
from shiguan.llm.model_settings import Budget, read_budget
from shiguan.llm.prompts import check_layer, load_prompt_data
from shiguan.reading.question import years_between
from shiguan.resources import object_of, resource_folder
from shiguan.tenants import check_filters

Method = Literal[
    "auto", "none", "multi", "multi_query", "hyde", "step_back", "step-back", "decompose", "decomposition", "expand",
    "contextualize",
]  # fmt: skip
_OTHER_NAMES = {"multi": "multi_query", "step-back": "step_back", "decomposition": "decompose"}
_METHODS: dict[str, str] = {name: name for name in get_args(Method)} | _OTHER_NAMES
ReferenceFormat = Literal["plain", "markdown", "html"]
WRITING = ("temperature", "max_tokens")
ENGINE_OPTIONS = (
    *("sources", "sections", "when", "temperature", "max_tokens", "conversation_id", "budget"),
    *("strict", "references", "citation_format", "source_characters", "without_search"),
)
"""Options that the engine handles itself; of these only `conversation_id` goes to a component, too."""
_NOT_IN_RECEIPTS = {"conversation_id", "history", "budget"}

# Options whose values are names of files, and where these are.
_FILES = {"task": "layers/task", "profile": "profiles"}

Name = Annotated[str, Field(min_length=1, max_length=500)]


def _checked(check: Callable[[Any], object]) -> AfterValidator:
    def validate(value: Any) -> Any:
        try:
            if value is not None and value != {}:
                check(value)
        except (RefusedError, ConfigurationError) as error:
            raise ValueError(str(error)) from error
        return value

    return AfterValidator(validate)


def _read_persona(value: Any) -> Any:
    try:
        read = json.loads(value, object_pairs_hook=object_of) if isinstance(value, str) else value
        if read is not None and not isinstance(read, dict | Persona):
            raise ValueError("It is no object")
        return read
    except (ValueError, RecursionError) as error:
        raise ValueError(f'{error}. Expected an object such as {{"name": "Ban Zhao", "role": "teacher"}}.') from error


class Persona(BaseModel, extra="forbid"):
    """In whose voice a mode answers: data for the prompt, which overrides no rule."""

    name: Annotated[str, Field(max_length=80)] = ""
    role: Annotated[str, Field(max_length=200)] = ""
    traits: Annotated[list[Annotated[str, Field(max_length=80)]], Field(max_length=8)] = []

    def __str__(self) -> str:
        given = {name: value for name, value in self.model_dump().items() if value}
        return json.dumps(given, ensure_ascii=False, sort_keys=True) if given else ""


Instructions = Annotated[
    str | None, Field(max_length=1000, description="Wishes about voice and form; they change no rule.")
]
Character = Annotated[
    Persona | None,
    BeforeValidator(_read_persona),
    Field(description="Who answers: a name, a role, traits; as an object, or as JSON."),
]


class AskOptions(BaseModel, extra="forbid"):
    """What a question may come with; an option that is left out or None is as in the mode's file."""

    strict: bool | None = Field(None, description="Whether an unknown `rewrite_method` is refused.")
    top_k: int | None = Field(None, ge=1, le=50, description="How many passages to read at most.")
    rewrite_method: Method | Annotated[str, Field(min_length=1, max_length=40)] | None = Field(
        None,
        description="How the question is reworded for the search; an unknown method is `none`, with a warning.",
    )
    wordings: int | None = Field(None, ge=1, le=5, description="How many other wordings to search with; by default 3.")
    retrieval: Literal["hybrid", "words", "vectors"] | None = Field(
        None, description="Which search finds the passages: by words, by vectors, or both."
    )
    scope: Literal["auto", "local", "global"] | None = Field(
        None, description="Exact details or a synthesis; `auto`: as the question sounds."
    )
    confidence_threshold: float | None = Field(
        None, ge=0, le=1, description="Refuse if the passages are less likely to answer."
    )
    temperature: float | None = Field(None, ge=0, le=2, description="Of the model that answers.")
    max_tokens: int | None = Field(
        None, ge=1, le=128_000, description="The longest reply of the model that answers, in tokens."
    )
    sources: list[Name] | None = Field(None, max_length=50, description="Names of source files: only these are read.")
    sections: list[Name] | None = Field(
        None, max_length=50, description="Headings of any level: only what is below one of them is read."
    )
    when: Annotated[
        str | None,
        Field(max_length=100, description="Years, such as `755..763`: only what is dated in them is read."),
        _checked(years_between),
    ] = None
    filters: Annotated[
        dict[str, Any] | None,
        _checked(check_filters),
        Field(description="Further conditions in Haystack's filter format."),
    ] = None
    conversation_id: Annotated[
        str | None,
        _checked(check_conversation_id),
        Field(
            description="The conversation to continue; the question and its answer are kept in it.",
            json_schema_extra={"pattern": f"^{CONVERSATION_ID}$"},
        ),
    ] = None
    history: Annotated[list[Any] | None, Field(description="The turns before, instead of what is kept.")] = None
    budget: Budget | None = Field(None, description="What the question may spend; a mode's own limits hold.")
    task: Annotated[
        str | None,
        Field(max_length=40, description="A layer of prompts/layers/task."),
        _checked(lambda task: check_layer("task", task)),
    ] = None
    profile: Annotated[
        str | None,
        Field(max_length=40, description="A file of prompts/profiles."),
        _checked(lambda profile: load_prompt_data("profiles", profile)),
    ] = None
    references: bool | None = Field(None, description="Whether the answer ends with the list of cited sources.")
    citation_format: ReferenceFormat | None = Field(None, description="How that list is written; by default `plain`.")
    source_characters: int | None = Field(
        None, ge=0, le=20_000, description="How much of each passage comes as `content`; by default 200."
    )
    without_search: bool | None = Field(
        None,
        description="Whether the model answers alone, unchecked and saying so, if the library cannot be searched; "
        "by default that is an error.",
    )
    language: Literal["en", "zh"] | None = Field(None, description="Of the prompt; by default that of the question.")
    instructions: Instructions = None
    persona: Character = None

    @field_validator("rewrite_method")
    @classmethod
    def _is_known(cls, method: str | None, others: ValidationInfo) -> str | None:
        if method is not None and method not in _METHODS and others.data.get("strict"):
            raise ValueError(f"Input should be one of {', '.join(map(repr, _METHODS))}")
        return method

    def given(self) -> dict[str, Any]:
        """Return the options that were set, by name, without the other fields of a request."""
        values = {name: getattr(self, name) for name in AskOptions.model_fields}
        values["persona"] = str(self.persona) if self.persona else None
        return {name: value for name, value in values.items() if value is not None}

    def for_components(self) -> dict[str, Any]:
        """Return the options that components of the pipeline take, by their names in a file's `inputs`."""
        # The engine's own options, such as `sources`, mean nothing to a component; `conversation_id` does.
        own = {*ENGINE_OPTIONS} - {"conversation_id"}
        if self.history:
            own.add("conversation_id")  # the caller's own history takes precedence over what is kept
        values = {name: value for name, value in self.given().items() if name not in own}
        return values | ({"rewrite_method": self.method} if self.method else {})

    def writing(self) -> dict[str, Any]:
        return {name: value for name, value in self.given().items() if name in WRITING}

    def in_receipt(self) -> dict[str, Any]:
        return {name: value for name, value in self.given().items() if name not in _NOT_IN_RECEIPTS}

    @property
    def method(self) -> str | None:
        """The name of the rewording method that the modes use."""
        return None if self.rewrite_method is None else _METHODS.get(self.rewrite_method, "none")

    def warnings(self) -> list[str]:
        """Return a warning if the rewording method is unknown."""
        if self.rewrite_method is None or self.rewrite_method in _METHODS:
            return []
        known = ", ".join(f"`{name}`" for name in _METHODS)
        return [f"Unknown method `{self.rewrite_method}`: the question was searched as it is. Known: {known}."]


def allowed_values(name: str) -> list[str] | str:
    """Return the values that an option may have: a list of words, or a description."""
    if name in _FILES:
        return sorted(path.stem for path in (resource_folder("prompts") / _FILES[name]).iterdir())
    schema = AskOptions.model_json_schema()
    found = schema["properties"][name]["anyOf"][0]
    if "$ref" in found:
        return f"object of {', '.join(schema['$defs'][found['$ref'].rpartition('/')[2]]['properties'])}"
    if "enum" in found:
        return list(found["enum"])
    if found["type"] == "boolean":
        return ["true", "false"]
    if "minimum" in found:
        return f"{found['minimum']:,} to {found['maximum']:,}"
    return {"string": "text", "array": "list", "object": "object"}[found["type"]]


def read_options(given: Mapping[str, Any]) -> AskOptions:
    """Validate the options of a question; a `RefusedError` names a wrong one and what is allowed."""
    if given.get("budget") is not None:
        given = {**given, "budget": read_budget(given["budget"])}
    try:
        return AskOptions.model_validate(dict(given))
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        name = ".".join(str(step) for step in fault["loc"])
        if fault["type"] == "extra_forbidden" and "." not in name:
            known = ", ".join(AskOptions.model_fields)
            raise RefusedError(f"There is no option `{name[:40]}`. Known: {known}. Correct the name.") from error
        reason = fault.get("ctx", {}).get("error")
        expected = f"{fault['msg']}, got {shown(fault['input'])}. Correct it." if reason is None else str(reason)
        raise RefusedError(f"The option `{name}` cannot be used: {expected}") from error
