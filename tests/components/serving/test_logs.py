"""Log lines: one JSON object a record, the request's id in each form, no texts."""

import json
import logging
import runpy

import pytest
from haystack import logging as haystack_logging

from shiguan.resources import resource_folder
from shiguan.serving.logs import current_request_id, log_handler, write_logs


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
    known = current_request_id.set("a1b2c3d4")
    haystack_logging.getLogger("shiguan.x").warning("Two\nlines of {who}", who="史官")
    current_request_id.reset(known)
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
    assert line["error"]["place"].startswith("test_logs.py:")
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
    assert current_request_id.get() is None


def test_lines_for_people_end_with_the_id_and_cannot_steer_a_terminal(written):
    lines = written("text")
    known = current_request_id.set("a1b2c3d4")
    logging.getLogger("shiguan.x").warning("a\x1b[31mb")
    logging.getLogger("shiguan.x").warning("Request a1b2c3d4 failed")
    current_request_id.reset(known)
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


def test_a_handler_of_json_lines_is_at_info():
    assert log_handler("json").level == logging.INFO
