"""What people really write is let through: the check must not be safe by refusing everything."""

import warnings
from copy import deepcopy

import pytest
import yaml
from haystack import Pipeline
from tests.conftest import ROOT
from tests.doubles.work import work
from tests.security.hostile_files import SOUND
from tests.security.mutant_parts import ADAPTER, BRANCH_JOINER, FILTER_RETRIEVER, MEMORY_STORE, PROMPT, checked, part

from shiguan.checking.parameters import ALLOWED_TYPES, REFUSED_TYPES
from shiguan.checking.pipeline_check import check_pipeline
from shiguan.engine.loading import load_pipeline

RETRIEVERS = "haystack.components.retrievers."
GENERATOR = "haystack.components.generators.chat.openai.OpenAIChatGenerator"
STORE = SOUND["components"]["retriever"]["init_parameters"]["document_store"]


def findings(tmp_path, change, **options):
    data = deepcopy(SOUND)
    change(data)
    return [str(finding) for finding in checked(data, tmp_path, **options).findings]


def new(type_, /, *edges, inputs=None, **parameters):
    """The change that adds a component `new`."""

    def change(data):
        data["components"]["new"] = part(type_, **parameters)
        data["connections"] += [{"sender": sender, "receiver": receiver} for sender, receiver in edges]
        data["inputs"].update(inputs or {})

    return change


FILTERED = ("tenant_filter.filters", "new.filters")
FOUND = ("retriever.documents", "new.documents")
BOTH_ASKED = {"query": ["retriever.query", "new.query"]}
SCHEMA = {"type": "object", "properties": {"tools": {"type": "array"}, "hook": True, "unsafe": {"type": "boolean"}, "reset": {"type": "boolean"}}}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update({"x-anything": {"type": "os.system"}}),
        lambda data: data["components"]["retriever"]["init_parameters"].update(top_k=3),
        new(FILTER_RETRIEVER, FILTERED, document_store=STORE, filters=None),
        new(f"{RETRIEVERS}multi_retriever.MultiRetriever", FILTERED, inputs=BOTH_ASKED, retrievers={"words": SOUND["components"]["retriever"]}),
        new(
            GENERATOR,
            ("prompt_builder.prompt", "new.messages"),
            model="x",
            api_key={"type": "env_var", "env_vars": ["OPENAI_API_KEY"], "strict": False},
            streaming_callback=None,
            tools=None,
            generation_kwargs={
                "temperature": 0,
                "stop": ["{{", "{%"],
                "response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
            },
        ),
        new(
            "haystack.components.routers.conditional_router.ConditionalRouter",
            inputs=BOTH_ASKED,
            routes=[
                {"condition": "{{ query|length > 10 }}", "output": "{{ query }}", "output_name": "long", "output_type": "str"},
                {"condition": "{{ true }}", "output": "{{ query }}", "output_name": "short", "output_type": "str"},
            ],
        ),
        new(ADAPTER, FOUND, template="{{ documents|map(attribute='content')|join(', ') }}", output_type="str", unsafe=False),
        new(BRANCH_JOINER, ("prompt_builder.prompt", "new.value"), type_="list[haystack.dataclasses.ChatMessage] | None"),
        new("haystack.components.rankers.lost_in_the_middle.LostInTheMiddleRanker", FOUND),
    ],
    ids=range(9),
)  # fmt: skip
def test_a_sound_swap_is_let_through_and_so_is_what_haystack_dumps_of_it(tmp_path, change, monkeypatch):
    assert findings(tmp_path, change) == []
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    data = deepcopy(SOUND)
    change(data)
    inputs = data.pop("inputs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Haystack's own, of experimental components
        dumped = Pipeline.from_dict({key: data[key] for key in ("components", "connections")}).dumps()
    assert "connection_type_validation" in dumped
    path = tmp_path / "dumped.yml"
    path.write_text(dumped + yaml.safe_dump({"inputs": inputs}), encoding="utf-8")
    assert [str(finding) for finding in check_pipeline(path, "dumped.yml").findings] == []


@pytest.mark.parametrize("mode", ["simple", "index"])
def test_what_was_loaded_and_dumped_again_may_be_checked_and_loaded_again(tmp_path, mode):
    path = tmp_path / "again.yml"
    path.write_text(load_pipeline("embedded", mode).dumps(), encoding="utf-8")
    assert [str(finding) for finding in check_pipeline(path, "again.yml").findings] == []
    assert load_pipeline("embedded", path).metadata["inputs"] == load_pipeline("embedded", mode).metadata["inputs"]


def nested(components):
    """A few kilobytes of anchors within anchors, which stand for very many components inside of others."""
    store = "{type: shiguan.stores.embedded.qdrant_edge_document_store.QdrantEdgeDocumentStore}"
    inner = (
        f"{{type: shiguan.retrieval.best_window_ranker.BestWindowRanker, init_parameters: {{document_store: {store}}}}}"
    )
    layers = "".join(f"x-{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, components))
    return (
        f"x-0: &a0 {inner}\n{layers}components:\n  r:\n    type: shiguan.retrieval.best_window_ranker.BestWindowRanker\n"
        f"    init_parameters: {{rankers: *a{components - 1}}}\n"
    )


@pytest.mark.parametrize("file", [
    lambda size: nested({1: 8, 2: 9}[size]),
    lambda size: "components:\n" + "".join(f"  c{i}: {{type: os.system}}\n" for i in range(90 * size)),
    lambda size: f"components:\n  a:\n    type: {PROMPT}\n    init_parameters:\n"
    + "".join(f"      hook{i}_hook: b.c\n" for i in range(1000 * size)),
    lambda size: "components:\n" + "".join(f"  c{i}: {{type: {PROMPT}, init_parameters: {{template: a}}}}\n" for i in range(90 * size))
    + "connections:\n" + "".join(f"- {{sender: c{i}.prompt, receiver: c{i + 1}.no}}\n" for i in range(90 * size - 1)),
], ids=["anchors", "types", "parameters", "connections"])  # fmt: skip
def test_twice_as_large_a_file_is_at_most_twice_the_work(tmp_path, file):
    path, steps = tmp_path / "large.yml", {}
    for size in (1, 1, 2):  # the first time loads what it needs
        path.write_text(file(size), encoding="utf-8")
        steps[size] = work(lambda: check_pipeline(path, "large.yml"))
    assert steps[1] > 1_000
    assert steps[2] < 2.2 * steps[1]


JOINER = {"type": "haystack.components.joiners.document_joiner.DocumentJoiner"}


@pytest.mark.parametrize(("change", "words"), [
    (new(PROMPT, template="{{ " + "x." * 5000 + "y }}"), ["`new` cannot be built: maximum recursion"]),
    (lambda data: data["components"].update(_debug=JOINER), ["reserved"]),  # Haystack keeps the name for itself
    (new(MEMORY_STORE), ["InMemoryDocumentStore` is not a component"]),
    (new("shiguan.ingest.source_inspector.SourceInspector", max_bytes=1), ["built", "Expected no parameters at all."]),
    (new("shiguan.ingest.e5_document_embedder.E5DocumentEmbedder", threads=2),
     ["built", "'threads'", "Expected meta_fields_to_embed."]),
], ids=["template", "name", "no component", "no parameter", "parameters"])  # fmt: skip
def test_what_cannot_be_built_is_a_finding_with_what_was_expected(tmp_path, change, words):
    assert any(all(word in text for word in words) for text in findings(tmp_path, change))


def test_a_type_is_allowed_by_a_setting_and_the_note_says_so(tmp_path, monkeypatch):
    change = new("json.JSONDecoder")
    assert "not allowed" in findings(tmp_path, change)[0]
    assert not any("not allowed" in text for text in findings(tmp_path, change, allow_types=["json"]))
    assert "not allowed" in findings(tmp_path, change, allow_types=["jso", "json.JSONDecode"])[0]
    monkeypatch.setenv("SHIGUAN_ALLOWED_TYPES", "a.b, json.JSONDecoder")
    report = check_pipeline(tmp_path / "mine.yml", "mine.yml")
    assert not any("not allowed" in str(finding) for finding in report.findings)
    assert report.notes == [
        "Types below a.b, json.JSONDecoder are allowed beyond Shiguan's own list, by `--allow-type` or "
        "$SHIGUAN_ALLOWED_TYPES."
    ]


def test_a_package_that_is_not_installed_is_a_note_and_its_filters_still_count(tmp_path):
    type_, store = "haystack_integrations.components.retrievers.nowhere.NowhereRetriever", STORE
    assert findings(tmp_path, new(type_, FILTERED, document_store=store)) == []
    notes = check_pipeline(tmp_path / "mine.yml", "mine.yml").notes
    assert any("is not installed here" in note for note in notes)
    assert "`new` reads a store, and" in findings(tmp_path, new(type_, document_store=store))[0]


def test_the_page_on_security_lists_what_is_allowed():
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    for name in (*ALLOWED_TYPES, *REFUSED_TYPES):
        assert f"`{name}`" in page, name


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "HF_TOKEN", "ELASTIC_PASSWORD", "SHIGUAN_ELASTICSEARCH_URL", "SHIGUAN_QDRANT_API_KEY"]
)
def test_a_key_of_a_service_may_be_named(tmp_path, name):
    secret = {"type": "env_var", "env_vars": [name], "strict": False}
    change = new(GENERATOR, ("prompt_builder.prompt", "new.messages"), api_key=secret)
    assert findings(tmp_path, change) == []
