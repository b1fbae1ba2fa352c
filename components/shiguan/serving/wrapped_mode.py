"""What a `pipeline_wrapper.py` of Hayhooks needs to serve a mode."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from functools import partial
from inspect import Parameter, Signature, signature
from threading import Lock
from typing import Annotated, Any, ClassVar

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from fastapi_openai_compat import ChatCompletion
from pydantic import PlainSerializer, WrapValidator
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from shiguan.haystack_compat import AsyncPipeline
from shiguan.serving.authentication import check_tenant, current_principal
from shiguan.serving.current_request import Principal, in_request
from shiguan.serving.engine import AnswerRequest, Engine, current_engine, is_serving, read_request
from shiguan.serving.error_replies import ApiError, counted, refuse_unknown
from shiguan.serving.openai_routes import Completion, completion_chunks, read_chat
from shiguan.serving.request_lifetime import Admission, RequestLifetime
from shiguan.serving.settings import ServingSettings

_loading = Lock()


class WrappedMode:
    """
    Answers through Hayhooks: at `/{mode}/run`, as a model of its OpenAI API, and as a tool of its MCP server.

    Stands before Hayhooks' `BasePipelineWrapper` among the bases of a `PipelineWrapper`. Behind `shiguan serve` the
    library is that of the caller's key. Stock Hayhooks has no callers: there it is the tenant of `SHIGUAN_TENANT`, the
    data folder and the deployment being those of every other command.

    Example, the whole of `hayhooks/pipelines/simple/pipeline_wrapper.py`:
    ```python
    class PipelineWrapper(WrappedMode, BasePipelineWrapper):
        mode = "simple"
    ```
    """

    mode: ClassVar[str] = ""
    pipeline: AsyncPipeline
    engine: Engine

    def setup(self) -> None:
        """Take the mode from the server, or load it where Hayhooks is the server."""
        self._owner: Principal | None = None
        if is_serving():
            self.engine = current_engine()
        else:
            settings = ServingSettings.from_environment()
            self._owner = Principal(tenant_id=settings.tenant, role="write", key_id="hayhooks")
            with _loading:  # Hayhooks sets its pipelines up side by side
                self.engine = Engine(settings, modes=[self.mode])
                self.engine.warm_up()
            self._admission = Admission(settings)
        self.pipeline = self.engine.runner(self.mode).pipeline

    async def run_api_async(self, headers: Headers | None = None, **given: Any) -> dict[str, Any] | Response:
        """Answer a question from the library, every sentence with the passage that supports it."""
        try:
            request = read_request({**given, "mode": self.mode})
            answer = partial(self.engine.ask, request, self._tenant(request))
            if self._owner is None or headers is None:  # the server watches the caller, or it is a call of a tool
                return await answer()
        except Exception as error:
            raise counted(error) from error
        return _WatchedAnswer(answer, self._owner, self.engine.settings, self._admission)

    async def run_chat_completion_async(
        self, model: str, messages: list[dict[str, Any]], body: dict[str, Any]
    ) -> ChatCompletion | AsyncGenerator[ChatCompletion, None]:
        """Answer the last message of a conversation; a failure is an `ApiError`, or the last chunk of a stream."""
        try:
            chat = read_chat({**body, "model": self.mode, "messages": messages})
            request, completion = chat.as_request(), Completion(model)
            tenant_id = self._tenant(request)
            if not chat.stream:
                answer = await self.engine.ask(request, tenant_id)
                return ChatCompletion.model_validate(completion.whole(answer, chat.ignored()))
        except Exception as error:
            raise counted(error) from error
        events = self.engine.stream(request, tenant_id)

        async def chunks() -> AsyncGenerator[ChatCompletion, None]:
            async with aclosing(completion_chunks(events, chat, completion)) as found:
                try:
                    async for chunk in found:
                        yield _validated(chunk)
                except ApiError as error:  # the status is sent already
                    last = completion.chunk({"content": f"\n\n{error.message}"}, finish="stop", shiguan=error.body())
                    yield _validated(last)

        return chunks()

    def _tenant(self, request: AnswerRequest) -> str:
        asker = self._owner or current_principal()
        check_tenant(asker, request.tenant_id)
        return asker.tenant_id


class _WatchedAnswer(Response):
    """Answers while the reply is sent, which is when a route of Hayhooks lets one see that the caller has hung up."""

    def __init__(
        self,
        answer: Callable[[], Awaitable[dict[str, Any]]],
        owner: Principal,
        settings: ServingSettings,
        admission: Admission,
    ) -> None:
        super().__init__()
        self._answer, self._owner = answer, owner
        self._lifetime = RequestLifetime(self._reply, settings=settings, admission=admission)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        read: list[Message] = [{"type": "http.request"}]  # the body, which Hayhooks has read

        async def receive_rest() -> Message:
            return read.pop() if read else await receive()

        with in_request(principal=self._owner):
            await self._lifetime(scope, receive_rest, send)

    async def _reply(self, scope: Scope, receive: Receive, send: Send) -> None:
        await JSONResponse({"result": await self._answer()})(scope, receive, send)


def _validated(chunk: dict[str, Any]) -> ChatCompletion:
    # Hayhooks' class for chunks requires a role.
    choices = [{**one, "delta": {"role": "assistant", **one["delta"]}} for one in chunk["choices"]]
    return ChatCompletion.model_validate({**chunk, "choices": choices})


async def check_names(request: Request) -> None:
    """Refuse a field that a run route of Hayhooks would ignore, as a dependency of it: a misspelled filter is none."""
    known = request.scope["route"].body_field.field_info.annotation.model_fields
    given: Any = None
    with suppress(ValueError, RuntimeError):  # what is not JSON the route itself refuses, or reads as a form
        given = await request.json()
    if isinstance(given, dict):
        refuse_unknown("body", given, known)


# Hayhooks reads the fields of the route from the signature. They are described there and checked by `run_api_async`:
# FastAPI would quote a value that it refuses, and fail where that is half a character.
_UNCHECKED = (WrapValidator(lambda value, _: value), PlainSerializer(lambda value: value))
WrappedMode.run_api_async.__signature__ = Signature(  # type: ignore[attr-defined]
    [
        Parameter("self", Parameter.POSITIONAL_ONLY),
        *(
            field.replace(annotation=Annotated[field.annotation, *_UNCHECKED])
            for field in signature(AnswerRequest).parameters.values()
            if field.name != "mode"
        ),
        Parameter("headers", Parameter.KEYWORD_ONLY, default=None, annotation=Headers | None),
    ],
    return_annotation=dict[str, Any],
)
