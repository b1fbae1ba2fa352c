"""A folder of one's own prompts: each file in place of the shipped one of its name, checked before a mode is loaded."""

import re
from pathlib import Path

import pytest
from tests.doubles.small_library import TENANT

from shiguan.engine.loading import load_pipeline
from shiguan.engine.runner import Runner
from shiguan.errors import ConfigurationError
from shiguan.evaluation.provenance import prompt_hashes
from shiguan.llm.prompts import load_prompt, prompt_hash, render_prompt

ANSWER = "Yang Yan proposed the two-tax reform in 780. [1]"
OWN = """{% message role="system" %}{% include persona %} Answer as a clerk would.{% endmessage %}
{% message role="user" %}{{ context }}
{{ query }}{% endmessage %}
"""


@pytest.fixture
def folder(tmp_path):
    own = tmp_path / "prompts"
    own.mkdir()
    return own


def written(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def answered(library, endpoint):
    receipts = []
    with Runner("embedded", "simple", data_dir=library, keep_receipt=receipts.append) as runner:
        answer = runner.ask("Who proposed the two-tax reform?", tenant_id=TENANT)
    return answer, receipts[0], endpoint.prompts[-1]


@pytest.fixture
def in_use(folder, monkeypatch):
    return lambda: monkeypatch.setenv("SHIGUAN_PROMPTS_DIR", str(folder))


def test_a_mark_of_the_encoding_is_no_part_of_a_prompt(folder, in_use):
    written(folder, "simple.jinja", f"\ufeff{OWN}")
    in_use()
    assert load_prompt("simple") == OWN


def test_a_file_takes_the_place_of_the_shipped_one_and_stands_in_the_receipt(library, folder, endpoint, in_use):
    written(folder, "simple.jinja", OWN)
    written(folder, "layers/persona/shiguan.jinja", "You are the clerk of the salt office.")
    endpoint.default = ANSWER
    shipped, _, before = answered(library, endpoint)
    in_use()
    answer, receipt, prompt = answered(library, endpoint)
    assert answer["answer"] == shipped["answer"] == ANSWER
    assert "You are the clerk of the salt office. Answer as a clerk would." in prompt
    assert "clerk" not in before
    assert (receipt.prompt["prompt"], receipt.prompt["prompt_hash"]) == ("simple", prompt_hash(OWN))
    [call] = receipt.calls
    assert (call["prompt"], call["prompt_hash"]) == ("simple", prompt_hash(OWN))
    assert shipped["metadata"]["calls"][0]["prompt_hash"] == prompt_hash(load_prompt("simple", shipped=True))


def test_the_prompt_of_a_helper_may_leave_variables_out(folder, in_use):
    written(folder, "hyde_embedder.jinja", "Write a passage about {{ query }}.")
    variables = dict.fromkeys(re.findall(r"{{ (\w+) }}", load_prompt("hyde_embedder")), "x")
    shipped = render_prompt("hyde_embedder", **{**variables, "language": "en"})
    in_use()
    [own] = render_prompt("hyde_embedder", **{**variables, "language": "en"})
    assert own.text == "Write a passage about x."
    assert own.meta["prompt_hash"] != shipped[0].meta["prompt_hash"]


@pytest.mark.parametrize(("name", "text", "said"), [
    ("simple.jinja", OWN + "{{ weather }}", "variables weather, which nothing fills"),
    ("simple.jinja", "{{ query }}", "does not show `context`"),
    ("simple.jinja", "{% if %}", "not a valid template"),
    ("simple.jinja", OWN + '{% include "layers/none.jinja" %}', "not a layer"),
    ("simpel.jinja", OWN, "does not replace any file"),
    ("layers/goal.jinja", "{{ weather }}", "goal.jinja has the variables weather"),
    ("layers/goal.jinja", "{% if %}", "`layers/goal.jinja` is not a valid template"),
    ("profiles/legal.yml", "rules: 3", "legal"),
    ("not_found.yml", "{}", "does not replace any file"),
])  # fmt: skip
def test_what_would_not_work_is_refused_before_a_mode_is_loaded(folder, in_use, name, text, said):
    written(folder, name, text)
    in_use()
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        load_pipeline("embedded", "simple", outputs=["documents"])


def test_a_folder_that_is_not_there_is_named(folder, monkeypatch):
    monkeypatch.setenv("SHIGUAN_PROMPTS_DIR", str(folder / "none"))
    with pytest.raises(
        ConfigurationError, match=r"`--prompts` or \$SHIGUAN_PROMPTS_DIR names .*none, which is not a f"
    ):
        load_pipeline("embedded", "simple", outputs=["documents"])


def test_a_measurement_names_the_files_that_were_exchanged(folder, in_use):
    written(folder, "simple.jinja", OWN)
    before = prompt_hashes()
    in_use()
    after = prompt_hashes()
    assert {name for name in after if after[name] != before[name]} == {"simple.jinja"}
