"""What a caller may send with a question, and what is refused before anything runs."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from shiguan.conversations import CONVERSATION_ID
from shiguan.engine.turn import MAX_QUESTION, AskOptions, checked_question
from shiguan.errors import ConfigurationError, RefusedError
from shiguan.llm.budget import Budget
from shiguan.llm.prompts import list_layers, load_prompt_data
from shiguan.llm.run_watch import TimeLimits
from shiguan.tenants import check_filters

MAX_BATCH = 50
"""The most questions of one batch."""

_MOST_TURNS = 100


class Turn(BaseModel):
    """One turn of a conversation, as the caller kept it."""

    model_config = ConfigDict(extra="forbid")

    role: Annotated[str, Field(max_length=20, description="`user` or `assistant`; other roles are left out.")]
    content: Annotated[str, Field(max_length=20_000)]


Name = Annotated[str, Field(min_length=1, max_length=500)]


class AnswerRequest(BaseModel):
    """A question with what it may come with. What is left out is as the mode's YAML says."""

    model_config = ConfigDict(extra="forbid")

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION, description="The question.")]
    mode: Annotated[str, Field(max_length=40, description="One of the deployment's modes.")] = "simple"
    top_k: Annotated[int | None, Field(ge=1, le=50, description="How many passages to read at most.")] = None
    temperature: Annotated[float | None, Field(ge=0, le=2, description="Of the model that answers.")] = None
    filters: Annotated[dict[str, Any] | None, Field(description="Further conditions in Haystack's filter format.")] = (
        None
    )
    sources: Annotated[
        list[Name] | None, Field(max_length=50, description="Names of source files: only these are read.")
    ] = None
    sections: Annotated[
        list[Name] | None,
        Field(max_length=50, description="Headings of any level: only what stands below one of them is read."),
    ] = None
    conversation_id: Annotated[
        str | None,
        Field(
            pattern=f"^{CONVERSATION_ID}$",
            description="The conversation that the question goes on: it is asked with what was said, and kept there.",
        ),
    ] = None
    history: Annotated[
        list[Turn] | None, Field(max_length=_MOST_TURNS, description="The turns before, instead of what is kept.")
    ] = None
    budget: Annotated[Budget | None, Field(description="What the question may spend; a mode's own limits hold.")] = None
    include_sources: Annotated[bool, Field(description="Whether `documents` lists the passages that were read.")] = True
    task: Annotated[str | None, Field(max_length=40, description="A layer of prompts/layers/task.")] = None
    profile: Annotated[str | None, Field(max_length=40, description="A file of prompts/profiles.")] = None
    language: Annotated[
        Literal["en", "zh"] | None, Field(description="Of the prompt; by default that of the question.")
    ] = None
    tenant_id: Annotated[
        str | None, Field(max_length=200, description="May be left out: the key says it. Another one is refused.")
    ] = None

    @field_validator("query")
    @classmethod
    def _is_a_question(cls, query: str) -> str:
        try:
            return checked_question(query)
        except RefusedError as error:
            raise ValueError(str(error)) from error

    @field_validator("task")
    @classmethod
    def _is_a_task(cls, task: str | None) -> str | None:
        known = list_layers("task")
        if task is not None and task not in known:
            raise ValueError(f"Known tasks: {', '.join(known)}.")
        return task

    @field_validator("profile")
    @classmethod
    def _is_a_profile(cls, profile: str | None) -> str | None:
        if profile is not None:
            try:
                load_prompt_data("profiles", profile)
            except ConfigurationError as error:
                raise ValueError(str(error)) from error
        return profile

    @field_validator("filters")
    @classmethod
    def _is_a_filter(cls, filters: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            if filters:
                check_filters(filters)
        except RefusedError as error:
            raise ValueError(str(error)) from error
        return filters

    def options(self, limits: TimeLimits) -> AskOptions:
        """Give what the engine's runner takes beside the question."""
        return AskOptions(
            top_k=self.top_k,
            filters=self.filters,
            conversation_id=self.conversation_id,
            history=[turn.model_dump() for turn in self.history] if self.history else None,
            temperature=self.temperature,
            task=self.task,
            profile=self.profile,
            language=self.language,
            limits=limits,
            budget=self.budget,
        )


class BatchRequest(BaseModel):
    """Several questions at once; each is an `AnswerRequest` and is checked by itself."""

    model_config = ConfigDict(extra="forbid")

    requests: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_BATCH)]
    tenant_id: Annotated[str | None, Field(max_length=200)] = None
