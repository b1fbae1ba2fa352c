import re
import sys

import pytest
import yaml
from haystack import component

from shiguan.engine import loading
from shiguan.engine.loading import describe_mode, has_model, list_modes, load_pipeline
from shiguan.errors import ConfigurationError
from shiguan.haystack_compat import AsyncPipeline

GOOD = """\
# tiny: for tests.
# LLM calls per question: 0.

x-store: &store
  type: shiguan.stores.embedded.qdrant_edge_document_store.QdrantEdgeDocumentStore
  init_parameters: {name: tiny}

components:
  tenant_filter: {type: shiguan.retrieval.tenant_filter.TenantFilter}
  query_analyzer: {type: shiguan.query.query_analyzer.QueryAnalyzer}
  retriever:
    type: shiguan.stores.embedded.qdrant_edge_bm25_retriever.QdrantEdgeBM25Retriever
    init_parameters: {document_store: *store}
  prompt_builder:
    type: haystack.components.builders.chat_prompt_builder.ChatPromptBuilder
    init_parameters: {template: "{% message role='user' %}{{ documents }}{% endmessage %}"}
connections:
  - {sender: tenant_filter.filters, receiver: retriever.filters}
  - {sender: retriever.documents, receiver: prompt_builder.documents}
inputs:
  query: [retriever.query, query_analyzer.query]
  tenant_id: [tenant_filter.tenant_id]
outputs:
  documents: retriever.documents
  prompt: prompt_builder.prompt
  analysis: query_analyzer.analysis
"""


@pytest.fixture
def pipelines(write_mode):
    write_mode(GOOD)
    return write_mode


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_mode_is_described_by_its_comment_whatever_mark_the_file_begins_with(pipelines, mark):
    pipelines(mark + GOOD)
    assert describe_mode("here", "tiny") == "tiny: for tests.\nLLM calls per question: 0."


def test_a_mode_is_loaded_with_its_inputs_and_outputs(pipelines):
    pipeline = load_pipeline("here", "tiny")
    assert isinstance(pipeline, AsyncPipeline)
    assert set(pipeline.graph.nodes) == {"tenant_filter", "query_analyzer", "retriever", "prompt_builder"}
    written = yaml.safe_load(GOOD)
    assert pipeline.metadata == {
        "deployment": "here", "mode": "tiny", "inputs": written["inputs"], "outputs": written["outputs"], "budget": {},
        "comment": "tiny: for tests.\nLLM calls per question: 0.",
    }  # fmt: skip


def test_options_are_inputs_that_stock_hayhooks_does_not_ask_for(pipelines):
    definition = yaml.safe_load(GOOD)
    whole = definition["inputs"]
    moved = {"inputs": {"query": whole["query"]}, "options": {"tenant_id": whole["tenant_id"]}}
    first, second = ([target] for target in whole["query"])
    split = {"inputs": {"query": first, "tenant_id": whole["tenant_id"]}, "options": {"query": second}}
    for sections in (moved, split):
        written = pipelines(yaml.safe_dump({**definition, **sections}))
        assert load_pipeline("here", written).metadata["inputs"] == whole


def test_only_what_an_output_needs_is_built_and_an_unknown_one_lists_the_known_ones(pipelines):
    with pytest.raises(ConfigurationError, match=r"no output `answers`\. Its outputs: documents, prompt, analysis"):
        load_pipeline("here", "tiny", outputs=["answers"])
    pipeline = load_pipeline("here", "tiny", outputs=["documents"])
    assert set(pipeline.graph.nodes) == {"tenant_filter", "retriever"}
    assert pipeline.metadata["inputs"] == {"query": ["retriever.query"], "tenant_id": ["tenant_filter.tenant_id"]}
    assert pipeline.metadata["outputs"] == {"documents": "retriever.documents"}


@pytest.mark.parametrize(("deployment", "mode", "message"), [
    ("nowhere", "tiny", "no deployment `nowhere`. Known deployments: here"),
    ("here", "huge", "no mode `huge`. Known modes: tiny"),
    ("here", "../here/tiny", "no mode `../here/tiny`"),
    ("..", "tiny", "no deployment `..`"),
])  # fmt: skip
def test_an_unknown_name_lists_the_known_ones(pipelines, deployment, mode, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        load_pipeline(deployment, mode)


def test_a_path_is_a_pipeline_file_of_ones_own(pipelines, tmp_path):
    own = tmp_path / "elsewhere" / "mine.yml"
    own.parent.mkdir()
    own.write_text(GOOD, encoding="utf-8")
    pipeline = load_pipeline("here", own, outputs=["documents"])
    assert pipeline.metadata["mode"] == "mine"
    with pytest.raises(ConfigurationError, match=r"absent\.yml does not exist"):
        load_pipeline("here", tmp_path / "absent.yml")
    with pytest.raises(ConfigurationError, match="no mode"):
        load_pipeline("here", str(own))


def test_a_type_that_an_operator_allows_is_built_and_logged(pipelines, monkeypatch, caplog):
    pipelines(GOOD.replace("  analysis: query_analyzer.analysis\n", "").replace(
        "shiguan.query.query_analyzer.QueryAnalyzer", "haystack.components.extractors.regex_text_extractor.RegexTextExtractor, "
        "init_parameters: {regex_pattern: a}"
    ).replace("query_analyzer.query", "query_analyzer.text_or_messages"))  # fmt: skip
    monkeypatch.setenv("SHIGUAN_ALLOWED_TYPES", "haystack.components.extractors")
    assert "query_analyzer" in load_pipeline("here", "tiny").graph.nodes
    assert "more types than Shiguan allows: haystack.components.extractors" in caplog.text


def test_modes_are_listed_from_the_quickest_on_and_first_where_no_server_is_needed():
    found = list_modes()
    assert next(iter(found)) == "embedded"
    assert all(modes == ["simple", "advanced", "precise", "agent"] for modes in found.values())


def test_a_file_of_ones_own_comes_before_the_packaged_one(pipelines, tmp_path, monkeypatch):
    for mode in ("other", "index"):  # the last is no mode
        pipelines(GOOD, mode=mode)
    own = tmp_path / "own" / "here"
    own.mkdir(parents=True)
    (own / "tiny.yml").write_text(GOOD.replace("outputs:\n", "outputs:\n  mine: retriever.documents\n"))
    (own / "added.yml").write_text(GOOD)
    monkeypatch.setenv("SHIGUAN_PIPELINES_DIR", str(own.parent))
    assert loading.list_modes() == {"here": ["added", "other", "tiny"]}
    assert "mine" in load_pipeline("here", "tiny").metadata["outputs"]
    assert "mine" not in load_pipeline("here", "other").metadata["outputs"]
    monkeypatch.setenv("SHIGUAN_PIPELINES_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(ConfigurationError, match="nowhere, which is not a folder"):
        load_pipeline("here", "tiny")


def test_a_mode_whose_extra_is_missing_is_one_sentence_that_names_it(monkeypatch):
    # Whether the extra is installed here or not: as if it were not.
    monkeypatch.setitem(sys.modules, "haystack_integrations.components.embedders.sentence_transformers", None)
    for module in [name for name in sys.modules if ".embedders.sentence_transformers." in name]:
        monkeypatch.setitem(sys.modules, module, None)
    for type_ in [type_ for type_ in component.registry if ".embedders.sentence_transformers." in type_]:
        monkeypatch.delitem(component.registry, type_)
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    told = r"^The pipeline `elasticsearch_qdrant/simple` embeds.*\[transformers\]"
    with pytest.raises(ConfigurationError, match=told):
        load_pipeline("elasticsearch_qdrant", "simple")


# ---- models.yml -------------------------------------------------------------------------------------------------------

MODELS = """\
models: [{name: small}, {name: big, base_url: "https://big.example.org/v1"}]
roles: {answer: [big], helper: [small]}
"""


def with_generators(mode):
    """A mode with three generators: one that names nothing, one that names its models, and one inside a component."""
    generator = "shiguan.llm.configured_chat_generator.ConfiguredChatGenerator"
    definition = yaml.safe_load(mode)
    own = {"models": [{"name": "mine"}], "roles": {"answer": ["mine"]}}
    definition["components"] |= {
        "plain": {"type": generator},
        "own": {"type": generator, "init_parameters": {"models": own}},
        "named": {"type": generator, "init_parameters": {"model": "theirs"}},
        "nested": {
            "type": "shiguan.query.goal_restater.GoalRestater",
            "init_parameters": {"chat_generator": {"type": generator, "init_parameters": {"role": "helper"}}},
        },
    }
    definition["connections"] += [
        {"sender": "prompt_builder.prompt", "receiver": f"{name}.messages"} for name in ("plain", "own", "named")
    ]
    definition["inputs"]["query"].append("nested.query")
    return yaml.safe_dump(definition)


def test_the_models_of_a_deployment_are_those_of_every_generator_that_names_none(pipelines):
    pipelines(MODELS, mode="models")
    pipelines(with_generators(GOOD))
    assert list_modes() == {"here": ["tiny"]}
    pipeline = load_pipeline("here", "tiny")
    plain, own, named = (pipeline.get_component(name) for name in ("plain", "own", "named"))
    nested = pipeline.get_component("nested").chat_generator
    section = yaml.safe_load(MODELS)
    assert (plain.models, nested.models) == (section, section)
    assert own.models["roles"] == {"answer": ["mine"]}
    assert (named.model, named.models) == ("theirs", None)
    assert plain._roles.roles["answer"] == ["big"]
    assert nested._roles.roles[nested.role] == ["small"]


@pytest.mark.parametrize("text", [None, "", "# models: [{name: small}]\n"])
def test_without_the_file_or_anything_in_it_every_role_is_the_endpoint_of_the_environment(pipelines, text):
    pipelines(with_generators(GOOD))
    if text is not None:
        pipelines(text, mode="models")
    plain = load_pipeline("here", "tiny").get_component("plain")
    assert (plain.models, [model.name for model in plain._roles.models]) == (None, ["default"])


@pytest.mark.parametrize(("text", "why"), [
    ("models: [", "while parsing"), ("- models", "models.yml"),
    ("models: [{name: a}]\nroles: {answer: [b]}", "names `b`, which is not among the models"),
    ("spare: []", "spare"),
    ("models: [{name: a, base_url: ftp://x}]", "must begin with http"),
    ("models: [{name: 2024-02-31}]", "day is out of range"),
    ("models: [{name: a, model: small, model: big}]\nroles: {answer: [a]}", "The key `model` is repeated"),
])  # fmt: skip
@pytest.mark.parametrize("read", [lambda: load_pipeline("here", "tiny"), lambda: has_model("here")])
def test_a_file_of_models_that_cannot_be_used_is_named_with_what_is_wrong(pipelines, text, why, read):
    pipelines(text, mode="models")
    with pytest.raises(ConfigurationError, match=r"models\.yml cannot be used") as raised:
        read()
    assert why in str(raised.value)
    assert "docs/models.md" in str(raised.value)


def test_a_deployment_has_a_model_if_one_of_its_file_can_be_called(pipelines, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    assert not has_model("here")
    pipelines("models: [{name: small}]\nroles: {answer: [small]}", mode="models")
    assert not has_model("here")
    pipelines(MODELS, mode="models")
    assert has_model("here")
