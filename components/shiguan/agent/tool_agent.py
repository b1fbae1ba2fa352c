"""Answers with the library and with tools: the model asks, what tools find is numbered, and it answers from that."""

import asyncio
import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from haystack import Document, GeneratedAnswer, component, default_from_dict, logging
from haystack.components.generators.chat.types import ChatGenerator
from haystack.core.serialization import component_from_dict, import_class_by_name
from haystack.dataclasses import ChatMessage, StreamingCallbackT, StreamingChunk, ToolCall
from haystack.dataclasses.chat_message import ToolCallResult
from haystack.dataclasses.streaming_chunk import ToolCallDelta
from haystack.tools import Tool
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_exponential

from shiguan.agent.tool_calls import Observation, as_answer, fitting, number_passages, read_step, written
from shiguan.agent.tools import AgentTool, ToolError, WrongArgumentsError, argument_problem, sentence
from shiguan.claims.checker import stated_claim
from shiguan.claims.claims import split_claims
from shiguan.errors import EndpointError, RefusedError, ShiguanError, StoreUnavailableError
from shiguan.llm.calls import blocking, budget_allows, run_generator_async, warm_up_generator
from shiguan.llm.endpoint import FIRST_WAIT
from shiguan.llm.prompts import not_found_sentence
from shiguan.llm.run_watch import counting_replies, waiting_for_llm
from shiguan.models.token_counter import TokenCounter
from shiguan.serialization import Serializable
from shiguan.text.languages import detect_language

logger = logging.getLogger(__name__)

MOST_STEPS, MOST_TOOL_CALLS = 6, 4
"""Calls of the model with tools, and calls of tools, of one question; then one more call of the model without."""

_ATTEMPTS, _ATTEMPT_SECONDS = 4, 10.0
_TOOLBOX = "<tools></tools>"
_OUTPUTS: dict[str, Any] = {
    "replies": list[ChatMessage],
    "passages": list[Document],
    "answers": list[GeneratedAnswer],
    "steps": list[dict[str, Any]],
    "warnings": list[str],
}


@component
class ToolAgent(Serializable):
    """
    Lets the model look further than the passages that were found for the question.

    Stands between the prompt and the claim check. The model answers, or asks for tools, all of one reply side by side;
    what they find is numbered on from the context, cut at 1,500 tokens, made harmless like every passage, and checked
    like one behind it: a passage of a tool has `meta.origin` `tool` and the record's address. After 6 calls of the
    model or 4 of tools it is asked once more without tools. Models that cannot call tools write the call as JSON, and
    endpoints that refuse tools are asked without them.

    An error that may pass is tried again after 1, 2 and 4 seconds. Nothing found is no error: the model is told
    查询无结果. A tool that failed for good is not offered again in this question. Where nothing is left to say, the
    answer is a friendly sentence with the status `refused`, or the not-found sentence; without a passage nothing is
    answered at all.

    Tools that read documents get the tenant's filters from here; the arguments of the model cannot name any.

    Example in YAML:
    ```yaml
    agent:
      type: shiguan.agent.tool_agent.ToolAgent
      init_parameters:
        chat_generator: *llm
        tools: [*library, *reader]
    ```
    """

    tenant_readers = ("tools",)

    def __init__(self, chat_generator: ChatGenerator, *, tools: list[AgentTool]) -> None:
        """
        Name who is asked, and what with.

        :param chat_generator: Writes the calls and the answer.
        :param tools: Components of `shiguan.agent`, each under a `tool_name` of its own.
        :raises ValueError: If there is no tool, or two have the same name.
        """
        names = [tool.tool_name for tool in tools]
        if not names or len({*names}) < len(names):
            raise ValueError(f"`tools` must be one or more of different names, got {', '.join(names) or 'none'}.")
        self.chat_generator = chat_generator
        self.tools = tools
        self._counter = TokenCounter()

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make the component from its parameters."""
        given = data.get("init_parameters") or {}
        tools = given.get("tools") or []
        made = [component_from_dict(import_class_by_name(tool["type"]), tool, "tools") for tool in tools]
        return default_from_dict(cls, {**data, "init_parameters": {**given, "tools": made}})

    def warm_up(self) -> None:
        """Load the generator, the tokenizer and the tools' models; a second call does nothing."""
        self._counter.warm_up()
        for part in (self.chat_generator, *self.tools):
            warm_up_generator(part)

    @component.output_types(**_OUTPUTS)
    async def run_async(
        self,
        messages: list[ChatMessage],
        documents: list[Document],
        filters: dict[str, Any],
        query: str = "",
        *,
        language: str | None = None,
        retrieval: str = "hybrid",
        generation_kwargs: dict[str, Any] | None = None,
        streaming_callback: StreamingCallbackT | None = None,
    ) -> dict[str, Any]:
        """
        Answer.

        :param messages: The prompt; the definitions of the tools are written into its `<tools></tools>`.
        :param documents: The numbered passages of its context.
        :param filters: What tools may read, from `TenantFilter`.
        :param query: The question.
        :param language: Its language; None to tell from the question.
        :param retrieval: How tools search the library: `hybrid`, `words` or `vectors`.
        :param generation_kwargs: For every call of the model.
        :param streaming_callback: Told of each call of a tool and of its result, and never of the answer, which is
            shown when it is checked.
        :returns: `replies`, one, with `passages`, all that it may cite; or `answers`, one that says why there is no
            reply; `steps`, each call of a tool with its outcome; `warnings`.
        :raises AnswerError: If the language model fails for good.
        :raises RefusedError: If a tool was to read documents without a tenant.
        """
        self.warm_up()
        ours = {"filters": filters, "retrieval": retrieval, "language": language or detect_language(query)}
        settings = {"generation_kwargs": generation_kwargs} if generation_kwargs else {}
        research = _Research(self, list(messages), list(documents), ours, settings, streaming_callback)
        try:
            return await research.result(query)
        except ShiguanError:
            raise
        except Exception as error:  # whatever else went wrong is no reason to end a conversation with an error
            logger.warning("The agent failed: {kind}", kind=type(error).__name__)
            research.warnings.append(f"The stage `agent` failed ({_reason(error)}).")
            return research.ended("failed", query)

    run = blocking(run_async)


@dataclass
class _Research:
    """One question on its way: the conversation with the model, the passages so far, and the tools still offered."""

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

    def __post_init__(self) -> None:
        self.prompt = self.messages[-1]
        self.language: str = self.ours["language"]
        self.tools = {tool.tool_name: tool for tool in self.agent.tools}

    async def result(self, query: str) -> dict[str, Any]:
        await self._define_tools()
        text, reply = await self._ask_until_answered()
        failed = any(step["outcome"] == "failed" for step in self.steps)
        if reply is None:
            self.warnings.append("The model asked for tools to the end and gave no answer.")
            return self.ended("unfinished", query)
        if failed and not (self.passages and any(map(stated_claim, split_claims(text).claims))):
            return self.ended("failed", query)
        if not self.passages:
            return self.ended("not_found", query)
        return self._told({"replies": [as_answer(reply, text, self.prompt)], "passages": self.passages})

    def ended(self, why: str, query: str) -> dict[str, Any]:
        """Answer with a sentence of our own."""
        found = why == "not_found"
        text = not_found_sentence("agent", self.language) if found else sentence(why, self.language)
        meta: dict[str, Any] = {
            "status": "not_found" if found else "refused",
            "language": self.language,
            "format": "markdown",
        }
        meta |= {name: value for name, value in self.prompt.meta.items() if name.startswith("prompt")}
        meta |= {"citations": [], "claims": [], "changes": [], "model": "", "usage": {}}
        answer = GeneratedAnswer(data=text, query=query, documents=self.passages, meta=meta)
        return self._told({"answers": [answer]})

    def _told(self, outputs: dict[str, Any]) -> dict[str, Any]:
        return {**outputs, "steps": self.steps, "warnings": [*self.agent._counter.warnings, *self.warnings]}

    async def _define_tools(self) -> None:
        """Learn what the tools take; one whose server does not say is left out."""
        made = await asyncio.gather(
            *(asyncio.to_thread(tool.definition, self.language) for tool in self.tools.values()),
            return_exceptions=True,
        )
        for name, definition in zip(self.tools, made, strict=True):
            if isinstance(definition, Tool):
                self.offered[name] = definition
            else:
                self._note_failure(name, definition)
        tools = [
            {"tool": name, "description": tool.description, "arguments": tool.parameters}
            for name, tool in self.offered.items()
        ]
        lines = "\n".join(json.dumps(tool, ensure_ascii=False, sort_keys=True) for tool in tools)
        system = self.messages[0]
        text = (system.text or "").replace(_TOOLBOX, f"<tools>\n{lines}\n</tools>")
        if system.is_from("system") and text != system.text:
            self.messages[0] = replace(ChatMessage.from_system(text), _meta=system.meta)

    async def _ask_until_answered(self) -> tuple[str, ChatMessage | None]:
        asked = made = 0
        while True:
            last = asked == MOST_STEPS or made >= MOST_TOOL_CALLS or not self.offered
            # Whoever calls a tool needs one more call for the answer. The first is kept free by the gate before.
            last = last or not budget_allows(calls=2 if asked else 1)
            if last and asked:
                self.messages.append(ChatMessage.from_user(sentence("answer_now", self.language)))
            reply = await self._ask([] if last else list(self.offered.values()), first=not asked)
            step = read_step(reply, asked)
            asked += 1
            if step.text and not step.calls:
                return step.text, reply
            if last:
                return "", None
            if not step.calls:
                self.messages.append(ChatMessage.from_user(sentence("empty_reply", self.language)))
                continue
            self.messages.append(step.message)
            observations = await self._observe(step.calls, MOST_TOOL_CALLS - made)
            made += sum(one.outcome != "too_many" for one in observations)
            self.messages += [one.message(self.language, in_text=step.in_text) for one in observations]

    async def _ask(self, offered: list[Tool], *, first: bool) -> ChatMessage:
        native = {"tools": offered} if offered and self.native else {}
        try:
            with waiting_for_llm(), counting_replies() as came_out:
                replies = await run_generator_async(
                    self.agent.chat_generator, self.messages, {**self.settings, **native}
                )
                came_out.count(replies)
        except EndpointError as error:
            # Servers of models that know no tools refuse the request; such a model writes its calls as JSON.
            if not (first and native and "tool" in str(error).lower()):
                raise
            self.native = False
            return await self._ask(offered, first=False)
        return replies[0] if replies else ChatMessage.from_assistant("")

    async def _observe(self, calls: Sequence[ToolCall], left: int) -> list[Observation]:
        """Run the calls of one reply side by side, and number what they found in their order."""
        for place, call in enumerate(calls[:left]):
            arguments = json.dumps(call.arguments, ensure_ascii=False)
            delta = ToolCallDelta(index=place, tool_name=call.tool_name, arguments=arguments)
            told = {"tool": call.tool_name, "arguments": call.arguments}
            await self._tell(StreamingChunk("", index=place, tool_calls=[delta], meta=told))
        found = await asyncio.gather(*(self._found_by(call) for call in calls[:left]))
        observations = []
        for place, (call, one) in enumerate(zip(calls[:left], found, strict=True)):
            observation = one if isinstance(one, Observation) else self._numbered(call, one)
            observations.append(observation)
            self.steps.append(observation.record())
            failed = observation.outcome not in ("found", "known", "empty")
            result = ToolCallResult(result=observation.text, origin=call, error=failed)
            await self._tell(StreamingChunk("", index=place, tool_call_result=result, meta=observation.record()))
        beyond = sentence("too_many", self.language)
        return [*observations, *(Observation(call, "too_many", beyond) for call in calls[left:])]

    def _numbered(self, call: ToolCall, documents: list[Document]) -> Observation:
        new, known = number_passages(fitting(documents, self.agent._counter), self.passages)
        self.passages += new
        if not new and not known:
            return Observation(call, "empty", sentence("no_result", self.language))
        return Observation(call, "found" if new else "known", written(new, known, self.language), (*new, *known))

    async def _found_by(self, call: ToolCall) -> list[Document] | Observation:
        definition = self.offered.get(call.tool_name)
        if definition is None:
            known = ", ".join(self.offered)
            return Observation(call, "unknown_tool", sentence("unknown_tool", self.language, tools=known))
        problem = argument_problem(definition, call.arguments)
        try:
            if problem is None:
                return await self._attempts(self.tools[call.tool_name], call.arguments)
        except WrongArgumentsError as error:
            problem = str(error)
        except RefusedError:
            raise
        except Exception as error:  # a tool may raise anything
            self._note_failure(call.tool_name, error)
            text = f"{sentence('failed', self.language)} {sentence('withdrawn', self.language)}"
            return Observation(call, "failed", text, reason=_reason(error))
        text = sentence("wrong_arguments", self.language, problem=problem or "")
        return Observation(call, "wrong_arguments", text, reason=problem or "")

    async def _attempts(self, tool: AgentTool, arguments: dict[str, Any]) -> list[Document]:
        ours = {**self.ours, "passages": self.passages}
        run: Any = tool.run  # type: ignore[attr-defined]
        takes = inspect.signature(run).parameters
        given = {**arguments, **{name: value for name, value in ours.items() if name in takes}}

        async def attempt() -> list[Document]:
            async with asyncio.timeout(_ATTEMPT_SECONDS):
                found: list[Document] = (await asyncio.to_thread(run, **given))["documents"]
                return found

        retrying = AsyncRetrying(
            sleep=asyncio.sleep,
            retry=retry_if_exception(_may_pass),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_exponential(multiplier=FIRST_WAIT),
            before_sleep=_log_retry(tool.tool_name),
            reraise=True,
        )
        return await retrying(attempt)

    def _note_failure(self, name: str, error: BaseException) -> None:
        self.offered.pop(name, None)
        logger.warning("The tool {tool} failed for good ({kind})", tool=name, kind=type(error).__name__)
        self.warnings.append(f"The tool `{name}` failed and was not offered again: {_reason(error)}.")

    async def _tell(self, chunk: StreamingChunk) -> None:
        told = self.callback(chunk) if self.callback is not None else None
        if inspect.isawaitable(told):
            await told


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, TimeoutError | ConnectionError | StoreUnavailableError) or (
        isinstance(error, ToolError) and error.passing
    )


def _log_retry(name: str) -> Any:
    def log(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        delay = state.next_action.sleep if state.next_action else 0
        message = "The tool {tool} failed ({kind}); trying again in {delay} s"
        logger.warning(message, tool=name, kind=type(error).__name__, delay=delay)

    return log


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"it did not answer within {_ATTEMPT_SECONDS:g} s"
    return " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
