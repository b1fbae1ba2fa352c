import json
import subprocess
import sys

import pytest

from shiguan.cli import main

EVIL = """\
components:
  tenant_filter: {type: shiguan.retrieval.tenant_filter.TenantFilter}
  evil: {type: os.system}
inputs:
  tenant_id: [tenant_filter.tenant_id]
"""


@pytest.fixture
def evil(tmp_path):
    path = tmp_path / "evil.yml"
    path.write_text(EVIL, encoding="utf-8")
    return str(path)


def test_a_mode_and_a_deployment_are_found_by_name(capsys):
    assert main(["check", "embedded/simple"]) == 0
    assert capsys.readouterr().out == "embedded/simple: fine\n"
    assert main(["check", "embedded"]) == 0
    assert "6 of 6 files may be built." in capsys.readouterr().out


def test_a_refused_file_says_where_what_and_what_to_do(evil, capsys):
    assert main(["check", evil]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{evil}: refused for 1 reason"
    assert lines[2] == "  line 3  components.evil.type"
    assert lines[3] == "    The type `os.system` is not allowed: it is not on the list of allowed types."
    assert lines[4].startswith("    Expected a class of Shiguan's stages")
    assert any("--allow-type" in line for line in lines)


def test_programs_read_the_same_as_json(evil, capsys):
    assert main(["check", evil, "embedded/simple", "--json"]) == 2
    result = json.loads(capsys.readouterr().out)
    assert result["ok"] is False
    assert [file["ok"] for file in result["files"]] == [False, True]
    (finding,) = result["files"][0]["findings"]
    assert finding["check"] == "allowed_types"
    assert (finding["line"], finding["where"], finding["unsafe"]) == (3, "components.evil.type", True)


def test_an_allowed_type_is_printed_with_every_file(capsys):
    assert main(["check", "embedded/simple", "--allow-type", "mycompany.retrievers"]) == 0
    assert "Note: Types below mycompany.retrievers are allowed" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["embedded/huge", "huge.yml", "."])
def test_a_mode_or_file_that_is_not_there_is_refused(name, capsys):
    assert main(["check", name]) == 2
    told = "".join(capsys.readouterr())
    assert f"There is no pipeline file `{name}`. Expected a file, or one of embedded/read, " in told


def test_a_file_that_is_refused_for_its_text_does_not_wait_for_haystack(evil):
    code = (
        f"import sys; from shiguan.cli import main; code = main(['check', {evil!r}]); "
        "sys.exit(code - 2 or len({'torch', 'haystack'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
