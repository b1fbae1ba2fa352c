"""A hostile file neither holds nor fills the process that checks it."""

import json
import re

import pytest
from haystack import component
from haystack.core.errors import PipelineRuntimeError
from tests.security.hostile_files import SOUND
from tests.security.mutant_parts import ADAPTER, CHAT_PROMPT, PROMPT, part

from shiguan.checking.pipeline_check import check_in_process, check_pipeline
from shiguan.cli import main
from shiguan.engine.loading import load_pipeline
from shiguan.errors import ConfigurationError
from shiguan.llm.prompts import chat_prompt_builder
from shiguan.llm.template_rules import faults_of_template


def burn():
    while True:
        pass


WORK = {"time": burn, "memory": lambda: bytearray(1_000_000_000)}


@component
class Grows:
    """Never comes to an end, or takes a gigabyte, when it is made."""

    def __init__(self, what: str) -> None:
        self.taken = WORK[what]()

    @component.output_types(text=str)
    def run(self, text: str):
        return {"text": text}


def write(path, **components):
    data = {**SOUND, "components": {**SOUND["components"], **components}}
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


GROWING = {
    "{{ 'aaaaaaaaaa'" + "|replace('a','aaaaaaaaaa')" * 9 + " }}": "uses the filter `replace`",
    "{{ 'a' * 9999 * 9999 * 99 }}": "multiplies",
    "{{ 9 ** 9 ** 9 }}": "multiplies",
    "{{ x ~ (['aaaaaaaaaa'" + "|replace('a', 'aaaaaaaaaa')" * 9 + "]|join) }}": "uses the filter `replace`",
    "{{ 'a'|center(999999999) }}": "uses the filter `center`",
    "{{ query|indent(999999999) }}": "uses the filter `indent`",
    "{{ query.ljust(999999999) }}": "calls `ljust`",
    "{{ ['a']|map('center', 999999999)|join }}": "uses a filter in `map`",
    "{{ '%999999999d' % 3 }}": "formats with `%`",
    "{{ '%999999999d'|format(3) }}": "uses the filter `format`",
    "{{ query|join(documents) }}": "joins with something",
    "{{ query|tojson(indent=999999999) }}": "uses arguments of `tojson`",
    "{% set a = query %}" + "{% set a = a ~ a %}" * 40 + "{{ a }}": "sets a variable from `a`",
    "{% set a = [query] %}" + "{% set a = [a, a] %}" * 40 + "{{ a }}": "sets a variable from `a`",
    "{% with a = 'x' %}{% with b = a ~ a %}{% with c = b ~ b %}{{ c }}" + "{% endwith %}" * 3: "sets a variable from",
    "{% set a %}{{ query }}{% endset %}{{ a }}": "sets a variable to a block",
    "{% for i in range(99999) %}{{ query }}{% endfor %}": "calls `range`",
    "{% for a in query %}{% for b in query %}{% for c in query %}{% endfor %}{% endfor %}{% endfor %}": "has loops in",
    "{% for a in query recursive %}{{ loop(query) }}{% endfor %}": "has loops in",
    "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}": "has a macro",
    "{% filter center(999999999) %}a{% endfilter %}": "uses the filter `center`",
    "{% message role='user' %}{{ 'a'|center(999999999) }}{% endmessage %}": "uses the filter `center`",
}


@pytest.mark.parametrize(("growing", "fault"), GROWING.items())
def test_a_template_with_which_a_few_characters_become_many_is_refused_for_what_it_does(growing, fault):
    assert any(fault in found for found in faults_of_template(growing))


@pytest.mark.parametrize("kind", [PROMPT, CHAT_PROMPT, ADAPTER])
def test_such_a_template_is_refused_before_it_is_built(tmp_path, kind):
    more = {"output_type": "str"} if kind == ADAPTER else {}
    path = write(tmp_path / "mine.yml", evil=part(kind, template="{{ 9 ** 9 ** 9 }}", **more))
    assert {finding.check for finding in check_pipeline(path, "mine.yml").findings} == {"templates"}


def test_a_prompt_of_ones_own_may_do_no_more():
    with pytest.raises(ConfigurationError, match="Expected a template that shows values"):
        chat_prompt_builder("{{ 9 ** 9 ** 9 }}", "mine")


@pytest.mark.parametrize("kind", [PROMPT, CHAT_PROMPT])
def test_what_is_rendered_has_a_limit_in_the_engine_too(tmp_path, kind, monkeypatch):
    monkeypatch.setattr("shiguan.llm.prompts._MOST_CHARACTERS", 1_000)
    template = "{% message role='user' %}{% for a in query %}{% for b in query %}{{ query }}{% endfor %}{% endfor %}"
    template += "{% endmessage %}"
    if kind == PROMPT:
        template = re.sub("{% (end)?message.*?%}", "", template)
    prompt = part(kind, template=template, required_variables=["query"])
    path = tmp_path / "mine.yml"
    path.write_text(
        json.dumps({"components": {"prompt": prompt}, "connections": [], "inputs": {"query": ["prompt.query"]}})
    )
    pipeline = load_pipeline("embedded", path)
    pipeline.run({"query": "short"})
    with pytest.raises(PipelineRuntimeError, match="more than 1,000 characters"):
        pipeline.run({"query": "longer than ten"})


@pytest.fixture
def less_time(monkeypatch):
    monkeypatch.setattr("shiguan.checking.pipeline_check._SECONDS", 0.8)


@pytest.mark.usefixtures("less_time")
@pytest.mark.parametrize(("what", "reason"), [("time", "1 seconds of the processor"), ("memory", "268 MB of memory")])
def test_a_class_that_takes_more_than_a_check_may_is_ended(tmp_path, capsys, what, reason):
    path = write(tmp_path / "mine.yml", evil=part(f"{__name__}.Grows", what=what))
    assert main(["check", str(path), "--allow-type", __name__, "--json"]) == 2
    (file,) = json.loads(capsys.readouterr().out)["files"]
    (finding,) = file["findings"]
    assert reason in finding["problem"]
    assert (finding["check"], finding["unsafe"]) == ("building", True)


@pytest.mark.usefixtures("less_time")
def test_what_an_import_takes_does_not_count(tmp_path, capsys):
    path = write(tmp_path / "mine.yml", evil=part("tests.doubles.slow_to_import.Passes"))
    main(["check", str(path), "--allow-type", "tests.doubles.slow_to_import", "--json"])
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert [finding["check"] for finding in file["findings"]] == ["starvation"]  # nothing is connected to it


def test_a_report_from_the_process_is_the_one_that_is_made_here(tmp_path):
    path = write(tmp_path / "mine.yml", evil={"type": "os.system"}, odd={"type": "shiguan.stores.nothing.Nothing"})
    there, here = check_in_process(path, "mine.yml"), check_pipeline(path, "mine.yml")
    assert there.findings == here.findings != []
    assert str(there.error) == str(here.error)
    assert there.notes == here.notes
