"""
Everything Shiguan raises on purpose.

    ShiguanError
    ├── ConfigurationError        a deployment, mode, prompt or setting that does not exist or cannot work
    │   ├── ModelMissingError     a model's weights are not installed, or are not the expected ones
    │   └── UnsafePipelineError   a YAML file that asks for a type or an option outside the allowlist
    ├── SourceError               a file or record that cannot be ingested
    ├── StoreError                the document store cannot do what was asked
    │   ├── StoreLockedError      another process holds the data folder
    │   ├── StoreFullError        the disk has no room for what should be written
    │   ├── StoreUnavailableError a server behind the stores cannot be reached, or takes no more for now
    │   └── StoreFormatError      the data folder was written in another format
    ├── RefusedError              a request outside the limits: empty, too long, an unknown tenant
    └── AnswerError               a pipeline that ended without an answer
        ├── BudgetError           a question's budget leaves no call of a language model
        ├── EndpointError         the endpoint of a language model that gave no usable answer
        └── TimeLimitError        a question, or one of its stages, that took longer than its limit

A message has three parts: what happened with the values, what was expected, what to do next. Wrong arguments of
Python calls stay `ValueError` and `TypeError`.
"""

import reprlib
from typing import TypeVar

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


class ShiguanError(Exception):
    """Base of all errors that Shiguan raises on purpose; its message is written for the person who reads it."""


class ConfigurationError(ShiguanError):
    """A deployment, mode, prompt or setting does not exist or cannot work."""


class ModelMissingError(ConfigurationError):
    """A model's weights are not installed, or are not the expected ones; the message says what to install."""


class UnsafePipelineError(ConfigurationError):
    """A pipeline file names a type or an option that the allowlist does not know."""


class SourceError(ShiguanError):
    """A file or record cannot be ingested: `cause` is a clause, `next_step` a sentence, both without a final period."""

    def __init__(self, source: str, cause: str, next_step: str) -> None:
        self.source = source
        self.cause = cause
        self.next_step = next_step
        super().__init__(f"{source}: {cause}. {next_step}.")

    @property
    def record(self) -> dict[str, str]:
        """What the `skipped` of a converter tells of it."""
        return {"source": self.source, "cause": self.cause, "next_step": self.next_step}


class StoreError(ShiguanError):
    """The document store cannot do what was asked of it."""


class StoreLockedError(StoreError):
    """Another process holds the data folder."""


class StoreUnavailableError(StoreError):
    """A server behind the stores cannot be reached, or takes no more for now."""


class StoreFullError(StoreError):
    """The disk has no room for what should be written; nothing was."""


class StoreFormatError(StoreError):
    """The data folder was written in a format, or with a model, that does not fit the one asked for."""


class RefusedError(ShiguanError):
    """A request is outside the limits: an empty or too long question, an unknown tenant, a missing folder."""


class AnswerError(ShiguanError):
    """
    A pipeline ended without an answer.

    `stage` is the name of the stage that failed, if it was one; `reason` is how a language model failed where another
    one may not, such as `timeout`.
    """

    def __init__(self, message: str, *, stage: str = "", reason: str = "") -> None:
        self.stage = stage
        self.reason = reason
        super().__init__(message)


class BudgetError(AnswerError):
    """A language model was to be called, and the question's budget does not allow it."""


class EndpointError(AnswerError):
    """
    The endpoint of a language model cannot be reached, refuses, or sends what cannot be read.

    The message may quote the endpoint. `summary`, for a log, does not; nor do `cause` and `next_step`, for the caller,
    which have no address either. `refusal` is what was refused on its merits, so that trying again is no use: `access`,
    `content` or `request`.
    """

    def __init__(
        self, message: str, *, stage: str = "", reason: str = "", summary: str = "", cause: str = "",
        next_step: str = "", refusal: str = "",
    ) -> None:  # fmt: skip
        self.summary = summary
        self.cause = cause
        self.next_step = next_step
        self.refusal = refusal
        super().__init__(message, stage=stage, reason=reason)


class TimeLimitError(AnswerError, TimeoutError):
    """A question, or one of its stages, took longer than its limit."""


Behind = TypeVar("Behind", bound=BaseException)


def error_behind(error: BaseException | None, kind: type[Behind]) -> Behind | None:
    """Find an error of a kind: the error itself, or the first such cause behind it."""
    while error is not None and not isinstance(error, kind):
        error = error.__cause__
    return error


def shown(value: object) -> str:
    """Return a value for a message, shortened; Python itself writes no number of more than 4,300 digits."""
    try:
        return _SHORT.repr(value)
    except ValueError:
        return f"too large to be shown ({type(value).__name__})"
