"""Traces have names, sizes and times of everything that ran, and no word of a question, a passage or an answer."""

import json
import logging
import runpy

import pytest
from haystack import logging as haystack_logging
from haystack.tracing.tracer import NullTracer, tracer
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.doubles.fake_modes import PLANS, STAGES, TEXT, Plan, fake_runner
from tests.doubles.small_library import TENANT, TEXTS, small_library

from shiguan.engine.runner import Runner
from shiguan.errors import AnswerError
from shiguan.resources import resource_folder
from shiguan.serving.telemetry import TextlessTracer, current_request, in_request, traces, write_logs
from shiguan.stores.embedded.shards import close_all_shards

QUESTION = "Where did An Lushan rise, asks the emperor?"


class Collector(InMemorySpanExporter):
    """Keeps what it got when the server ends."""

    def shutdown(self) -> None:
        pass

    @property
    def everything(self):
        """All that would leave the machine, as one text."""
        return " ".join(span.to_json() for span in self.get_finished_spans())

    def spans(self, name):
        return [span for span in self.get_finished_spans() if span.name == name]

    def stages(self):
        return {span.attributes["haystack.component.name"]: span for span in self.spans("haystack.component.run")}


@pytest.fixture(autouse=True)
def contents_wanted(monkeypatch):
    """Somebody has told Haystack to trace contents; and each test starts without a tracer."""
    monkeypatch.setattr(tracer, "is_content_tracing_enabled", True)
    monkeypatch.setattr(tracer, "actual_tracer", NullTracer())


@pytest.fixture
def collector():
    return Collector()


async def test_each_stage_has_a_span_with_sizes_and_no_text(collector):
    with traces(True, collector):
        await fake_runner(graded=True).ask_async(QUESTION, tenant_id="t")
    stages = collector.stages()
    assert list(stages) == STAGES
    assert stages["context"].attributes["haystack.component.input.query.size"] == len(QUESTION)
    assert stages["context"].attributes["haystack.component.input.documents.size"] == 1
    assert stages["generator"].attributes["haystack.component.output.replies.size"] == 1
    assert all(span.end_time > span.start_time for span in stages.values())
    assert "Lushan" not in collector.everything
    assert "Luoyang" in TEXT
    assert "Luoyang" not in collector.everything


async def test_a_failure_is_told_by_its_type_and_not_by_its_message(collector):
    PLANS[QUESTION] = Plan("generator", lambda: ValueError("the words of a document"))
    with traces(True, collector), pytest.raises(AnswerError):
        await fake_runner(graded=False).ask_async(QUESTION, tenant_id="t")
    del PLANS[QUESTION]
    span = collector.stages()["generator"]
    assert span.attributes["error.type"] == "ValueError"
    assert not span.status.is_ok
    assert "the words of a document" not in collector.everything


async def test_a_request_spans_its_stages_and_has_its_id_and_route(collector, gated):
    made = gated()
    with traces(True, collector):
        call = await made.call("/fail/bug?query=Luoyang").done()
        asked = await made.call(
            "/ask", body=b'{"query": "Luoyang"}', headers={"Content-Type": "application/json"}
        ).done()
    failed, answered = collector.spans("shiguan.request")
    assert failed.attributes["shiguan.request_id"] == call.headers["x-request-id"]
    assert failed.attributes["http.route"] == "/fail/{kind}"
    assert failed.attributes["http.response.status_code"] == call.status == 500
    assert answered.attributes["http.response.status_code"] == asked.status == 200
    assert "Luoyang" not in collector.everything
    assert "the text of a document" not in collector.everything


def test_a_whole_mode_leaves_no_text_of_its_library(collector, tmp_path, stand_in_llm, monkeypatch):
    stand_in_llm.default = "Diwu Qi set the salt monopoly up in 758 [1]."
    for name, value in (("BASE_URL", stand_in_llm.url), ("API_KEY", "sk-x"), ("MODEL", "stand-in")):
        monkeypatch.setenv(f"OPENAI_{name}", value)
    data = small_library(tmp_path)
    question = "Who set up the salt monopoly?"
    with traces(True, collector), Runner("embedded", "simple", data_dir=data) as runner:
        answer = runner.ask(question, tenant_id=TENANT)
    close_all_shards()
    assert "Diwu Qi" in answer["answer"]
    assert len(collector.stages()) > 5
    values = json.dumps([dict(span.attributes) for span in collector.get_finished_spans()], ensure_ascii=False)
    for words in ("salt", "Diwu", "monopoly", "sk-x", TENANT + '"', *(text[:12] for text in TEXTS.values())):
        assert words not in values, words


def test_what_was_there_before_is_there_after(collector):
    before = TextlessTracer(NullTracer())
    tracer.actual_tracer = before
    with traces(False, collector):
        assert tracer.actual_tracer is before
    with traces(True, collector):
        assert isinstance(tracer.actual_tracer, TextlessTracer)
    assert tracer.actual_tracer is before


def test_a_tracer_of_somebody_else_stays_and_hears_no_text(collector):
    with traces(True, collector):
        theirs = tracer.actual_tracer.inner
        tracer.actual_tracer = theirs
        with traces(False), tracer.trace("run", tags={"haystack.pipeline.input_data": QUESTION, "n": 3}):
            pass
        assert tracer.actual_tracer is theirs
    assert dict(collector.spans("run")[0].attributes) == {"n": 3}


@pytest.fixture
def written(capsys):
    """Let all parts log in a form; gives what is written."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    root.addHandler(logging.StreamHandler())  # as the command line does

    def begin(form):
        write_logs(form)
        root.setLevel(logging.DEBUG)

        def lines():
            return capsys.readouterr().err.splitlines()

        return lines

    yield begin
    root.handlers[:] = before
    root.setLevel(level)


def test_a_record_is_one_line_of_json(written):
    lines = written("json")
    with in_request(id="a1b2c3d4"):
        haystack_logging.getLogger("shiguan.x").warning("Two\nlines of {who}", who="史官")
    logging.getLogger("elsewhere").info("no %s", "request")
    first, second = map(json.loads, lines())
    time = first.pop("time")
    assert time.endswith("+00:00")
    assert first == {
        "level": "WARNING",
        "logger": "shiguan.x",
        "message": "Two\nlines of 史官",
        "request_id": "a1b2c3d4",
    }
    assert (second["message"], second["request_id"]) == ("no request", None)


def test_json_has_neither_messages_of_errors_nor_debugging(written):
    lines = written("json")
    log = logging.getLogger("asyncio")
    log.debug("the words of a question")
    try:
        raise ValueError("the words of a question")
    except ValueError as error:
        log.exception("A task failed\nfuture: <Task exception=%r>", error)
    (line,) = map(json.loads, lines())
    assert line["message"] == "A task failed"
    assert line["error"]["type"] == "ValueError"
    assert line["error"]["place"].startswith("test_telemetry.py:")
    assert "question" not in json.dumps(line)


async def test_what_fails_in_a_request_is_logged_under_its_id(written, gated):
    lines = written("json")
    made = gated()
    call = await made.call("/fail/bug", headers={"X-Request-ID": "follow-me-1"}).done()
    assert call.error["request_id"] == "follow-me-1"
    (line,) = [entry for entry in map(json.loads, lines()) if entry["logger"].startswith("shiguan")]
    assert line["request_id"] == "follow-me-1"
    assert line["level"] == "ERROR"
    assert "RuntimeError" in line["message"]
    assert "the text of a document" not in json.dumps(line)
    assert current_request().id is None


def test_lines_for_people_end_with_the_id_and_cannot_steer_a_terminal(written):
    lines = written("text")
    with in_request(id="a1b2c3d4"):
        logging.getLogger("shiguan.x").warning("a\x1b[31mb")
        logging.getLogger("shiguan.x").warning("Request a1b2c3d4 failed")
    logging.getLogger("shiguan.x").warning("no request")
    assert lines() == [
        "WARNING:shiguan.x:ab [request a1b2c3d4]",
        "WARNING:shiguan.x:Request a1b2c3d4 failed",
        "WARNING:shiguan.x:no request",
    ]


def test_handlers_of_others_stay(written):
    theirs = logging.NullHandler()
    logging.getLogger().addHandler(theirs)
    written("json")
    written("json")
    root = logging.getLogger().handlers
    assert theirs in root
    assert len([handler for handler in root if type(handler) is logging.StreamHandler]) == 1


def test_hayhooks_lines_have_the_same_form(written, monkeypatch):
    from loguru import logger

    lines = written("json")
    monkeypatch.setenv("HAYHOOKS_LOG_LEVEL", "WARNING")
    runpy.run_path(str(resource_folder("hayhooks") / "app.py"))["_log_without_values"]("json")
    try:
        logger.warning("deployed {}", "simple")
        try:
            raise KeyError("the words of a question")
        except KeyError:
            logger.exception("failed: the words of a question")
    finally:
        logger.remove()
    deployed, failed = map(json.loads, lines())
    assert (deployed["message"], deployed["level"], deployed["logger"]) == ("deployed simple", "WARNING", __name__)
    assert failed["error"]["type"] == "KeyError"
    assert "question" not in json.dumps(failed)


def test_without_a_handler_of_ours_text_goes_where_it_went(monkeypatch):
    theirs = [logging.NullHandler()]
    monkeypatch.setattr(logging.getLogger(), "handlers", theirs)
    write_logs("text")
    assert logging.getLogger().handlers is theirs
