"""The chat generator of all stages: calls the language models that the environment or a file names, if any."""

from functools import cached_property
from typing import Any, get_args

from haystack import component, logging
from haystack.dataclasses import ChatMessage, StreamingCallbackT
from haystack.tools import ToolsType

from shiguan.errors import AnswerError, BudgetError, EndpointError
from shiguan.haystack_compat import with_meta
from shiguan.llm.calls import blocking, estimate_tokens
from shiguan.llm.endpoint import OpenAIEndpoint, Request
from shiguan.llm.model_settings import Role, read_model_roles
from shiguan.llm.run import current_run
from shiguan.serialization import Serializable

logger = logging.getLogger(__name__)

# Seconds to wait and retries, for the roles whose stages can do without a reply.
_PATIENCE: dict[Role, tuple[float, int]] = {"helper": (20.0, 1), "judge": (20.0, 1)}
_RETRIES_WITH_ANOTHER = 1
_PROMPT_MARKS = ("prompt", "prompt_hash", "prompt_layers", "prompt_rendered", "asked")


@component
class ConfiguredChatGenerator(Serializable):
    """
    Calls the models that have a role, at OpenAI-compatible endpoints.

    Without a `models` section every role is that of the endpoint in the environment: at warm-up it reads
    `OPENAI_API_KEY` and `OPENAI_BASE_URL`; a base URL without a key is a local server and gets a dummy key. The marks
    of the prompt come back in the meta of its reply.

    There are no replies if no model can be called or, with a warning, if none could be reached before the first token
    or accepted its key. `CitationExtractor` then quotes the sources and says why, so that the same YAML runs with and
    without a model.

    A call that fails for a reason that may pass (no connection, 429, 5xx, a reply that is not valid JSON) is retried
    after 1, 2 and 4 seconds, or when the endpoint says; only once in the roles `helper` and `judge`, whose stages have
    a fallback, and where the role has another model, which is asked next, with a warning. The next token may take 30
    seconds, in these roles 20, or `$OPENAI_TIMEOUT`. A call that timed out is not retried: a slow server would still be
    busy with it; nor is one whose key was refused, but another model is asked. Neither happens once parts of the answer
    have been streamed, nor if the endpoint refused the prompt itself.

    Example in YAML:
    ```yaml
    generator:
      type: shiguan.llm.configured_chat_generator.ConfiguredChatGenerator
      init_parameters:
        models:
          models:
            - {name: default}
            - {name: strong, base_url: "https://llm.example.org/v1", key_variable: STRONG_API_KEY}
          roles: {answer: [default], answer_strong: [strong, default]}
          rules: [{role: answer_strong, complexity: 7}]
        generation_kwargs: {temperature: 0.2}
    ```
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        role: Role = "answer",
        models: dict[str, Any] | None = None,
        generation_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """
        Set which models are called, and how; nothing is looked up yet.

        :param model: A model at the environment's endpoint, if `models` is not given; None for `$OPENAI_MODEL`, or
            `gpt-4.1-mini` if that is not set.
        :param role: The role of the calling stage: `answer`, `answer_strong`, `helper` or `judge`.
        :param models: The models, their roles, and the rules by which an answer gets another role, as in a deployment's
            `models.yml`, which is used when a mode is loaded by name (docs/models.md).
        :param generation_kwargs: Passed on to the endpoint, such as `temperature`. `max_tokens` is 2,048 if neither it
            nor `max_completion_tokens` is given; null leaves it out.
        :raises ValueError: If the role is unknown, or the section cannot be used.
        """
        if role not in get_args(Role):
            raise ValueError(f"`role` must be one of {', '.join(get_args(Role))}, got {role!r}.")
        if model is not None and models is not None:
            raise ValueError("`model` and `models` cannot both be given: name the model in the section.")
        self.model = model
        self.role = role
        self.models = models
        self.generation_kwargs = generation_kwargs
        self._roles = read_model_roles(models if model is None else {"models": [{"name": "default", "model": model}]})

    def warm_up(self) -> None:
        """Look up keys and addresses in the environment; a second call does nothing."""
        _ = self._endpoints

    def available(self) -> bool:
        """
        Return whether any model can be called.

        :returns: True if a model of the role, or of `answer`, could be called at warm-up.
        """
        return bool(self._models(self.role))

    @component.output_types(replies=list[ChatMessage], warnings=list[str])
    async def run_async(
        self,
        messages: list[ChatMessage] | str,
        streaming_callback: StreamingCallbackT | None = None,
        generation_kwargs: dict[str, Any] | None = None,
        *,
        tools: ToolsType | None = None,
    ) -> dict[str, Any]:
        """
        Answer a prompt.

        :param messages: The prompt. What `PromptFileBuilder` wrote into its meta on the question decides, by the
            rules of the section, whether `answer_strong` answers.
        :param streaming_callback: Called with each part of the answer as it comes, and awaited if it is asynchronous.
        :param generation_kwargs: For this call, over those of the component.
        :param tools: The tools that the model may ask for.
        :returns: `replies`, as many as were asked for; none for an empty prompt, without a model, and where none could
            be reached; `warnings`, why.
        :raises AnswerError: If a model refuses the prompt, or breaks off in the middle of its answer.
        """
        if isinstance(messages, str):
            messages = [ChatMessage.from_user(messages)] if messages else []
        meta = messages[-1].meta if messages else {}
        role = self._roles.role_for(self.role, meta.get("asked") or {})
        models = self._models(role)
        if not models:
            return self._unanswered("no_model")
        marks = next((message.meta for message in reversed(messages) if "prompt" in message.meta), {})
        about: dict[str, Any] = {"role": role, **{name: marks.get(name) for name in ("prompt", "prompt_hash")}}
        fitting = self._fitting(models, estimate_tokens(messages), generation_kwargs)
        request = Request(messages, streaming_callback, generation_kwargs, tools)
        failure = AnswerError("No model was asked.")
        missed = None if models[0] in fitting else (models[0].named.name, "window")
        for place, model in enumerate(fitting, start=1):
            if missed:
                _note_switch(*missed, model.named.name)
            retries = None if place == len(fitting) else _RETRIES_WITH_ANOTHER
            try:
                replies = await model.reply(request, most_retries=retries, **about)
            except BudgetError:
                return self._unanswered("budget")  # the budget's own warning says so
            except AnswerError as error:
                if not error.reason:
                    raise
                failure, missed = error, (model.named.name, error.reason)
            else:
                marks = {name: meta[name] for name in _PROMPT_MARKS if name in meta}
                marks |= {"stood_in": True} if model is not models[0] else {}
                marked = [with_meta(reply, **marks) for reply in replies]
                return {"replies": marked, "warnings": []}
        if self.role != "answer":
            raise failure
        logger.warning("No model answered: {summary}", summary=getattr(failure, "summary", "") or failure.reason)
        return self._unanswered(failure.reason, _in_words(failure))

    run = blocking(run_async)

    @cached_property
    def _endpoints(self) -> dict[str, OpenAIEndpoint]:
        """The models that can be called, by name, with the keys and addresses of the environment at warm-up."""
        timeout, retries = _PATIENCE.get(self.role, (30.0, 3))
        return {
            named.name: OpenAIEndpoint(named, timeout, retries, self.generation_kwargs)
            for named in self._roles.models
            if named.is_usable
        }

    def _unanswered(self, reason: str, *warnings: str) -> dict[str, Any]:
        """Return no reply, and leave the reason to the run, for the answer that is written in its place."""
        run = current_run()
        if run is not None and self.role == "answer":
            run.unanswered = reason
        return {"replies": [], "warnings": list(warnings)}

    def _fitting(
        self, models: list[OpenAIEndpoint], tokens: int, generation_kwargs: dict[str, Any] | None
    ) -> list[OpenAIEndpoint]:
        """Drop models whose window is too small for a prompt; if that drops all of a role, use those of other roles."""
        held = [model for model in self._endpoints.values() if model.holds(tokens, generation_kwargs)]
        return [model for model in models if model in held] or held or models

    def _models(self, role: Role) -> list[OpenAIEndpoint]:
        return [self._endpoints[name] for name in self._roles.names(role, self._endpoints)]


def _note_switch(name: str, reason: str, stands_in: str) -> None:
    logger.warning("Fell back from {model} to {stands_in} ({why})", stands_in=stands_in, model=name, why=reason)
    if run := current_run():
        run.switches.append({"from": name, "to": stands_in, "reason": reason})


def _in_words(error: AnswerError) -> str:
    cause, step = (error.cause, error.next_step) if isinstance(error, EndpointError) else ("", "")
    return f"No model answered: {(cause or str(error)).rstrip('.')}." + (f" {step}." if step else "")
