"""Pipeline files that an attacker or an accident would write, and which check must refuse each."""

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import yaml
from tests.security.mutant_parts import (
    ADAPTER,
    BRANCH_JOINER,
    CHAT_PROMPT,
    EDGE_BM25,
    EDGE_STORE,
    FILTER_RETRIEVER,
    MEMORY_BM25,
    MEMORY_STORE,
    PROMPT,
    TENANT_FILTER,
    part,
)

CANARY = "shiguan_canary"
"""A module that writes a file when it is imported; nothing may import it."""

SOUND: dict[str, Any] = {
    "components": {
        "tenant_filter": {"type": TENANT_FILTER},
        "retriever": part(EDGE_BM25, document_store=part(EDGE_STORE)),
        "prompt_builder": part(CHAT_PROMPT, template="{% message role='user' %}{{ documents }}{% endmessage %}"),
    },
    "connections": [
        {"sender": "tenant_filter.filters", "receiver": "retriever.filters"},
        {"sender": "retriever.documents", "receiver": "prompt_builder.documents"},
    ],
    "inputs": {"query": ["retriever.query"], "tenant_id": ["tenant_filter.tenant_id"]},
    "outputs": {"documents": "retriever.documents", "prompt": "prompt_builder.prompt"},
}
"""A file that is fine; most hostile ones are this one with one thing changed."""


@dataclass(frozen=True)
class Hostile:
    """
    :param name: What is wrong with it.
    :param content: The file.
    :param check: Which check must find it.
    """

    name: str
    content: bytes
    check: str


def hostile_files() -> Iterator[Hostile]:
    yield from _foreign_types()
    yield from _code_in_parameters()
    yield from _templates()
    yield from _yaml()
    yield from _shapes()
    yield from _sockets()
    yield from _reachable()
    yield from _unguarded()


def changed(name: str, check: str, change: Any) -> Hostile:
    """The sound file with one thing changed."""
    data = deepcopy(SOUND)
    change(data)
    assert data != SOUND, name
    return Hostile(name, json.dumps(data).encode(), check)


def text(name: str, content: str | bytes, check: str = "reading") -> Hostile:
    return Hostile(name, content.encode() if isinstance(content, str) else content, check)


_FOREIGN = [
    "os.system", "os.popen", "posix.system", "subprocess.Popen", "subprocess.run", "builtins.eval", "builtins.exec",
    "builtins.open", "shutil.rmtree", "pathlib.Path", "importlib.import_module", "runpy.run_path", "pickle.Unpickler",
    "socket.socket", "ctypes.CDLL", "code.InteractiveConsole", "pty.spawn", "webbrowser.open", "http.server.HTTPServer",
    "urllib.request.Request", f"{CANARY}.Canary", f"{CANARY}.inner.Canary", "haystackevil.components.X",
    "shiguan.Runner", "shiguan.engine.library.Library", "shiguan.cli.main", "shiguan.models.engine.engine",
    "shiguan.commands.serve.serve", "haystack.Pipeline", "haystack.core.pipeline.pipeline.Pipeline",
    "haystack.core.super_component.super_component.SuperComponent", "haystack.utils.misc.X", "haystack.tools.tool.Tool",
    "haystack.tools.component_tool.ComponentTool", "haystack.components.agents.agent.Agent",
    "haystack.components.tools.tool_invoker.ToolInvoker", "haystack.components.connectors.openapi.OpenAPIConnector",
    "haystack.components.connectors.openapi_service.OpenAPIServiceConnector",
    "haystack.components.fetchers.link_content.LinkContentFetcher",
    "haystack.components.websearch.serper_dev.SerperDevWebSearch",
    "haystack.components.converters.json.JSONConverter",
    "haystack.components.converters.openapi_functions.OpenAPIServiceToFunctions",
    "haystack.components.converters.image.document_to_image.DocumentToImageContent",
    "haystack.components.validators.json_schema.JsonSchemaValidator",
    "haystack.components.evaluators.llm_evaluator.LLMEvaluator",
    "haystack.components.extractors.llm_metadata_extractor.LLMMetadataExtractor",
    "haystack.components.audio.whisper_local.LocalWhisperTranscriber",
    "haystack.components.caching.cache_checker.CacheChecker",
    "haystack_integrations.components.embedders.jina.document_image_embedder.JinaDocumentImageEmbedder",
    "haystack_integrations.tools.mcp.MCPTool", "haystack_integrations.components.connectors.github.GitHubIssueViewer",
    "haystack_experimental.components.X",
]  # fmt: skip
_NO_CLASSES = [
    # Below an allowed package, but no class that is written there.
    "haystack.components.builders.chat_prompt_builder.import_module", "haystack.components.joiners.branch.os.system",
    "shiguan.answer.citation_extractor.Path", "shiguan.retrieval.tenant_filter.TenantFilterX", "shiguan.answer.",
    "shiguan.answer..x", "shiguan.stores.__init__.X", "shiguan.retrieval.tenant_filter.Tenant Filter",
]  # fmt: skip


def _foreign_types() -> Iterator[Hostile]:
    def inside(data, type_):
        data["components"]["retriever"]["init_parameters"]["document_store"] = part(type_, a=1)

    def bare(data, type_):
        data["components"]["prompt_builder"]["init_parameters"]["template"] = {"type": type_}

    def deep(data, type_):
        data["components"]["prompt_builder"]["init_parameters"]["variables"] = [{"x": [{"y": {"type": type_}}]}]

    for types, check in ((_FOREIGN, "allowed_types"), (_NO_CLASSES, "building")):
        for type_ in types:
            yield changed(f"the type {type_}", check, _one_more({"type": type_}))
    for place, change in (("as a store", inside), ("without parameters", bare), ("deep inside", deep)):
        for type_ in ("os.system", f"{CANARY}.Canary", "haystack.components.agents.agent.Agent"):
            yield changed(f"the type {type_} {place}", "allowed_types", partial(change, type_=type_))


def _one_more(spec: Any) -> Any:
    return lambda data: data["components"].update(evil=spec)


def _code_in_parameters() -> Iterator[Hostile]:
    generator = "haystack.components.generators.chat.openai.OpenAIChatGenerator"
    local = "haystack.components.generators.chat.hugging_face_local.HuggingFaceLocalChatGenerator"
    embedder = "haystack_integrations.components.embedders.sentence_transformers.sentence_transformers_text_embedder.SentenceTransformersTextEmbedder"
    splitter = "haystack.components.preprocessors.document_splitter.DocumentSplitter"
    router = "haystack.components.routers.conditional_router.ConditionalRouter"
    qdrant = "shiguan.stores.cluster.qdrant_embedding_retriever.QdrantEmbeddingRetriever"
    qdrant_store = "haystack_integrations.document_stores.qdrant.document_store.QdrantDocumentStore"
    azure = "haystack.components.generators.chat.azure.AzureOpenAIChatGenerator"
    ours = "shiguan.llm.configured_chat_generator.ConfiguredChatGenerator"
    route = {"condition": "{{ true }}", "output": "{{ query }}", "output_name": "x", "output_type": "str"}
    tool = {"type": "haystack.tools.tool.Tool", "data": {"name": "x", "function": "os.system"}}
    cases: list[tuple[str, str, dict[str, Any]]] = [
        ("a callback", generator, {"streaming_callback": f"{CANARY}.run"}),
        ("a callback of the builtins", generator, {"streaming_callback": "builtins.eval"}),
        ("a callback of ours", ours, {"streaming_callback": f"{CANARY}.run"}),
        ("a callback inside a kwarg", generator, {"generation_kwargs": {"callback": f"{CANARY}.run"}}),
        ("several callbacks", generator, {"http_client_kwargs": {"event_hooks": {"request": [f"{CANARY}.run"]}}}),
        ("tools by name", generator, {"tools": [f"{CANARY}.run"]}),
        ("a toolset", generator, {"toolset": f"{CANARY}.run"}),
        ("a token provider", azure, {"azure_ad_token_provider": f"{CANARY}.run"}),
        ("a tool parser", local, {"tool_parsing_function": f"{CANARY}.run"}),
        ("a splitting function", splitter, {"split_by": "function", "splitting_function": f"{CANARY}.run"}),
        ("a filter for templates", ADAPTER, {"template": "{{ x }}", "output_type": "str", "custom_filters": {"f": f"{CANARY}.run"}}),
        ("a filter for conditions", router, {"routes": [route], "custom_filters": {"f": f"{CANARY}.run"}}),
        ("unsafe templates", ADAPTER, {"template": "{{ x }}", "output_type": "str", "unsafe": True}),
        ("unsafe conditions", router, {"routes": [route], "unsafe": True}),
        ("unsafe as a text", router, {"routes": [route], "unsafe": "yes"}),
        ("unsafe as a number", router, {"routes": [route], "unsafe": 1}),
        ("unsafe deep inside", router, {"routes": [{**route, "unsafe": True}]}),
        ("a model's own code", embedder, {"model": "x", "trust_remote_code": True}),
        ("a model's own code as a text", embedder, {"model": "x", "trust_remote_code": "true"}),
        ("a model's own code in a kwarg", embedder, {"model_kwargs": {"trust_remote_code": True}}),
        ("a tokenizer's own code", embedder, {"tokenizer_kwargs": {"trust_remote_code": 1}}),
        ("a config's own code", embedder, {"config_kwargs": {"trust_remote_code": True}}),
        ("a pipeline's own code", local, {"huggingface_pipeline_kwargs": {"model": "x", "trust_remote_code": True}}),
        ("generation by a model's code", local, {"generation_kwargs": {"custom_generate": "someone/code"}}),
        ("a type to import", BRANCH_JOINER, {"type_": f"{CANARY}.Thing"}),
        ("a type to import inside another", BRANCH_JOINER, {"type_": f"list[{CANARY}.Thing]"}),
        ("a type to import in a union", BRANCH_JOINER, {"type_": f"str | {CANARY}.Thing"}),
        ("a function for a type", BRANCH_JOINER, {"type_": "os.system"}),
        ("a builtin for a type", BRANCH_JOINER, {"type_": "eval"}),
        ("a type of an adapter", ADAPTER, {"template": "{{ x }}", "output_type": f"{CANARY}.Thing"}),
        ("a type of a route", router, {"routes": [{**route, "output_type": f"{CANARY}.Thing"}]}),
        ("types of a route", router, {"routes": [{**route, "output_type": ["str", f"dict[str, {CANARY}.Thing]"]}]}),
        ("a type of a list", "haystack.components.joiners.list_joiner.ListJoiner", {"list_type_": f"{CANARY}.Thing"}),
        ("any variable for a key", generator, {"api_key": {"type": "env_var", "env_vars": ["PATH"], "strict": True}}),
        ("one good variable and another", generator, {"api_key": {"type": "env_var", "env_vars": ["OPENAI_API_KEY", "HOME"]}}),
        *(
            (f"the variable {name} for a key", generator, {"api_key": {"type": "env_var", "env_vars": [name]}})
            for name in ("SHIGUAN_API_KEYS", "SHIGUAN_KEYS_FILE", "SHIGUAN_METRICS_KEY", "SHIGUAN_API_KEY", "SHIGUAN_X_TOKEN")
        ),
        ("the keys of callers for a model", ours, {"models": {"models": [{"name": "a", "base_url": "https://h/v1", "key_variable": "SHIGUAN_METRICS_KEY"}], "roles": {"answer": ["a"]}}}),
        ("no variable for a key", generator, {"api_key": {"type": "env_var", "env_vars": None}}),
        ("a store that empties itself", qdrant, {"document_store": {"type": qdrant_store, "init_parameters": {"recreate_index": True}}}),
        ("a store that drops its table", qdrant, {"document_store": {"type": qdrant_store, "init_parameters": {"recreate_table": "yes"}}}),
        ("a store that is cleared", qdrant, {"document_store": {"type": qdrant_store, "init_parameters": {"clear_index": 1}}}),
        ("a store that is dropped", qdrant, {"document_store": {"type": qdrant_store, "init_parameters": {"drop_old": True}}}),
        ("a store that is reset", qdrant, {"document_store": {"type": qdrant_store, "init_parameters": {"reset": True}}}),
        ("a callback named like a property of a schema", generator, {"properties": {"streaming_callback": f"{CANARY}.run"}}),
        ("a callback in a schema's place", generator, {"generation_kwargs": {"properties": {"hook": f"{CANARY}.run"}}}),
        ("merged filters", MEMORY_BM25, {"filter_policy": "merge"}),
    ]  # fmt: skip
    for name, type_, parameters in cases:
        yield changed(name, "code_in_parameters", _one_more(part(type_, **parameters)))
    # Haystack 3 reads a key when it is first used; what nothing is connected to is found all the same.
    built = "building" if version("haystack-ai").startswith("2.") else "starvation"
    for name, check, parameters in (
        ("tools", "allowed_types", {"tools": [tool]}),
        ("a key in the file", built, {"api_key": {"type": "token", "token": "sk-1", "strict": True}}),
        ("a key as a text", built, {"api_key": "sk-1"}),
    ):
        yield changed(name, check, _one_more(part(generator, **parameters)))


def _templates() -> Iterator[Hostile]:
    check, template = "reachable_parameters", ["prompt_builder.template"]
    yield changed("a template from the caller", check, lambda d: d["inputs"].update(template=template))
    yield changed("a template as an option", check, lambda d: d.update(options={"template": template}))
    yield changed(
        "an option in place of the tenant's filter",
        "tenants",
        lambda d: d.update(options={"where": ["retriever.filters"]}, connections=d["connections"][1:]),
    )
    maker = part(ADAPTER, template="{{ x }}", output_type="str")
    edge = ("maker.output", "prompt_builder.template")
    yield added("a template from a component", check, {"maker": maker}, [edge], {})


def _yaml() -> Iterator[Hostile]:
    sound = yaml.safe_dump(SOUND)
    for tag in (
        "!!python/object/apply:os.system ['touch owned']", "!!python/object/new:os.system ['touch owned']",
        f"!!python/name:{CANARY}.run", f"!!python/module:{CANARY}", f"!!python/object:{CANARY}.Canary {{}}",
        "!!python/object/apply:subprocess.Popen [[id]]", "!!python/object/apply:builtins.eval ['1']", "!!python/tuple x", "!!python/tuple {a: 1}",
        "!!python/complex 1j", "!!python/bytes x", "!!binary aGk=", "!!set {a}", "!!omap [a: 1]",
        "!custom x", "!<tag:yaml.org,2002:python/name:os.system> x", "!ruby/object:X {}", "!!js/function 'x'",
    ):  # fmt: skip
        yield text(f"the tag {tag}", f"x-evil: {tag}\n{sound}")
    yield text("a tag by a handle", f"%TAG !e! tag:yaml.org,2002:python/\n---\nx-evil: !e!name:os.system x\n{sound}")
    yield text("a tag on a key", f"? !!python/name:os.system x\n: 1\n{sound}")
    for layers in (20, 60, 400):
        lines = ["x-0: &a0 [x, x]"] + [f"x-{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, layers)]
        yield text(f"an anchor bomb of {layers} layers", "\n".join([*lines, sound]))
    wide = "x-0: &a0 {a: 1}\n" + "".join(f"x-{i}: &a{i} {{<<: *a{i - 1}, k{i}: [{', '.join(['*a' + str(i - 1)] * 9)}]}}\n" for i in range(1, 9))  # fmt: skip
    yield text("a bomb of merged keys", wide + sound)
    yield text("an anchor that contains itself", f"x-loop: &a [*a]\n{sound}")
    yield text("a mapping that contains itself", f"x-loop: &a {{b: *a}}\n{sound}")
    yield text("an alias to nothing", f"x-a: *nothing\n{sound}")
    for depth in (1000, 60_000):
        yield text(f"{depth} brackets", f"x-a: {'[' * depth}{']' * depth}\n{sound}")
        yield text(f"{depth} braces", f"x-a: {'{a: ' * min(depth, 60_000)}1{'}' * min(depth, 60_000)}\n{sound}")
    yield text("open brackets", "x-a: " + "[" * 100_000)
    yield text("a huge file", "#" * 262_145)
    yield text("a hundred thousand values", "x-a: [" + "1," * 100_000 + "1]\n" + sound)
    yield text("a hundred thousand question marks", "? " * 100_000)
    yield text("a number of five thousand digits", f"x-a: {'9' * 5000}\n{sound}")
    yield text("a day that does not exist", f"x-a: 2024-13-99\n{sound}")
    yield text("two documents", f"{sound}\n---\n{sound}")
    yield text("a key twice", f"{sound}\ncomponents:\n  evil: {{type: os.system}}\n")
    yield text(
        "a component twice",
        "components:\n  a: {type: shiguan.retrieval.tenant_filter.TenantFilter}\n  a: {type: os.system}\n",
    )
    yield text(
        "a parameter twice",
        "components:\n  a: {type: shiguan.retrieval.tenant_filter.TenantFilter, init_parameters: {a: 1, a: 2}}\n",
    )
    yield text("a truth value for a key", "components: {on: {type: os.system}}\n")
    yield text("a number for a key", "components: {1: {type: os.system}}\n")
    yield text("a list for a key", "components: {[a]: {type: os.system}}\n")
    yield text("nothing for a key", "components: {~: {type: os.system}}\n")
    yield text("UTF-16", sound.encode("utf-16"))
    yield text("UTF-32", sound.encode("utf-32"))
    yield text("Latin-1", b"# \xe9t\xe9\n" + sound.encode())
    yield text("a zero byte", sound.encode() + b"\x00")
    yield text("control characters", sound.encode() + b"# \x1b[31m\x07\n")
    yield text("a tab for indentation", "components:\n\ta: {type: os.system}\n")
    yield text("no YAML", "a: [")
    yield text("unbalanced quotes", 'components: "a')
    yield text("a picture", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    yield text("a script", "#!/bin/sh\nrm -rf /\n")
    yield text("nothing", "")
    yield text("blanks", "   \n\n")
    yield text("a comment", "# nothing\n")
    yield text("a list", "[1, 2]")
    yield text("a word", "hello")
    yield text("a number", "42")


def _shapes() -> Iterator[Hostile]:
    for name, value in (
        ("missing", None), ("an empty mapping", {}), ("a list", [1]), ("a text", "x"), ("a number", 1),
    ):  # fmt: skip
        yield changed(f"components are {name}", "structure", lambda d, v=value: d.update(components=v))
    for name, spec in (
        ("nothing", None), ("a text", "os.system"), ("a list", ["os.system"]), ("empty", {}), ("typed by nothing", {"type": None}),
        ("typed by a list", {"type": ["os.system"]}), ("typed by a mapping", {"type": {"type": "os.system"}}),
        ("typed by a number", {"type": 1}),
    ):  # fmt: skip
        yield changed(f"a component is {name}", "structure", _one_more(spec))
    tenant_filter = {"type": TENANT_FILTER}
    for key in ("init_params", "parameters", "from_dict", "class", "__init__"):
        yield changed(f"a component has {key}", "structure", _one_more({**tenant_filter, key: {"a": 1}}))
    for value in ([1], "x", 1):
        yield changed(f"parameters are {value!r}", "structure", _one_more({**tenant_filter, "init_parameters": value}))
    for name in ("", "a.b", "a b", "../a", "1a", "a" * 200, "a\nb", "\u202eevil"):
        named = {name: tenant_filter}
        yield changed(f"a component is called {name[:20]!r}", "structure", lambda d, n=named: d["components"].update(n))
    for key in ("edges", "import", "python", "connection_type_validation", "components2", "\x1b[31m"):
        yield changed(f"a section is called {key!r}", "structure", lambda d, k=key: d.update({k: False}))
    for value in ("x", {"sender": "a.b", "receiver": "c.d"}, [1], [None], [[]], [{"sender": "a.b"}], [{"sender": "retriever.documents", "receiver": "x.y", "z": 1}],
                  [{"sender": "retriever", "receiver": "prompt_builder"}], [{"sender": 1, "receiver": 2}], [{"sender": "retriever.", "receiver": ".x"}]):  # fmt: skip
        yield changed(f"connections are {value!r}"[:90], "structure", lambda d, v=value: d.update(connections=v))
    for section in ("inputs", "options", "outputs", "explain"):
        no_socket = ["nosocket"] if section in ("inputs", "options") else "nosocket"
        for value in ("x", [1], 1, {"a": None}, {"a": 1}, {"a": no_socket}):
            yield changed(f"{section} are {value!r}", "structure", lambda d, s=section, v=value: d.update({s: v}))
    yield changed("inputs lead nowhere", "structure", lambda d: d["inputs"].update(query=[]))
    for value in (0, -1, 10**9, "many", True):
        yield changed(f"runs are {value!r}", "structure", lambda d, v=value: d.update(max_runs_per_component=v))
    yield changed("metadata is a list", "structure", lambda d: d.update(metadata=[1]))


def _sockets() -> Iterator[Hostile]:
    def edge(sender, receiver):
        return lambda d: d["connections"].append({"sender": sender, "receiver": receiver})

    yield changed("a sender that does not exist", "connections", edge("nobody.documents", "prompt_builder.documents"))
    yield changed("a receiver that does not exist", "connections", edge("retriever.documents", "nobody.documents"))
    yield changed(
        "an output that does not exist", "connections", edge("retriever.passages", "prompt_builder.documents")
    )
    yield changed("an input that does not exist", "connections", edge("retriever.documents", "retriever.passages"))
    yield changed("a component fed by itself", "connections", edge("retriever.documents", "retriever.query"))
    yield changed("types that do not fit", "connections", edge("retriever.documents", "tenant_filter.tenant_id"))
    yield changed("an input to nobody", "connections", lambda d: d["inputs"].update(x=["nobody.x"]))
    yield changed("an input to no socket", "connections", lambda d: d["inputs"].update(x=["retriever.nothing"]))
    yield changed("an option to nobody", "connections", lambda d: d.update(options={"x": ["nobody.x"]}))
    yield changed("an output of nobody", "connections", lambda d: d["outputs"].update(x="nobody.x"))
    yield changed("an output of no socket", "connections", lambda d: d["outputs"].update(x="retriever.nothing"))
    yield changed("an explanation by nobody", "structure", lambda d: d.update(explain={"x": "nobody.x"}))
    yield changed("a question for nobody", "starvation", lambda d: d["inputs"].pop("query"))
    yield changed("a tenant for nobody", "tenants", lambda d: d["inputs"].pop("tenant_id"))
    yield changed("no filter", "tenants", lambda d: d["connections"].pop(0))

    fetcher = part("shiguan.retrieval.parent_document_fetcher.ParentDocumentFetcher", document_store=part(MEMORY_STORE))
    between = part("shiguan.retrieval.best_window_ranker.BestWindowRanker", model=fetcher)
    yield added(
        "a store without a guard, deep inside a reader",
        "tenants",
        {"ranker": part("haystack.components.retrievers.multi_retriever.MultiRetriever", retrievers=[between])},
        [("tenant_filter.filters", "ranker.filters"), ("retriever.documents", "ranker.documents")],
        {"query": ["ranker.query"]},
    )
    builder = "shiguan.answer.prompt_file_builder.PromptFileBuilder"
    for name, parameters in (
        ("a template that includes a file", {"template": "{% include '/etc/passwd' %}"}),
        ("a template that includes no layer", {"template": "{% include 'layers/x' %}"}),
        ("a template that includes what it is told", {"template": "{% include name %}"}),
        ("an unknown prompt", {"prompt": "nosuch"}),
        ("a prompt outside the folder", {"prompt": "../../etc/passwd"}),
        ("a prompt by an absolute path", {"prompt": "/etc/passwd"}),
        ("a prompt and a template", {"prompt": "simple", "template": "{{ x }}"}),
        ("neither prompt nor template", {}),
        ("an unknown persona", {"prompt": "simple", "persona": "nosuch"}),
        ("a persona outside the folder", {"prompt": "simple", "persona": "../rules/simple"}),
        ("an unknown profile", {"prompt": "simple", "profile": "nosuch"}),
        ("a profile outside the folder", {"prompt": "simple", "profile": "../../pyproject"}),
        ("unknown examples", {"prompt": "simple", "examples": "nosuch"}),
        ("a profile of another shape", {"prompt": "simple", "profile": {"code": "x"}}),
        ("an unknown mode", {"prompt": "simple", "mode": "nosuch"}),
    ):
        yield changed(name, "building", _one_more(part(builder, **parameters)))
    yield changed("an unknown parameter", "building", _one_more(part(TENANT_FILTER, tenant_id="theirs")))


def added(
    name: str, check: str, components: dict[str, Any], edges: list[tuple[str, str]], inputs: dict[str, list[str]]
) -> Hostile:
    """The sound file with more components in it."""

    def change(d):
        d["components"].update(components)
        d["connections"] += [{"sender": sender, "receiver": receiver} for sender, receiver in edges]
        for key, targets in inputs.items():
            d["inputs"].setdefault(key, []).extend(targets)

    return changed(name, check, change)


def _reachable() -> Iterator[Hostile]:
    """A question, or a model's reply, that becomes a path, an address or a parameter."""
    text = {"type": "haystack.components.converters.txt.TextFileToDocument"}
    router = part("haystack.components.routers.file_type_router.FileTypeRouter", mime_types=["text/plain"])
    prompt = part(PROMPT, template="{{ query }}")
    listed = part(ADAPTER, template="{{ [query] }}", output_type="list[str]")
    object_ = part(ADAPTER, template="{{ query }}", output_type="dict")
    generator = {"type": "haystack.components.generators.chat.openai.OpenAIChatGenerator"}
    asked, check = {"query": ["says.query"]}, "reachable_parameters"
    for name, maker, output in (("a prompt", prompt, "prompt"), ("an adapter", listed, "output")):
        for kind, opener in (("a converter", text), ("a file router", router)):
            parts, edge = {"says": maker, "opens": opener}, (f"says.{output}", "opens.sources")
            yield added(f"{name} says what {kind} opens", check, parts, [edge], asked)

    def index(d):
        d.clear()
        d["components"] = {"says": prompt, "opens": text}
        d["connections"] = [{"sender": "says.prompt", "receiver": "opens.sources"}]
        d["inputs"] = asked

    yield changed("a file without a library lets a question open files", check, index)
    told = ("prompt_builder.prompt", "model.messages")
    made = {"says": object_, "model": generator}
    edges = [("says.output", "model.generation_kwargs"), told]
    yield added("a model's parameters are made from a question", check, made, edges, asked)
    yield added("a caller sets a model's tools", check, {"model": generator}, [told], {"tools": ["model.tools"]})


def _unguarded() -> Iterator[Hostile]:
    """Stores and readers that show every tenant's documents, and filters that come from anywhere but the tenant."""
    memory = part(MEMORY_STORE)
    nowhere = "haystack_integrations.components.retrievers.nowhere.NowhereRetriever"
    for name, spec in (
        ("a store without a guard", part(MEMORY_BM25, document_store=memory)),
        ("a store without a guard, whatever reads it", part(FILTER_RETRIEVER, document_store=memory)),
        ("a retriever with a database of its own", part(nowhere, url="https://example.org")),
    ):
        asked = {} if "FilterRetriever" in spec["type"] else {"query": ["second.query"]}
        yield added(name, "tenants", {"second": spec}, [("tenant_filter.filters", "second.filters")], asked)
    reader = part(FILTER_RETRIEVER, **SOUND["components"]["retriever"]["init_parameters"])
    parts = {"second": reader, "joiner": part(BRANCH_JOINER, type_="dict")}
    relayed = [("joiner.value", "second.filters")]
    yield added("filters from the caller, by a joiner", "tenants", parts, relayed, {"filters": ["joiner.value"]})
