"""Answers with the library and with tools: the model calls tools, and answers from the numbered passages they find."""

import asyncio
import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from haystack import Document, component, default_from_dict, logging
from haystack.components.generators.chat.types import ChatGenerator
from haystack.core.serialization import component_from_dict, import_class_by_name
from haystack.dataclasses import ChatMessage, StreamingCallbackT, StreamingChunk, ToolCall
from haystack.dataclasses.chat_message import ToolCallResult
from haystack.dataclasses.streaming_chunk import ToolCallDelta
from haystack.tools import Tool

from shiguan.agent.tool_calls import Observation, observe, read_step
from shiguan.agent.tools import AgentTool, ToolError, WrongArgumentsError, run_apart, sentence
from shiguan.claims.checker import stated_claim
from shiguan.claims.claims import split_claims
from shiguan.errors import EndpointError, RefusedError, ShiguanError, StoreUnavailableError
from shiguan.llm.calls import Outcome, blocking, budget_allows, call_generator, warm_up_generator
from shiguan.models.token_counter import TokenCounter
from shiguan.reading.text import read_text
from shiguan.serialization import Serializable
from shiguan.text.terminal import one_line

logger = logging.getLogger(__name__)

MOST_TOOL_CALLS = 4
"""How many calls of tools a question may take; then the model is called once more, without them."""

_WAITS, _ATTEMPT_SECONDS = (1.0, 2.0, 4.0), 10.0
_TOOLBOX = "<tools></tools>"


@component
class ToolAgent(Serializable):
    """
    Lets the model look beyond the passages that were found for the question.

    It stands between the prompt and the claim check. The model answers or calls tools; the calls of one reply run side
    by side. What they find continues the numbers of the context, is cut at 1,500 tokens, and is made harmless and
    checked like every passage: a passage of a tool has `meta.origin` `tool` and the record's address. After 4 calls of
    tools the model is asked once more without them. Models that cannot call tools write the call as JSON, and endpoints
    that refuse tools are asked without them.

    A tool that fails for good is not offered again for this question; docs/agent.md has a table of failures. Without a
    passage there is never an answer, but a friendly sentence with the status `refused`, or the not-found sentence.

    Tools that read documents get the tenant's filters from here; the arguments of the model cannot set any.

    Example in YAML:
    ```yaml
    agent:
      type: shiguan.agent.tool_agent.ToolAgent
      init_parameters:
        chat_generator: *llm
        tools: [*library, *reader]
    ```
    """

    def __init__(self, chat_generator: ChatGenerator, *, tools: list[AgentTool]) -> None:
        """
        Set the model and its tools.

        :param chat_generator: Writes the calls and the answer.
        :param tools: Components of `shiguan.agent`, or tools of your own on `AgentTool`, with different names.
        :raises ValueError: If there is no tool, or two have the same name.
        """
        self.chat_generator = chat_generator
        self.tools = tools
        self._tools = {tool.tool_name: tool for tool in tools}
        if not tools or len(self._tools) < len(tools):
            names = ", ".join(tool.tool_name for tool in tools)
            raise ValueError(f"`tools` must be one or more of different names, got {names or 'none'}.")
        self._counter = TokenCounter()

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Create the component from its parameters."""
        given = data.get("init_parameters") or {}
        tools = given.get("tools") or []
        made = [component_from_dict(import_class_by_name(tool["type"]), tool, "tools") for tool in tools]
        return default_from_dict(cls, {**data, "init_parameters": {**given, "tools": made}})

    def warm_up(self) -> None:
        """Load the generator, the tokenizer and the tools' models; a second call does nothing."""
        self._counter.warm_up()
        for part in (self.chat_generator, *self._tools.values()):
            warm_up_generator(part)

    @component.output_types(
        replies=list[ChatMessage],
        passages=list[Document],
        outcome=Outcome,
        steps=list[dict[str, Any]],
        warnings=list[str],
    )
    async def run_async(
        self,
        messages: list[ChatMessage],
        documents: list[Document],
        filters: dict[str, Any],
        query: str = "",
        *,
        language: str | None = None,
        generation_kwargs: dict[str, Any] | None = None,
        streaming_callback: StreamingCallbackT | None = None,
    ) -> dict[str, Any]:
        """
        Answer.

        :param messages: The prompt; the definitions of the tools are written into its `<tools></tools>`.
        :param documents: The numbered passages of its context.
        :param filters: What tools may read, from `TenantFilter`.
        :param query: The question.
        :param language: Its language; None to detect it.
        :param generation_kwargs: For every call of the model.
        :param streaming_callback: Called with each call of a tool and its result, and never with the answer, which is
            shown after it is checked.
        :returns: `replies`, one, or none if no model could be called, with `passages`, all that it may cite; or
            `outcome`, why there is no reply; `steps`, each call of a tool with its outcome; `warnings`.
        :raises AnswerError: If the language model fails for good.
        :raises RefusedError: If a tool was to read documents without a tenant.
        """
        self.warm_up()
        ours = {"filters": filters, "language": language or read_text(query).language}
        settings = {"generation_kwargs": generation_kwargs} if generation_kwargs else {}
        research = _Research(self, list(messages), list(documents), ours, settings, streaming_callback)
        try:
            return await research.result()
        except ShiguanError:
            raise
        except Exception as error:  # nothing else ends a conversation with an error
            logger.warning("The agent failed: {kind}", kind=type(error).__name__)
            research.warnings.append(f"The stage `agent` failed ({_reason(error)}).")
            return research.ended("failed")

    run = blocking(run_async)


@dataclass
class _Research:
    """One question: the conversation with the model, the passages so far, and the tools still offered."""

    agent: ToolAgent
    messages: list[ChatMessage]
    passages: list[Document]
    ours: dict[str, Any]
    settings: dict[str, Any]
    callback: StreamingCallbackT | None
    warnings: list[str] = field(default_factory=list)
    offered: dict[str, Tool] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    native: bool = True
    unanswered: str = "failed"

    def __post_init__(self) -> None:
        prompt = self.messages[-1].meta
        self.marks = {name: value for name, value in prompt.items() if name.startswith("prompt")}
        self.language: str = self.ours["language"]

    async def result(self) -> dict[str, Any]:
        await self._define_tools()
        reply = await self._ask_until_answered()
        if reply is None:
            return self._outputs(replies=[], passages=self.passages)
        text = reply.text or ""
        if not text:
            does = "used every step on tools" if self.unanswered == "unfinished" else "gave an empty reply"
            self.warnings.append(f"The model {does}; there is no answer.")
            return self.ended(self.unanswered)
        failed = any(step["outcome"] == "failed" for step in self.steps)
        if failed and not (self.passages and any(map(stated_claim, split_claims(text).claims))):
            return self.ended("failed")
        if not self.passages:
            return self.ended("nothing_found")
        return self._outputs(replies=[reply], passages=self.passages)

    def ended(self, why: str) -> dict[str, Any]:
        """Return the outcome in place of a reply: nothing was found, or a sentence that says what went wrong."""
        told = () if why == "nothing_found" else (sentence(why, self.language),)
        kind: Literal["refused", "not_found"] = "refused" if told else "not_found"
        return self._outputs(outcome=Outcome(kind, why, told, tuple(self.passages), self.marks))

    def _outputs(self, **outputs: Any) -> dict[str, Any]:
        return {**outputs, "steps": self.steps, "warnings": [*self.agent._counter.warnings, *self.warnings]}

    async def _define_tools(self) -> None:
        """Collect the definitions of the tools; a tool whose server does not answer is left out."""
        tools = self.agent._tools
        made = [self._within_limit(asyncio.to_thread(tool.definition, self.language)) for tool in tools.values()]
        for name, definition in zip(tools, await asyncio.gather(*made, return_exceptions=True), strict=True):
            if isinstance(definition, Tool):
                self.offered[name] = definition
            elif isinstance(definition, Exception):
                self._note_failure(name, definition)
        described = [
            {"tool": name, "description": tool.description, "arguments": tool.parameters}
            for name, tool in self.offered.items()
        ]
        lines = "\n".join(
            json.dumps(tool, ensure_ascii=False, sort_keys=True).replace("<", "\\u003c") for tool in described
        )
        system = self.messages[0]
        text = (system.text or "").replace(_TOOLBOX, f"<tools>\n{lines}\n</tools>")
        if system.is_from("system") and text != system.text:
            self.messages[0] = ChatMessage.from_system(text, meta=system.meta)

    async def _ask_until_answered(self) -> ChatMessage | None:
        """Return the answer, empty if the model gave none; None if no model could be called."""
        asked = 0
        while True:
            # After a call of a tool one more call is needed for the answer.
            last = len(self.steps) >= MOST_TOOL_CALLS or not self.offered or not budget_allows(calls=2)
            if last and asked:
                self.messages.append(ChatMessage.from_user(sentence("answer_now", self.language)))
            reply = await self._ask([] if last else list(self.offered.values()), first=not asked)
            if reply is None:
                return None
            step = read_step(reply, asked)
            asked += 1
            if not (last or step.text or step.calls) and reply.meta.get("finish_reason") == "tool_calls":
                # The call could not be read, and the next one would not be either.
                self.offered.clear()
                continue
            if last or not step.calls:
                # The text alone, with the marks of the prompt that began the conversation.
                text, self.unanswered = ("", "unfinished") if step.calls else (step.text, "failed")
                return ChatMessage.from_assistant(text, meta={**reply.meta, **self.marks})
            observations = await self._observe(step.calls)
            self.messages += [step.message, *(one.message(self.language, in_text=step.in_text) for one in observations)]

    async def _ask(self, offered: list[Tool], *, first: bool) -> ChatMessage | None:
        native = {"tools": offered} if offered and self.native else {}
        settings = {**self.settings, **native}
        try:
            outputs = await call_generator(self.agent.chat_generator, self.messages, **settings)
        except EndpointError as error:
            # Servers of models without tool calling refuse the request; such a model writes its calls as JSON.
            if not (first and native and "tool" in str(error).lower()):
                raise
            self.native = False
            return await self._ask(offered, first=False)
        self.warnings += outputs.get("warnings") or []
        return next(iter(outputs["replies"]), None)

    async def _observe(self, calls: Sequence[ToolCall]) -> list[Observation]:
        """Run the calls of one reply side by side, and number what they found in order."""
        left = MOST_TOOL_CALLS - len(self.steps)
        for place, call in enumerate(calls[:left]):
            arguments = json.dumps(call.arguments, ensure_ascii=False)
            delta = ToolCallDelta(index=place, tool_name=call.tool_name, arguments=arguments)
            asked = {"tool": call.tool_name, "arguments": call.arguments}
            await self._stream(StreamingChunk("", index=place, tool_calls=[delta], meta=asked))
        found = await asyncio.gather(*(self._found_by(call) for call in calls[:left]))
        observations = []
        for place, (call, result) in enumerate(zip(calls[:left], found, strict=True)):
            if isinstance(result, Observation):
                observation = result
            else:
                try:
                    observation, new = observe(call, result, self.passages, self.language, self.agent._counter)
                    self.passages += new
                except Exception as error:  # a tool may return anything
                    observation = self._failed(call, error)
            observations.append(observation)
            self.steps.append(observation.record())
            failed = observation.outcome not in ("found", "known", "empty")
            answer = ToolCallResult(result=observation.text, origin=call, error=failed)
            await self._stream(StreamingChunk("", index=place, tool_call_result=answer, meta=observation.record()))
        beyond = sentence("too_many", self.language)
        return [*observations, *(Observation(call, "too_many", beyond) for call in calls[left:])]

    async def _found_by(self, call: ToolCall) -> list[Document] | Observation:
        name, definition = call.tool_name, self.offered.get(call.tool_name)
        if definition is None:
            text = sentence("unknown_tool", self.language, tools=", ".join(self.offered))
            return Observation(call, "unknown_tool", text)
        tool = self.agent._tools[name]
        problem = tool.problem(call.arguments, definition)
        try:
            if problem is None:
                return await self._attempts(tool, call.arguments)
        except WrongArgumentsError as error:
            problem = str(error)
        except RefusedError:
            raise
        except Exception as error:  # a tool may raise anything
            return self._failed(call, error)
        text = sentence("wrong_arguments", self.language, problem=problem or "")
        return Observation(call, "wrong_arguments", text, reason=problem or "")

    def _failed(self, call: ToolCall, error: Exception) -> Observation:
        self._note_failure(call.tool_name, error)
        text = f"{sentence('failed', self.language)} {sentence('withdrawn', self.language)}"
        return Observation(call, "failed", text, reason=_reason(error))

    async def _attempts(self, tool: Any, arguments: dict[str, Any]) -> list[Document]:
        """Run a tool with the model's arguments and those that only we give; retry what may pass."""
        takes = inspect.signature(tool.run).parameters
        ours = {name: value for name, value in {**self.ours, "passages": self.passages}.items() if name in takes}
        run_async, given = getattr(tool, "run_async", None), {**arguments, **ours}
        waits = iter(_WAITS)
        while True:
            try:
                work = run_async(**given) if run_async else asyncio.to_thread(tool.run, **given)
                result = await self._within_limit(work)
                found: list[Document] = result["documents"]
                told = (one for one in result.get("warnings") or () if isinstance(one, str))
                self.warnings += [one for one in dict.fromkeys(told) if one not in self.warnings]
                return found
            except Exception as error:
                wait = next(waits, None) if _may_pass(error) else None
                if wait is None:
                    raise
                message = "The tool {tool} failed ({kind}); trying again in {delay} s"
                logger.warning(message, tool=tool.tool_name, kind=type(error).__name__, delay=wait)
            await asyncio.sleep(wait)

    async def _within_limit(self, work: Any) -> Any:
        async with asyncio.timeout(_ATTEMPT_SECONDS):
            return await run_apart(work)

    def _note_failure(self, name: str, error: BaseException) -> None:
        self.offered.pop(name, None)
        logger.warning("The tool {tool} failed for good ({kind})", tool=name, kind=type(error).__name__)
        self.warnings.append(f"The tool `{name}` failed and was not offered again: {_reason(error)}.")

    async def _stream(self, chunk: StreamingChunk) -> None:
        result = self.callback(chunk) if self.callback is not None else None
        if inspect.isawaitable(result):
            await result


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, TimeoutError | ConnectionError | StoreUnavailableError) or (
        isinstance(error, ToolError) and error.passing
    )


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"it did not answer within {_ATTEMPT_SECONDS:g} s"
    return one_line(str(error))[:200].rstrip(".") or type(error).__name__
