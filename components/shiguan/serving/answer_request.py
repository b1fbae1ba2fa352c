"""What a caller may send with a question, and what is refused before anything runs."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from shiguan.engine.options import AskOptions
from shiguan.engine.pipeline_run import MAX_QUESTION, checked_question
from shiguan.errors import RefusedError

MAX_BATCH = 50
_MOST_TURNS = 100


class Turn(BaseModel):
    """One turn of a conversation, as the caller kept it."""

    model_config = ConfigDict(extra="forbid")

    role: Annotated[str, Field(max_length=20, description="`user` or `assistant`; other roles are left out.")]
    content: Annotated[str, Field(max_length=20_000)]


class AnswerRequest(AskOptions):
    """A question with what it may come with. What is left out is as the mode's YAML says."""

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION, description="The question.")]
    mode: Annotated[str, Field(max_length=40, description="One of the deployment's modes.")] = "simple"
    history: Annotated[
        list[Turn] | None, Field(max_length=_MOST_TURNS, description="The turns before, instead of what is kept.")
    ] = None
    include_sources: Annotated[bool, Field(description="Whether `documents` lists the passages that were read.")] = True
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

    def options(self) -> dict[str, Any]:
        """Give what the engine's runner takes beside the question."""
        turns = {"history": [turn.model_dump() for turn in self.history]} if self.history else {}
        return {**self.given(), **turns}


class BatchRequest(BaseModel):
    """Several questions at once; each is an `AnswerRequest` and is checked by itself."""

    model_config = ConfigDict(extra="forbid")

    requests: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_BATCH)]
    tenant_id: Annotated[str | None, Field(max_length=200)] = None
