"""Loads a pipeline from a YAML file: finds it by name, checks it and prunes it to what is needed."""

import logging
import os
from collections.abc import Collection, Iterator
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from shiguan.checking.definition import CONVERSATION, PASSAGE_WRITER
from shiguan.checking.pipeline_check import check_pipeline
from shiguan.checking.reading import UnreadableFile, read_pipeline_file
from shiguan.errors import ConfigurationError
from shiguan.llm.model_settings import read_model_roles
from shiguan.resources import install_command, read_yaml, resource_folder

if TYPE_CHECKING:
    from shiguan.engine.mode_pipeline import ModePipeline

# Not Haystack's logging: refusing a file must not wait for the import of Haystack.
logger = logging.getLogger(__name__)

_SENTENCE_TRANSFORMERS = "haystack_integrations.components.embedders.sentence_transformers."
_STORE_PREFIX = "shiguan.stores.embedded."
_SECTIONS = ("inputs", "outputs", "budget")
"""The sections of a file besides its components and connections."""
INGESTING = ("read", "index")
"""The files of a deployment that ingest: the first reads files into documents, the second stores these."""
OTHER_FILES = (*INGESTING, "models")
"""Files of a deployment that are not modes: those that ingest, and the models by role."""
_GENERATOR = "shiguan.llm.configured_chat_generator.ConfiguredChatGenerator"


def load_pipeline(
    deployment: str, mode: str | Path, *, data_dir: str | Path | None = None, outputs: list[str] | None = None
) -> "ModePipeline":
    """
    Load one mode of one deployment, ready to run.

        pipeline = load_pipeline("embedded", "simple")
        pipeline.run({"query": "...", "tenant_id": "default"})     # or await pipeline.run_async(...)

    It takes the names of the file's own `inputs` and `options`, or, like any Haystack pipeline, a mapping of components
    to their inputs. `pipeline.metadata` has the file's `inputs` and `outputs`. The models that its generators call are
    those of the deployment's `models.yml`, unless the file names them itself.

    :param deployment: A folder of `pipelines/`: `embedded` or `elasticsearch_qdrant`.
    :param mode: A file of that folder, such as `simple`, `read` or `index`. A `Path` is a pipeline file of your own,
        anywhere; a string never is, so that a mode's name from an untrusted place cannot open a file.
    :param data_dir: Where the embedded stores keep their data; None for $SHIGUAN_DATA_DIR or the user's data folder.
    :param outputs: Names from the file's `outputs` section; only the components that they need are built. For
        example `["documents"]` builds the retrieval alone, without a prompt or a generator. None builds everything.
    :returns: The pipeline. It can run in an event loop (`run_async`) and outside one (`run`).
    :raises ConfigurationError: If there is no such deployment, mode or output, or the file is broken.
    :raises UnsafePipelineError: If building the file could run code or show one tenant's documents to another (what
        `shiguan check` refuses), or if HAYSTACK_UNSAFE_DESERIALIZATION is set.
    """
    if os.environ.get("SHIGUAN_PROMPTS_DIR"):
        from shiguan.llm.prompts import check_own_prompts  # noqa: PLC0415  # ingesting needs no prompts

        check_own_prompts()
    return _built(read_definition(deployment, mode), data_dir, outputs)


def load_ingest(
    deployment: str, *, data_dir: str | Path | None = None, outputs: list[str] | None = None
) -> tuple[dict[str, Any], "ModePipeline"]:
    """Load what ingests: the definition of `read.yml`, which is built in another process, and `index.yml`."""
    index = read_definition(deployment, "index")
    if "sources" in index["inputs"]:
        reading, index = _split(index)
    else:
        reading = read_definition(deployment, "read")
    return _with_sections_aside(reading), _built(index, data_dir, outputs)


def _split(definition: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split an `index.yml` of version 0.2, which read files too, before it stamps documents with their tenant."""
    logger.warning(
        "%s/index.yml reads files itself, which the next release will refuse. Move everything before `SourceStamper` "
        "to a read.yml beside it; docs/migrating.md says how.",
        definition["metadata"]["deployment"],
    )
    connections = definition.get("connections") or []
    stampers = set(map(_owner, (definition.get("inputs") or {}).get("tenant_id", [])))
    walls = [edge for edge in connections if _owner(edge["receiver"]) in stampers]
    reading: dict[str, Any] = {"components": {}}
    if walls:
        reading = pruned({**definition, "outputs": {"documents": walls[0]["sender"]}}, ["documents"])
    first = reading["components"]
    crossing = [
        edge for edge in connections if (_owner(edge["sender"]) in first) != (_owner(edge["receiver"]) in first)
    ]
    if len(walls) != 1 or crossing != walls:
        raise ConfigurationError(
            f"The pipeline `{_title(definition)}` cannot be split into a part that reads files and a part that stores "
            f"documents: {len(crossing)} connections lead from one to the other, where one to `SourceStamper` is "
            "expected. Move what reads files to a read.yml beside it; docs/migrating.md says how."
        )
    keeping = _limited(definition, definition["components"].keys() - first.keys(), connections)
    keeping["inputs"]["documents"] = [walls[0]["receiver"]]
    return reading, keeping


def _with_sections_aside(definition: dict[str, Any]) -> dict[str, Any]:
    """Move the sections that Haystack does not know into the metadata."""
    rest = {key: value for key, value in definition.items() if key not in _SECTIONS}
    sections = {section: definition.get(section) or {} for section in _SECTIONS}
    return {**rest, "metadata": {**definition["metadata"], **sections}}


def _title(definition: dict[str, Any]) -> str:
    return f"{definition['metadata']['deployment']}/{definition['metadata']['mode']}"


def _built(definition: dict[str, Any], data_dir: str | Path | None, outputs: list[str] | None) -> "ModePipeline":
    if outputs is not None:
        definition = pruned(definition, outputs)
    _set_data_dir(definition, data_dir)
    # Finding a file, or refusing it, must not wait for the import of Haystack.
    from shiguan.engine.mode_pipeline import ModePipeline  # noqa: PLC0415
    from shiguan.haystack_compat import template_environment  # noqa: PLC0415
    from shiguan.llm.prompts import limit_rendering  # noqa: PLC0415

    definition, name = _with_sections_aside(definition), _title(definition)
    _set_models(definition)
    try:
        pipeline = ModePipeline.from_dict(definition)
        for _, part in pipeline.walk():
            if (environment := template_environment(part)) is not None:
                limit_rendering(environment)
        return pipeline
    except Exception as error:  # Haystack raises whatever a component's __init__ raised.
        if "needs the package" not in str(error):  # errors of the stores name their extra themselves
            _require_extra(definition, name)
        raise ConfigurationError(
            f"The pipeline `{name}` could not be built: {error} Correct the file, or what it needs."
        ) from error


def list_modes() -> dict[str, list[str]]:
    """Return the modes of each deployment, from the quickest on, then your own; first the one that needs no server."""
    modes: dict[str, set[str]] = {}
    for file in (file for folder in _folders() for file in folder.glob("*/*.yml")):
        modes.setdefault(file.parent.name, set()).add(file.stem)
    order = {mode: at for at, mode in enumerate(("simple", "advanced", "precise", "agent"))}
    return {
        deployment: sorted(modes[deployment].difference(OTHER_FILES), key=lambda mode: (order.get(mode, 4), mode))
        for deployment in sorted(modes, key=lambda name: (name != "embedded", name))
    }


def describe_mode(deployment: str, mode: str | Path) -> str:
    """Return the comment that opens a mode's file: what it is for, what it costs, what it needs."""
    lines = pipeline_path(deployment, mode).read_text(encoding="utf-8-sig").splitlines()
    return "\n".join(line.lstrip("# ").rstrip() for line in takewhile(lambda line: line.startswith("#"), lines))


def pipeline_path(deployment: str, mode: str | Path) -> Path:
    known = list_modes()
    if deployment not in known:
        raise ConfigurationError(
            f"There is no deployment `{deployment}`. Known deployments: {', '.join(known)}. Name one of these."
        )
    if isinstance(mode, Path):
        if not mode.is_file():
            raise ConfigurationError(f"{mode} does not exist. Check the path.")
        return mode
    if mode in {*known[deployment], *INGESTING}:
        if (path := _file(deployment, mode)) is not None:
            return path
        raise ConfigurationError(
            f"The deployment `{deployment}` has no {mode}.yml, which it needs to ingest. Copy that of `embedded` into "
            "its folder and adapt it."
        )
    raise ConfigurationError(
        f"The deployment `{deployment}` has no mode `{mode}`. Known modes: {', '.join(known[deployment])}. "
        "Name one of these."
    )


def _file(deployment: str, name: str) -> Path | None:
    paths = (folder / deployment / f"{name}.yml" for folder in _folders())
    return next((path for path in paths if path.is_file()), None)


def _folders() -> list[Path]:
    """Return the folders of deployments; the user's own files take precedence over packaged ones of the same name."""
    shipped = resource_folder("pipelines")
    own = os.environ.get("SHIGUAN_PIPELINES_DIR")
    if not own:
        return [shipped]
    if not Path(own).is_dir():
        raise ConfigurationError(
            f"$SHIGUAN_PIPELINES_DIR names {own}, which is not a folder. Make it, with a folder for each deployment, "
            "or unset the variable."
        )
    return [Path(own), shipped]


def read_definition(deployment: str, mode: str | Path, *, build: bool = True) -> dict[str, Any]:
    """Read a mode's YAML as data and check that it is valid and safe to build; `build` as in `check_pipeline`."""
    name = str(mode) if isinstance(mode, Path) else f"{deployment}/{mode}.yml"
    report = check_pipeline(pipeline_path(deployment, mode), name, build=build)
    if report.error is not None:
        raise report.error
    if report.allowed_types:
        logger.warning("%s is checked with more types than Shiguan allows: %s", name, ", ".join(report.allowed_types))
    return _described(report.content or {}, deployment, mode)


def _described(definition: dict[str, Any], deployment: str, mode: str | Path) -> dict[str, Any]:
    """Add where a file is from, and merge `options` into `inputs`; stock Hayhooks requires every one of `inputs`."""
    inputs = dict(definition.get("inputs") or {})
    for name, targets in (definition.get("options") or {}).items():
        inputs[name] = [*inputs.get(name, []), *targets]
    own = definition.get("metadata") or {}
    metadata = {
        **own,
        "deployment": deployment,
        "mode": mode.stem if isinstance(mode, Path) else mode,
        "comment": describe_mode(deployment, mode) or own.get("comment", ""),
    }
    rest = {key: value for key, value in definition.items() if key != "options"}
    return {**rest, "inputs": inputs, "metadata": metadata}


def mappings(node: Any) -> Iterator[dict[str, Any]]:
    """Yield every mapping of a checked file in order, one that has an anchor wherever it is used."""
    if isinstance(node, dict):
        yield node
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from mappings(inner)


def _require_extra(definition: dict[str, Any], name: str) -> None:
    """Raise an error that names the missing extra, where Haystack would name one of its modules."""
    needed = any(str(node.get("type", "")).startswith(_SENTENCE_TRANSFORMERS) for node in mappings(definition))
    if needed and find_spec("sentence_transformers") is None:
        raise ConfigurationError(
            f"The pipeline `{name}` embeds with sentence-transformers, which is not installed. Install it with "
            f"`{install_command('transformers')}`; docs/deploy.md says how without GPU packages."
        )


def _set_data_dir(definition: dict[str, Any], data_dir: str | Path | None) -> None:
    """Set the data folder of every embedded store that names none itself; None leaves it to the store."""
    for node in mappings(definition) if data_dir is not None else ():
        if str(node.get("type", "")).startswith(_STORE_PREFIX):
            parameters = node.setdefault("init_parameters", {})
            if "document_store" not in parameters:
                parameters["path"] = parameters.get("path") or str(data_dir)


def _set_models(definition: dict[str, Any]) -> None:
    """Set the models of every generator that names none itself to those of the deployment's `models.yml`."""
    section = _read_models(definition["metadata"]["deployment"])
    for node in mappings(definition) if section is not None else ():
        if node.get("type") == _GENERATOR:
            parameters = node.setdefault("init_parameters", {})
            if parameters.get("models") is None and parameters.get("model") is None:
                parameters["models"] = section


def _read_models(deployment: str) -> dict[str, Any] | None:
    """Read and check a deployment's `models.yml`, if it has one."""
    path = _file(deployment, "models")
    try:
        section = read_pipeline_file(path).content if path and read_yaml(path) is not None else None
        read_model_roles(section)
    except (yaml.YAMLError, UnreadableFile, ValueError, TypeError, OSError) as error:
        raise ConfigurationError(
            f"{path} cannot be used: {' '.join(str(error).split())[:300]} Correct it; docs/models.md shows the file."
        ) from error
    return section


def has_model(deployment: str) -> bool:
    """Return whether a deployment has a model that can be asked, without which every mode quotes passages."""
    return any(model.is_usable for model in read_model_roles(_read_models(deployment)).models)


def load_stores(deployment: str, *, conversations: bool = False, data_dir: str | Path | None = None) -> dict[str, Any]:
    """Build a deployment's stores without the components around them; that of conversations only if it has one."""
    from haystack.core.serialization import default_from_dict, import_class_by_name  # noqa: PLC0415

    from shiguan.haystack_compat import allow_types  # noqa: PLC0415

    # Opening a store must not import the converters and embedders that filled it.
    index = read_definition(deployment, "index", build=False)
    specs = {
        "parents": parameter_of(index, PASSAGE_WRITER, "parent_store"),
        "children": parameter_of(index, PASSAGE_WRITER, "child_store"),
    }
    if missing := [kind for kind, spec in specs.items() if spec is None]:
        raise ConfigurationError(
            f"{deployment}/index.yml does not say where {missing[0]} are kept. Add a component `{PASSAGE_WRITER}` with "
            "a `parent_store` and a `child_store`."
        )
    if conversations:
        mode = read_definition(deployment, first_mode(deployment), build=False)
        if (spec := parameter_of(mode, CONVERSATION, "conversation_store")) is not None:
            specs["conversations"] = spec
    _set_data_dir(specs, data_dir)
    allow_types(specs)
    return {kind: default_from_dict(import_class_by_name(spec["type"]), spec) for kind, spec in specs.items()}


def parameter_of(definition: dict[str, Any], component: str, name: str) -> Any:
    """Return a parameter of a component; None where the file has no such component, or leaves it out."""
    return (definition["components"].get(component, {}).get("init_parameters") or {}).get(name)


def first_mode(deployment: str) -> str:
    """Return the mode that represents a deployment: `simple`, or its first mode."""
    return (list_modes().get(deployment) or ["simple"])[0]


def pruned(definition: dict[str, Any], outputs: list[str]) -> dict[str, Any]:
    """Keep the components that some outputs need, and the connections and inputs between them."""
    declared: dict[str, str] = definition.get("outputs") or {}
    unknown = [output for output in outputs if output not in declared]
    if unknown:
        raise ConfigurationError(
            f"The pipeline `{_title(definition)}` has no output `{unknown[0]}`. Its outputs: {', '.join(declared)}. "
            "Name one of these."
        )
    import networkx as nx  # noqa: PLC0415

    connections = definition.get("connections") or []
    edges = [(_owner(edge["sender"]), _owner(edge["receiver"])) for edge in connections]
    fed = {receiver for _, receiver in edges}
    graph = nx.DiGraph()
    graph.add_nodes_from(sorted(definition["components"], key=lambda component: component in fed))
    graph.add_edges_from(edges)
    # Edges that lead back close a loop, and the first round of a loop needs nothing from them.
    place = {component: at for at, component in enumerate(nx.dfs_postorder_nodes(graph))}
    leads_on = [place[sender] > place[receiver] for sender, receiver in edges]
    graph.remove_edges_from(edge for edge, on in zip(edges, leads_on, strict=True) if not on)
    ends = {_owner(declared[output]) for output in outputs}
    needed = ends.union(*(nx.ancestors(graph, end) for end in ends))
    return _limited(definition, needed, [edge for edge, on in zip(connections, leads_on, strict=True) if on])


def _limited(definition: dict[str, Any], kept: Collection[str], connections: list[dict[str, str]]) -> dict[str, Any]:
    """Keep some components, and the connections, inputs and outputs that touch only these."""

    def own(target: str) -> bool:
        return _owner(target) in kept

    inputs = {key: [*filter(own, targets)] for key, targets in (definition.get("inputs") or {}).items()}
    return {
        **definition,
        "components": {key: spec for key, spec in definition["components"].items() if key in kept},
        "connections": [edge for edge in connections if own(edge["sender"]) and own(edge["receiver"])],
        "inputs": {key: targets for key, targets in inputs.items() if targets},
        "outputs": {key: target for key, target in (definition.get("outputs") or {}).items() if own(target)},
    }


def _owner(target: str) -> str:
    """Return the component of a socket that is written as `component.socket`."""
    return target.partition(".")[0]
