"""Streams of real servers, over real HTTP: what is read from them, and what happens where they break off."""

import asyncio
import json
import select
import threading
from dataclasses import replace

import openai
import pytest
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.generators.utils import _serialize_object
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.utils import Secret
from tests.doubles.local_server import LocalHandler, LocalServer

from shiguan.errors import AnswerError
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator
from shiguan.llm.streaming_chat_generator import StreamingChatGenerator

pytestmark = pytest.mark.usefixtures("waits")

PROMPT = [ChatMessage.from_user("Who took Caizhou?")]
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
DONE = b"data: [DONE]\n\n"
CUT, SILENCE = object(), object()
"""In the place of a part: the connection is closed without an end; nothing comes until the client leaves."""


def event(delta=None, finish=None, **more):
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish, "logprobs": None}
    body = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice], **more}
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n".encode()


def calling(index, **function):
    named = {"id": f"call-{index}", "type": "function"} if "name" in function else {}
    return event({"tool_calls": [{"index": index, **named, "function": function}]})


ROLE = event({"role": "assistant", "content": ""})
TEXT = [event({"content": "Li Su "}), event({"content": "took it."})]
END = event(finish="stop")
COUNTED = event(choices=[], usage=USAGE)
WHOLE = [ROLE, *TEXT, END, COUNTED, DONE]


class Streamer(LocalServer):
    """Serves one list of parts after the other, the last one again and again, each part as a chunk of HTTP."""

    def __init__(self):
        super().__init__(StreamHandler)
        self.streams, self.kind = [WHOLE], "text/event-stream"
        self.calls = 0
        self.bodies = []
        self.left = threading.Event()


class StreamHandler(LocalHandler):
    def do_POST(self):
        streamer = self.server
        streamer.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        parts = streamer.streams[min(streamer.calls, len(streamer.streams) - 1)]
        streamer.calls += 1
        self.send_response(200)
        self.send_header("Content-Type", streamer.kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in parts:
            if part is CUT:
                self.close_connection = True
                return
            if part is SILENCE:
                select.select([self.connection], [], [], 30)
                self.close_connection = True
                streamer.left.set()
                return
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


@pytest.fixture
def streamer(monkeypatch):
    with Streamer() as serving:
        monkeypatch.setenv("OPENAI_BASE_URL", serving.url)
        yield serving


async def read(kind, url, prompt=PROMPT, **more):
    """Ask a generator of this class; return its reply and the chunks that it passed on."""
    made = kind(api_key=Secret.from_token("any"), model="m", api_base_url=url, max_retries=0, timeout=5, **more)
    chunks = []

    async def listen(chunk):
        chunks.append(chunk)

    try:
        (reply,) = (await made.run_async(prompt, listen))["replies"]
    finally:
        await made.async_client.close()
    return reply, chunks


def comparable(chunk):
    """Leave out the time, the class and fields without a value, and make plain objects of the client's."""
    meta = {name: value for name, value in chunk.meta.items() if name != "received_at"}
    return replace(chunk, meta=without_nulls(_serialize_object(meta)), component_info=None)


def without_nulls(value):
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


STREAMS = {
    "text": WHOLE,
    "in_one_part": [b"".join(WHOLE)],
    "byte_by_byte": [bytes([one]) for one in b"".join([ROLE, event({"content": "李愬取蔡州。"}), END, DONE])],
    "crlf": [part.replace(b"\n", b"\r\n") for part in WHOLE],
    "comments_names_and_numbers": [b": busy\n\n", ROLE, b"retry: 5\n: busy\nevent: part\nid: 7\n" + TEXT[0], *WHOLE[2:]],
    "without_space": [part.replace(b"data: ", b"data:") for part in WHOLE],
    "without_done": WHOLE[:-1],
    "without_usage": [ROLE, *TEXT, END, DONE],
    "usage_beside_the_end": [ROLE, *TEXT, event(finish="stop", usage=USAGE), DONE],
    "usage_in_every_part": [event({"content": "Li Su."}, usage=USAGE), event(finish="stop", usage=USAGE), DONE],
    "words_about_the_prompt_first": [event(choices=[], prompt_filter_results=[{"prompt_index": 0}]), *WHOLE],
    "role_in_every_part": [event({"role": "assistant", "content": "Li Su."}), END, DONE],
    "nulls": [ROLE, event({"content": "Li Su.", "tool_calls": None}), event({"content": None}, "stop"), DONE],
    "too_long": [ROLE, *TEXT, event(finish="length"), DONE],
    "filtered": [ROLE, event(finish="content_filter"), DONE],
    "tools": [
        event({"role": "assistant", "content": None}),
        calling(0, name="search", arguments=""),
        calling(0, arguments='{"query": '),
        calling(0, arguments='"Caizhou"}'),
        calling(1, name="look_up", arguments="{}"),
        event(finish="tool_calls"),
        COUNTED,
        DONE,
    ],
    "tools_in_one_event": [
        event({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "search", "arguments": "{}"}},
                              {"index": 1, "id": "b", "function": {"name": "look_up", "arguments": "no JSON"}}]}),
        event(finish="function_call"),
        DONE,
    ],
    "logprobs": [
        ROLE,
        event(choices=[{"index": 0, "delta": {"content": "Li Su."}, "finish_reason": "stop",
                        "logprobs": {"content": [{"token": "Li", "logprob": -0.5, "bytes": None, "top_logprobs": []}],
                                     "refusal": None}}]),
        DONE,
    ],
}  # fmt: skip


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.2, "extra_body": {"top_k": 5}}])
async def test_a_request_is_what_the_client_would_send(streamer, settings):
    call = ToolCall(tool_name="search", arguments={"query": "Caizhou"}, id="call-0")
    called = [ChatMessage.from_assistant(tool_calls=[call]), ChatMessage.from_tool("李愬", origin=call)]
    prompt = [ChatMessage.from_system("Cite."), *called, *PROMPT]
    for kind in (OpenAIChatGenerator, StreamingChatGenerator):
        await read(kind, streamer.url, prompt, generation_kwargs=settings)
    theirs, ours = streamer.bodies
    assert ours == theirs
    assert len(json.loads(ours)["messages"]) == 4


@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream_is_read_as_haystack_reads_it(streamer, name):
    streamer.streams = [STREAMS[name]]
    (theirs, their_chunks), (ours, our_chunks) = [
        await read(kind, streamer.url) for kind in (OpenAIChatGenerator, StreamingChatGenerator)
    ]
    assert [comparable(chunk) for chunk in our_chunks] == [comparable(chunk) for chunk in their_chunks]
    assert (ours.text, ours.tool_calls) == (theirs.text, theirs.tool_calls)
    assert ours.meta.keys() == theirs.meta.keys()
    started = {"completion_start_time"}
    meta, expected = ({key: reply.meta[key] for key in reply.meta.keys() - started} for reply in (ours, theirs))
    assert without_nulls(meta) == without_nulls(expected)


async def test_the_client_builds_no_object_of_a_token(streamer, monkeypatch):
    monkeypatch.setattr("openai._base_client.construct_type", lambda **_: pytest.fail("an object was built"))
    reply, chunks = await read(StreamingChatGenerator, streamer.url)
    assert (reply.text, len(chunks)) == ("Li Su took it.", 5)


async def test_a_stream_that_a_tracer_has_wrapped_is_read_through_the_tracer(streamer, monkeypatch):
    seen = []

    class Wrapped:
        def __init__(self, stream):
            self.stream = stream

        async def __aiter__(self):
            async for chunk in self.stream:
                seen.append(chunk)
                yield chunk

    create = openai.resources.chat.AsyncCompletions.create

    async def traced(self, **given):
        return Wrapped(await create(self, **given))

    monkeypatch.setattr(openai.resources.chat.AsyncCompletions, "create", traced)
    reply, _ = await read(StreamingChatGenerator, streamer.url)
    assert (reply.text, len(seen)) == ("Li Su took it.", 5)


THOUGHT_AND_TEXT = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "Was it Li Su?"}]},
    {"type": "text", "text": "Li Su took it."},
]
OTHER_WORDS = {
    "ends_with_eos": [ROLE, *TEXT, event(finish="eos"), DONE],
    "a_message_in_place_of_a_delta": [
        event(choices=[{"index": 0, "message": {"role": "assistant", "content": "Li Su took it."}, "finish_reason": "stop"}])
    ],
    "events_of_other_kinds": [b'event: ping\ndata: {"type": "ping"}\n\n', ROLE, *TEXT, END, event(choices=None), DONE],
    "a_second_reply": [ROLE, *TEXT, event(choices=[{"index": 1, "delta": {"content": "No."}}]), END, DONE],
    "a_refusal": [ROLE, event({"content": None, "refusal": "Li Su took it."}), END, DONE],
    "parts_of_thought_and_text": [
        ROLE, event({"content": THOUGHT_AND_TEXT[:1]}), event({"content": THOUGHT_AND_TEXT[1:]}), END, DONE,
    ],
    "no_delta_at_the_end": [ROLE, *TEXT, event(choices=[{"index": "0", "delta": None, "finish_reason": "STOP"}])],
}  # fmt: skip


def whole(content):
    """A reply that is no stream."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": USAGE}
    return [json.dumps(body).encode()]


@pytest.mark.parametrize("name", OTHER_WORDS)
async def test_a_stream_of_another_server_is_read(streamer, name):
    streamer.streams = [OTHER_WORDS[name]]
    reply, chunks = await read(StreamingChatGenerator, streamer.url)
    assert (reply.text, reply.meta["finish_reason"]) == ("Li Su took it.", "stop")
    assert "".join(chunk.content for chunk in chunks) == "Li Su took it."


async def test_an_end_at_the_limit_is_told_in_one_word(streamer):
    streamer.streams = [[ROLE, *TEXT, event(finish="MAX_TOKENS"), DONE]]
    reply, _ = await read(StreamingChatGenerator, streamer.url)
    assert reply.meta["finish_reason"] == "length"


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
async def test_a_whole_reply_to_a_call_of_a_stream_is_read(streamer, kind):
    streamer.kind, streamer.streams = kind, [whole("Li Su took it.")]
    reply, chunks = await read(StreamingChatGenerator, streamer.url)
    assert (reply.text, reply.meta["finish_reason"]) == ("Li Su took it.", "stop")
    assert [chunk.content for chunk in chunks] == ["Li Su took it."]


@pytest.mark.parametrize(("error", "told"), [
    ({"message": "Insufficient credits", "code": 402}, "answered 402 for model"),
    ("model not loaded", "reported an error"),
])  # fmt: skip
def test_an_error_in_a_reply_that_began_well_is_told(streamer, error, told):
    streamer.kind, streamer.streams = "application/json", [[json.dumps({"error": error}).encode()]]
    heard = []
    result = ConfiguredChatGenerator().run(messages=PROMPT, streaming_callback=heard.append)
    assert (result["replies"], heard) == ([], [])
    assert told in result["warnings"][0]


def test_a_stream_that_ends_before_its_first_word_is_asked_for_again(streamer):
    streamer.streams = [[ROLE, refusal()], WHOLE]
    heard = []
    result = ConfiguredChatGenerator().run(messages=PROMPT, streaming_callback=heard.append)
    assert result["replies"][0].text == "".join(chunk.content for chunk in heard) == "Li Su took it."


def refusal(message="The model is overloaded."):
    return f"data: {json.dumps({'error': {'message': message, 'type': 'server_error'}})}\n\n".encode()


UNFIT = {
    "cut_json": b'data: {"id": "cut\n\n',
    "no_json": b"data: busy\n\n",
    "no_object": b"data: 5\n\n",
    "null": b"data: null\n\n",
    "choices_are_null": event(choices=None),
    "choices_are_a_number": event(choices=5),
    "choice_is_a_text": event(choices=["Li Su"]),
    "two_choices": event(choices=[{"index": 0, "delta": {}}, {"index": 1, "delta": {}}]),
    "delta_is_a_list": event(choices=[{"index": 0, "delta": [1]}]),
    "text_is_a_list": event({"content": ["Li Su"]}),
    "call_without_a_number": event({"tool_calls": [{"id": "a", "function": {"name": "search"}}]}),
    "arguments_are_an_object": calling(0, name="search", arguments={"query": "Caizhou"}),
    "error": refusal(),
}


EARLY = {
    "nothing": [],
    "no_end": [ROLE, TEXT[0]],
    "no_reason_to_end": [ROLE, TEXT[0], DONE],
    "cut": [ROLE, TEXT[0], CUT],
    "cut_at_once": [CUT],
    **{name: [ROLE, unfit] for name, unfit in UNFIT.items()},
}


@pytest.mark.parametrize("parts", EARLY.values(), ids=EARLY)
def test_a_stream_that_ends_too_early_or_cannot_be_read_is_asked_for_again(streamer, parts):
    streamer.streams = [parts, WHOLE]
    assert ConfiguredChatGenerator().run(messages=PROMPT)["replies"][0].text == "Li Su took it."
    assert streamer.calls == 2


@pytest.mark.parametrize("rest", [CUT, refusal(), UNFIT["cut_json"], UNFIT["text_is_a_list"], SILENCE])
def test_after_the_first_token_a_listener_gets_an_error_and_no_second_answer(streamer, rest, monkeypatch):
    monkeypatch.setenv("OPENAI_TIMEOUT", "0.3")
    streamer.streams = [[ROLE, TEXT[0], rest], WHOLE]
    heard = []
    with pytest.raises(AnswerError, match="broke off in the middle of the answer"):
        ConfiguredChatGenerator().run(messages=PROMPT, streaming_callback=heard.append)
    assert "".join(chunk.content for chunk in heard) == "Li Su "
    assert streamer.calls == 1


async def test_an_error_within_the_stream_keeps_the_words_of_the_endpoint(streamer):
    streamer.streams = [[ROLE, refusal("The model is overloaded.")]]
    with pytest.raises(openai.APIError, match="The model is overloaded"):
        await read(StreamingChatGenerator, streamer.url)


def test_silence_without_a_listener_is_a_timeout_and_not_asked_again(streamer, monkeypatch):
    monkeypatch.setenv("OPENAI_TIMEOUT", "0.3")
    streamer.streams = [[ROLE, TEXT[0], SILENCE]]
    told = ConfiguredChatGenerator().run(messages=PROMPT)
    assert (told["replies"], streamer.calls) == ([], 1)
    assert "did not answer in time" in told["warnings"][0]
    assert streamer.left.wait(10)


async def test_whoever_is_cancelled_hangs_up(streamer):
    streamer.streams = [[ROLE, TEXT[0], SILENCE]]
    heard = asyncio.Event()

    async def listen(chunk):
        if chunk.content:
            heard.set()

    asking = asyncio.create_task(ConfiguredChatGenerator().run_async(PROMPT, listen))
    await heard.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await asyncio.to_thread(streamer.left.wait, 10)


async def test_a_listener_that_fails_hangs_up(streamer):
    streamer.streams = [[ROLE, TEXT[0], SILENCE]]

    async def listen(chunk):
        raise OSError("nobody listens")

    with pytest.raises(OSError, match="nobody listens"):
        await ConfiguredChatGenerator().run_async(PROMPT, listen)
    assert await asyncio.to_thread(streamer.left.wait, 10)


async def test_one_connection_serves_one_call_after_the_other(streamer, monkeypatch):
    opened = []
    accept = LocalServer.get_request

    def counted(self):
        opened.append(1)
        return accept(self)

    monkeypatch.setattr(LocalServer, "get_request", counted)
    component = ConfiguredChatGenerator()
    for _ in range(3):
        await component.run_async(PROMPT)
    assert (len(opened), streamer.calls) == (1, 3)


@pytest.mark.parametrize("content", ["Li Su took it.", THOUGHT_AND_TEXT])
async def test_a_whole_reply_in_parts_is_read_alike(streamer, content):
    streamer.kind, streamer.streams = "application/json", [whole(content)]
    generator = ConfiguredChatGenerator(generation_kwargs={"stream": False})
    (reply,) = (await generator.run_async(PROMPT))["replies"]
    assert reply.text == "Li Su took it."
