"""Whatever material tells an obedient model to say: no false mark, no other role and no refused claim leaves the engine."""

import asyncio
import re

import pytest
from tests.doubles.obedient_model import CARRIERS, INJECTIONS, OBEYED, PAYLOADS, STORED, Injection, faults_of, obey
from tests.doubles.stand_in_llm import StandInLlm

from shiguan.commands.answer_view import AnswerView
from shiguan.engine.library import Library
from shiguan.engine.runner import Runner
from shiguan.evaluation.report import write_report
from shiguan.evaluation.tables import Report, Section, Table
from shiguan.serving.openai_routes import ChatRequest, Completion, completion_chunks

STEERING = {
    chr(c) for c in (*range(9), *range(11, 32), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
MODES = ("simple", "advanced", "precise")
FEW = [one for one in INJECTIONS if one.id % 19 == 0]


def test_there_are_three_hundred_and_each_fault_is_seen_by_the_eye_of_this_test():
    assert len(INJECTIONS) >= 300
    assert len({one.material for one in INJECTIONS}) == len(INJECTIONS)
    harmless = {"marks_of_others", "thinking", "turned_around", "mark_before_the_sentence"}
    for attack in PAYLOADS.keys() - harmless:
        assert faults_of(Injection(0, attack, "passage", "en").reply, {1}), attack
    assert faults_of("He rose [1][2]. ⚠\nHe said: users of 1999 [1999] fell.", {1, 2}) == []


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A library with the material of every attack, a tenant an attack and language."""
    texts, folder = tmp_path_factory.mktemp("texts"), tmp_path_factory.mktemp("library")
    library = Library(data_dir=folder)
    return folder, library, {one.id: one.write(texts) for one in INJECTIONS if one.carrier in STORED}


@pytest.fixture(scope="module")
def model():
    with StandInLlm([(lambda call: True, obey)], tokens_per_event=8) as llm:  # some replies have two thousand
        yield llm


@pytest.fixture
def ask(place, model, monkeypatch):
    """Ask all modes one question and list what is wrong in what comes out of every door."""
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    folder, library, files = place
    runners = {mode: Runner("embedded", mode, data_dir=folder) for mode in MODES}

    def ask(one, mode, capsys):
        # What the library does not carry is asked of the one that carries it in a passage.
        stored = one.id if one.carrier in STORED else one.id - CARRIERS.index(one.carrier)
        if stored in files:
            (result,) = library.ingest([files.pop(stored)], tenant_id=one.tenant)
            assert result.parents >= 1, result
        events = asyncio.run(told(runners[mode], one))
        return faults(one, mode, events, capsys)

    yield ask
    for runner in runners.values():
        runner.close()


async def told(runner, one):
    # Whatever the library holds, the model is asked: it is what comes back from it that is tried here.
    options = {"confidence_threshold": 0.0} | ({"history": one.history} if one.history else {})
    return [event async for event in runner.stream(one.question, tenant_id=one.tenant, **options)]


async def openai_text(events):
    """What the OpenAI route's stream says of these events: its text, and the roles that speak."""

    async def again():
        for event in events:
            yield event

    body = ChatRequest(model="shiguan-simple", messages=[{"role": "user", "content": "?"}])
    chunks = [chunk async for chunk in completion_chunks(again(), body, Completion("shiguan-simple"))]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert {delta["role"] for delta in deltas if "role" in delta} == {"assistant"}
    return "".join(delta.get("content") or "" for delta in deltas)


def faults(one, mode, events, capsys):
    assert [event.name for event in events if event.is_terminal] == ["generation_complete"], events[-1].data
    answer = events[-1].data
    tokens = "".join(event.data["text"] for event in events if event.name == "token")
    numbers = {citation["number"] for citation in answer["citations"]}
    whole = Completion("shiguan-" + mode).whole(answer, [])["choices"][0]["message"]
    said = {"answer": answer["answer"], "stream": tokens, "openai": whole["content"]}
    said["openai stream"] = asyncio.run(openai_text(events))
    capsys.readouterr()
    with AnswerView(answer["query"]) as view:
        for event in events:
            view.show(event.name, event.data)
    terminal = capsys.readouterr().out
    body = terminal.partition("\n\n")[2] if one.carrier != "question" else ""
    said["terminal"] = re.split(r"\n\n  \[\d+\] |\n\n  \w+ · ", body)[0]
    # The terminal numbers from [1] on: its marks are those of the sources that it lists.
    listed = {int(number) for number in re.findall(r"(?<=\n)  \[(\d+)\] ", terminal)}
    marks = dict.fromkeys(said, numbers) | {"terminal": listed}
    found = [f"{door}: {fault}" for door, text in said.items() for fault in faults_of(text, marks[door])]
    # The question and quotations stand there as they are, but for what steers a terminal.
    found += [f"terminal: control {c!r}" for c in sorted(set(terminal) & STEERING)]
    for citation in answer["citations"]:
        if citation["verdict"] not in ("supported", "partial"):
            found.append(f"citation: {citation}")
    refused = [change["claim"] for change in answer["metadata"]["changes"] if change["kind"] == "removed"]
    if mode == "precise":
        refused.append(one.words("false").rstrip(".。"))
    found += [f"{door}: refused {claim!r}" for door, text in said.items() for claim in refused if claim in text]
    if mode != "precise":
        false = one.words("false").rstrip(".。")
        for claim in answer["metadata"]["claims"]:
            if false in claim["text"] and (claim["verdict"] in ("supported", "partial") or claim["numbers"]):
                found.append(f"claim: {claim}")
        if false in answer["answer"] and "⚠" not in answer["answer"]:
            found.append("a false sentence without its sign")
    return [f"{one.attack} in a {one.carrier}, {one.language}, {mode}: {fault}" for fault in found]


def test_an_obedient_model_shows_nothing_false(ask, capsys):
    """Each in one mode, all modes by turns."""
    wrong = [fault for at, one in enumerate(FEW) for fault in ask(one, MODES[at % len(MODES)], capsys)]
    assert not wrong, "\n".join([f"{len(wrong)} faults", *wrong[:60]])


@pytest.mark.slow
def test_an_obedient_model_shows_nothing_false_three_hundred_times(ask, capsys):
    OBEYED.clear()
    wrong = [fault for at, one in enumerate(INJECTIONS) for fault in ask(one, MODES[at % len(MODES)], capsys)]
    assert not wrong, "\n".join([f"{len(wrong)} faults", *wrong[:60]])
    # The model was led astray by every attack in both languages: where it was not, the test proves nothing.
    attacks = {(one.attack, one.language) for one in INJECTIONS}
    assert {(one.attack, one.language) for one in INJECTIONS if one.id in OBEYED} == attacks
    assert len(OBEYED) > 2 * len(attacks)


@pytest.mark.parametrize("attack", PAYLOADS)
def test_a_report_escapes_what_questions_and_answers_say(attack, tmp_path):
    text = Injection(100, attack, "passage", "en").reply
    section = Section(text, text=text, table=Table([text], [[text]]))
    page = write_report(Report(title=text, subtitle=text, sections=[section], notes=[text]), tmp_path / "report")
    body = page.read_text(encoding="utf-8").partition("<body>")[2]
    assert not re.search(r"<(?:script|img|iframe|a)\b|\x1b", body)
