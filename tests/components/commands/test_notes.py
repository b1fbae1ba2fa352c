"""`shiguan export` and `shiguan locate`, from a file and back."""

import errno
import json
import re

import pytest
from tests.doubles.epub_builder import EpubBuilder, chapter
from tests.doubles.small_library import TENANT

from shiguan.cli import main

PARAGRAPHS = [
    "The salt monopoly was set up by Diwu Qi in 758.",
    "Half of the state's income came from salt by 780, when Yang Yan proposed the two-tax reform.",
    "The wall of the capital was pulled down in 904.",
]


def book(path, *paragraphs):
    body = "".join(f'<p><span epub:type="pagebreak" title="{at}"/>{text}</p>' for at, text in enumerate(paragraphs, 63))
    path.write_bytes(EpubBuilder(title="Salt &amp; &lt;Iron&gt;", chapters={"ch1.xhtml": chapter(body)}).build())
    return path


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with a library of one book and the receipt of an answer from it."""
    folder = tmp_path_factory.mktemp("kept")
    place = ("--data-dir", str(folder / "data"), "--tenant", TENANT, "--json")
    assert main(["ingest", str(book(folder / "salt.epub", *PARAGRAPHS)), *place]) == 0
    assert main(["ask", "Who set up the salt monopoly?", "--receipt", str(folder / "answer.json"), *place]) == 0
    answer = json.loads((folder / "answer.json").read_text(encoding="utf-8"))["answer"]
    assert answer["citations"][0]["page"] == "63"
    return folder


@pytest.fixture
def data_dir(kept):
    return kept / "data"


@pytest.fixture
def receipt(kept):
    return kept / "answer.json"


def test_a_quotation_that_is_elsewhere_is_shown_once_with_the_reason_and_no_sentence_is_told(shiguan, tmp_path):
    draft = tmp_path / "draft.md"
    draft.write_text("《旧唐书》 says: “The wall of the capital was pulled down in 904.”", encoding="utf-8")
    code, out, _ = shiguan("verify", draft)
    assert (code, out.count("The wall of the capital was pulled down in 904")) == (0, 1)
    assert "why: it is elsewhere than the text says" in out
    draft.write_text("", encoding="utf-8")
    code, out, _ = shiguan("verify", draft)
    assert (code, "There is no sentence and no quotation in it." in out) == (0, True)


def test_an_answer_is_exported_in_every_form(receipt, tmp_path, shiguan):
    code, out, _ = shiguan("export", receipt)
    assert code == 0
    assert out.count("The salt monopoly was set up by Diwu Qi in 758") == 1
    assert re.search(r"(?m)^\[\^1\]: .*, p\. 63$", out)
    assert r"*Salt \& \<Iron\>*" in out
    for form in ("csl", "bibtex", "ris", "markdown", "docx", "annotations"):
        file = tmp_path / f"out.{form}"
        code, out, _ = shiguan("export", receipt, "--form", form, "--output", file, "--json")
        assert code == 0
        assert json.loads(out)["bytes"] == file.stat().st_size > 100
    item = json.loads((tmp_path / "out.csl").read_text())[0]
    assert (item["title"], item["author"]) == ("Salt & <Iron>", [{"literal": "Ann Author"}])
    code, _, err = shiguan("export", receipt, "--form", "docx")
    assert (code, "--output" in err) == (2, True)


def test_what_sources_yml_says_is_exported(receipt, kept, shiguan):
    own = kept / "data" / "sources.yml"
    own.write_text(f"{TENANT}:\n  salt.epub: {{author: [Xue Juzheng], year: 974}}\n")
    _, out, _ = shiguan("export", receipt, "--form", "ris")
    assert "AU  - Xue Juzheng" in out
    assert "PY  - 974" in out
    own.unlink()


def test_places_are_found_in_the_library_in_an_edited_file_and_said_to_be_gone(receipt, tmp_path, shiguan):
    code, out, _ = shiguan("locate", receipt)
    assert (code, "stands" in out) == (0, True)
    moved = book(tmp_path / "edited.epub", "A new foreword of the editor.", *PARAGRAPHS)
    code, out, _ = shiguan("locate", receipt, moved, "--json")
    [first, *_] = json.loads(out)["places"]
    assert (code, first["state"], first["now"]["page"]) == (0, "moved", "64")
    assert first["now"]["cfi"].startswith("epubcfi(/6/2!/4")
    gone = book(tmp_path / "other.epub", "Something else altogether stands here now, about horses.")
    code, out, _ = shiguan("locate", receipt, gone)
    assert (code, "gone" in out) == (1, True)


def test_what_cannot_be_read_is_refused(receipt, tmp_path, shiguan):
    broken = tmp_path / "broken.epub"
    broken.write_bytes(b"PK no zip")
    for arguments, tenant, said in (
        (("locate", receipt, broken), TENANT, "cannot be read"),
        (("export", receipt), "another", "another tenant"),
        (("export", broken), TENANT, "is not a receipt"),
        (("export", "absent.json"), TENANT, "absent.json does not exist. Expected a file that"),
        (("verify", "absent.md"), TENANT, "absent.md: there is no such file"),
    ):
        code, _, err = shiguan(*arguments, tenant=tenant)
        assert (code, said in err) == (2, True), said


WRITING = {
    "export": lambda receipt, file: ("export", receipt, "--output", file),
    "ask": lambda _, file: ("ask", "Who set up the salt monopoly?", "--receipt", file),
    "verify": lambda _, file: ("verify", "--quote", "The wall of the capital was pulled down", "--report", file),
}


@pytest.mark.parametrize("command", WRITING)
def test_a_file_that_exists_is_replaced_only_if_asked_to(receipt, tmp_path, shiguan, command):
    file = tmp_path / "draft.md"
    file.write_text("years of work", encoding="utf-8")
    code, _, err = shiguan(*WRITING[command](receipt, file))
    assert (code, "exists and would be replaced" in err) == (2, True)
    assert file.read_text() == "years of work"
    code, *_ = shiguan(*WRITING[command](receipt, file), "--force")
    assert (code, file.read_text() != "years of work") == (0, True)


def test_what_is_checked_is_never_replaced_by_its_report_whose_names_are_said_first(tmp_path, shiguan, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draft = tmp_path / "draft.md"
    draft.write_text("The wall of the capital was pulled down in 904.", encoding="utf-8")
    for force in ((), ("--force",)):
        code, _, err = shiguan("verify", "draft.md", "--report", "draft", *force)
        assert (code, "draft.md" in err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["draft.md"]
    code, out, _ = shiguan("verify", "draft.md", "--report", "draft.v2")
    assert (code, out.splitlines()[0]) == (0, "The report will be in draft.v2.html and draft.v2.md.")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["draft.md", "draft.v2.html", "draft.v2.md"]


def test_a_full_disk_is_said_and_leaves_the_old_file(receipt, tmp_path, shiguan, monkeypatch):
    file = tmp_path / "notes.md"
    file.write_text("before", encoding="utf-8")

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    code, _, err = shiguan("export", receipt, "--output", file, "--force")
    assert (code, "There is no space left on the disk of the output" in err) == (1, True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]
