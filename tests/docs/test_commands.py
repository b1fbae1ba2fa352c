"""Every command of the README and of docs/ is run, page by page as a person follows it, or says why not."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from examples.build_book import build_book
from tests.docs.test_serving import strangers_environment, typed
from tests.doubles.small_library import copy_library

from shiguan.cli import main
from shiguan.stores.embedded.shards import close_all_shards

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)(?: not-run: ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:\w+=\S+ )*(?:shiguan|make|pip|python|curl|docker|cp|mkdir|export)\b")
# Pages whose commands another test runs, and shows what they print.
ELSEWHERE = {"serving.md"}
SECONDS = 900


def commands(page):
    """The blocks that a page has a person run: language and text."""
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [(language, text) for language, why, text in found if language in ("bash", "python") and not why]


RUN = [page for page in PAGES if commands(page) and page.name not in ELSEWHERE]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_command_is_in_a_block_that_is_run(page):
    text = page.read_text(encoding="utf-8")
    assert not [block for language, _, block in FENCE.findall(text) if not language and COMMAND.match(block)]
    outside = FENCE.sub("", text)
    assert not re.findall(rf"^ {{4}}(?={COMMAND.pattern}).*", outside, re.MULTILINE)
    assert not re.findall(r'pip install "?shiguan\b.*', text)  # it is on no index


def test_the_eye_of_this_test_sees_commands(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```bash\nshiguan ask x\n```\n```bash not-run: no server\ncurl x\n```\n```yaml\na: 1\n```\n")
    assert commands(page) == [("bash", "shiguan ask x\n")]
    assert len(RUN) > 8


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """What somebody has who cloned the project and ingested its sample book: a home, a library, files of their own."""
    home = tmp_path_factory.mktemp("home")
    (home / "books").mkdir()
    build_book(home / "books" / "an-lushan-rebellion.epub")
    assert main(["ingest", str(home / "books"), "--data-dir", str(home / "library")]) == 0
    close_all_shards()
    return home, strangers_environment(home)


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_the_commands_of_a_page_run(page, stranger, tmp_path):
    home, environment = stranger
    for name in ("pipelines", "examples", "prompts", "bench"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "draft.md").write_text("An Lushan rose in rebellion at Fanyang in the winter of 755.", encoding="utf-8")
    copy_library(home / "library", tmp_path / "library")
    ran = subprocess.run(
        ["bash", "-c", "\n".join(["set -eo pipefail", *(typed(*block) for block in commands(page))])],
        cwd=tmp_path, env=environment | {"SHIGUAN_DATA_DIR": str(tmp_path / "library")}, timeout=SECONDS, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert "Traceback" not in ran.stdout


def test_the_stage_that_a_page_adds_is_fine_where_it_says(tmp_path):
    page = (ROOT / "docs" / "your_own_mode.md").read_text(encoding="utf-8")
    (added,) = (yaml.safe_load(text) for language, _, text in FENCE.findall(page) if language == "yaml")
    mode = yaml.safe_load((ROOT / "pipelines" / "embedded" / "simple.yml").read_text(encoding="utf-8"))
    mode["components"] |= added["components"]
    ends = {"generator": "replies", "context_builder": "documents"}
    replaced = {f"{sender}.{what}": f"citation_extractor.{what}" for sender, what in ends.items()}
    kept = [one for one in mode["connections"] if replaced.get(one["sender"]) != one["receiver"]]
    assert len(kept) == len(mode["connections"]) - 2
    mode["connections"] = kept + added["connections"]
    mode["inputs"] |= added["inputs"]
    file = tmp_path / "lessons.yml"
    file.write_text(yaml.safe_dump(mode), encoding="utf-8")
    assert main(["check", str(file)]) == 0
