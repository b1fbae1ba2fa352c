"""What a caller says never becomes the path of a file: the check refuses the file, and the engine hands over no names."""

import pytest
import yaml
from tests.security.mutant_parts import ADAPTER, PROMPT, add, checked, part

from shiguan.checking.pipeline_check import Report
from shiguan.engine import loading
from shiguan.engine.library import Library
from shiguan.engine.options import AskOptions
from shiguan.engine.runner import Runner
from shiguan.errors import RefusedError

CONVERTERS = "haystack.components.converters"
OPENERS = {
    "text": (f"{CONVERTERS}.txt.TextFileToDocument", {}),
    "csv": (f"{CONVERTERS}.csv.CSVToDocument", {}),
    "html": (f"{CONVERTERS}.html.HTMLToDocument", {}),
    "markdown": (f"{CONVERTERS}.markdown.MarkdownToDocument", {}),
    "pdf": (f"{CONVERTERS}.pypdf.PyPDFToDocument", {}),
    "docx": (f"{CONVERTERS}.docx.DOCXToDocument", {}),
    "any": (f"{CONVERTERS}.multi_file_converter.MultiFileConverter", {}),
    "epub": ("shiguan.ingest.epub_to_document.EPUBToDocument", {}),
    "rows": ("shiguan.ingest.jsonl_to_document.JSONLToDocument", {}),
    "inspector": ("shiguan.ingest.source_inspector.SourceInspector", {}),
    "router": ("haystack.components.routers.file_type_router.FileTypeRouter", {"mime_types": ["text/plain"]}),
}
OPTIONS = sorted(AskOptions.model_fields.keys() - {"sources"})
ANSWER = "haystack.components.builders.answer_builder.AnswerBuilder"


def reading_file(kind, *, section="inputs", query="inputs"):
    """A mode without a library that reads what a caller names."""
    type_, parameters = OPENERS[kind]
    output = {"inspector": "sources", "router": "text/plain"}.get(kind, "documents")
    prompt = part(PROMPT, template="{{ found }} {{ query }}")
    data = {
        "components": {"reader": part(type_, **parameters), "prompt": prompt},
        "connections": [{"sender": f"reader.{output}", "receiver": "prompt.found"}],
        "inputs": {},
        "outputs": {"answers": "prompt.prompt"},
    }
    if query:
        data.setdefault(query, {})["query"] = ["prompt.query"]
    data.setdefault(section, {})["sources"] = ["reader.sources"]
    return data


def found(tmp_path, data):
    return {finding.check for finding in checked(data, tmp_path).findings}


@pytest.mark.parametrize("query", ["inputs", "options", ""], ids=["a question", "an optional one", "answers alone"])
@pytest.mark.parametrize("section", ["inputs", "options"])
@pytest.mark.parametrize("kind", OPENERS)
def test_a_file_that_answers_opens_no_files(tmp_path, kind, section, query):
    assert "reachable_parameters" in found(tmp_path, reading_file(kind, section=section, query=query))


@pytest.mark.parametrize(
    ("name", "checks"), [("sources", set()), *((name, {"reachable_parameters"}) for name in OPTIONS)]
)
def test_a_file_that_ingests_opens_what_it_is_given_as_its_sources_alone(tmp_path, name, checks):
    data = {"components": {"reader": {"type": OPENERS["text"][0]}}, "outputs": {"documents": "reader.documents"}}
    assert found(tmp_path, {**data, "inputs": {name: ["reader.sources"]}}) == checks


@pytest.mark.parametrize("kind", ["text", "inspector"])
def test_the_engine_hands_no_names_of_sources_to_a_file_that_was_not_checked(tmp_path, monkeypatch, kind):
    secret = tmp_path / "secret.txt"
    secret.write_text("sk-secret", encoding="utf-8")
    data = reading_file(kind)
    add(data, "answers", {"type": ANSWER}, edges=[("prompt.prompt", "answers.query")])
    said = part(ADAPTER, template="{{ [text] }}", output_type="list[str]")
    add(data, "said", said, edges=[("prompt.prompt", "said.text"), ("said.output", "answers.replies")])
    data["outputs"] = {"answers": "answers.answers"}
    path = tmp_path / "filey.yml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    real = loading.check_pipeline
    unchecked = Report("filey.yml", content=data)
    monkeypatch.setattr(
        loading, "check_pipeline", lambda at, *more, **how: unchecked if at == path else real(at, *more, **how)
    )
    monkeypatch.chdir(tmp_path)  # so that the name of the source is that of a file
    list(Library("embedded", data_dir=tmp_path / "library").ingest([secret], tenant_id="a"))
    with Runner("embedded", path, data_dir=tmp_path / "library") as runner:
        with pytest.raises(RefusedError, match="There is no source"):
            runner.ask("What does it say?", tenant_id="a", sources=[str(secret)])
        with pytest.raises(ValueError, match="Missing mandatory input 'sources'"):
            runner.ask("What does it say?", tenant_id="a", sources=["secret.txt"])
