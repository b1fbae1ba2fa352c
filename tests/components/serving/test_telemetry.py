"""Lines of the log say what failed and where, under the id of its request, and have no word of a question or answer."""

import io
import logging
import runpy

import pytest
from haystack.tracing.tracer import NullTracer, Tracer, enable_tracing, tracer
from tests.doubles.small_library import TENANT, TEXTS, small_library

from shiguan.engine.runner import Runner
from shiguan.errors import ConfigurationError
from shiguan.resources import resource_folder
from shiguan.serving.current_request import in_request
from shiguan.serving.settings import ServingSettings
from shiguan.serving.telemetry import write_logs
from shiguan.stores.embedded.shards import close_all_shards


@pytest.fixture
def server_log(monkeypatch, caplog):
    """Let all parts log as the server does, and keep what is written."""
    root, kept = logging.getLogger(), io.StringIO()
    monkeypatch.setattr(root, "handlers", [logging.StreamHandler(kept)])  # as the command line does
    caplog.set_level(logging.INFO)  # set as an attribute, loggers that were asked before would not notice
    write_logs()
    return kept


def test_a_whole_mode_leaves_no_text_of_its_library(server_log, tmp_path, stand_in_llm, monkeypatch):
    stand_in_llm.default = "Diwu Qi set the salt monopoly up in 758 [1]."
    monkeypatch.setenv("OPENAI_BASE_URL", stand_in_llm.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    with Runner("embedded", "simple", data_dir=small_library(tmp_path)) as runner:
        answer = runner.ask("Who set up the salt monopoly?", tenant_id=TENANT)
    close_all_shards()
    assert "Diwu Qi" in answer["answer"]
    written = server_log.getvalue()
    assert "generator" in written
    for words in ("salt", "Diwu", "monopoly", "sk-x", TENANT + '"', *(text[:12] for text in TEXTS.values())):
        assert words not in written, words


def test_the_server_hands_no_tracer_what_its_modes_are_asked(tmp_path):
    class Listener(Tracer):
        trace = current_span = None

    app = runpy.run_path(str(resource_folder("hayhooks") / "app.py"))
    enable_tracing(Listener())
    with pytest.raises(ConfigurationError):
        app["create"](ServingSettings(deployment="nowhere", data_dir=tmp_path))
    assert isinstance(tracer.actual_tracer, NullTracer)


def test_an_error_is_a_type_and_a_place(server_log):
    log = logging.getLogger("asyncio")
    try:
        raise ValueError("the words of a question")
    except ValueError as error:
        log.exception("A task failed\nfuture: <Task exception=%r>", error)
    (line,) = server_log.getvalue().splitlines()
    assert line.startswith("ERROR:asyncio:A task failed: ValueError at test_telemetry.py:")
    assert "question" not in line


def test_lines_end_with_the_id_and_cannot_steer_a_terminal(server_log):
    with in_request(id="a1b2c3d4"):
        logging.getLogger("shiguan.x").warning("a\x1b[31mb")
        logging.getLogger("shiguan.x").warning("Request a1b2c3d4 failed")
    logging.getLogger("shiguan.x").warning("no request")
    assert server_log.getvalue().splitlines() == [
        "WARNING:shiguan.x:ab [request a1b2c3d4]",
        "WARNING:shiguan.x:Request a1b2c3d4 failed",
        "WARNING:shiguan.x:no request",
    ]


def test_handlers_of_others_stay(server_log):
    theirs = logging.NullHandler()
    logging.getLogger().addHandler(theirs)
    write_logs()
    assert (theirs in logging.getLogger().handlers, theirs.formatter) == (True, None)


def test_hayhooks_writes_where_it_failed_and_no_values(capsys, monkeypatch):
    from loguru import logger

    monkeypatch.setenv("HAYHOOKS_LOG_LEVEL", "WARNING")
    runpy.run_path(str(resource_folder("hayhooks") / "app.py"))["_log_without_values"]()
    try:
        logger.warning("deployed {}", "simple")
        try:
            raise KeyError("the words of a question")
        except KeyError:
            logger.exception("failed: the words of a question")
    finally:
        logger.remove()
    deployed, failed = capsys.readouterr().err.splitlines()
    assert deployed.endswith("| deployed simple")
    assert failed.endswith("KeyError")
    assert "question" not in failed
