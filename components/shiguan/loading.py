"""From a YAML file to a pipeline that can run: found by name, checked, pruned to what is asked of it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from haystack import AsyncPipeline
from haystack.core.serialization import default_from_dict, import_class_by_name

from shiguan.errors import ConfigurationError, UnsafePipelineError
from shiguan.resources import resource_folder
from shiguan.support.model_cache import PACKAGED_MODEL, seed_model_cache

ALLOWED_TYPES = (
    "haystack.components.",
    "haystack.document_stores.in_memory.",
    "haystack_integrations.components.",
    "haystack_integrations.document_stores.",
    "shiguan.",
)
"""Where a `type:` in a pipeline file may come from. Anything else is refused before it is imported."""

_MAX_BYTES = 1_000_000
# Haystack copies a definition without noticing shared anchors, so that a few lines of them would grow without end.
_MAX_NODES = 100_000
_STORE_PREFIX = "shiguan.stores."


def load_pipeline(
    deployment: str, mode: str | Path, *, data_dir: str | Path | None = None, outputs: list[str] | None = None
) -> AsyncPipeline:
    """
    Load one mode of one deployment, ready to run.

        pipeline = load_pipeline("embedded", "simple")
        pipeline.run({"query": "...", ...})     # or await pipeline.run_async(...)

    The file's own `inputs`, `outputs` and `explain` come back in `pipeline.metadata`, so that a caller need not know
    which component listens to the question: see `shiguan.Runner`, which uses them.

    :param deployment: A folder of `pipelines/`: `embedded` or `elasticsearch_qdrant`.
    :param mode: A file of that folder: `simple`, `advanced`, `precise` or `index`. A `Path` is a pipeline file of your
        own, anywhere; a string never is, so that a mode's name that comes from elsewhere opens no file.
    :param data_dir: Where the embedded stores keep their data; None leaves it to $SHIGUAN_DATA_DIR, else the user's
        data folder.
    :param outputs: Names from the file's `outputs` section; only the components that they need are built. For
        example `["documents"]` gives the retrieval alone, without a prompt or a generator. None builds everything.
    :returns: The pipeline. It can run in an event loop (`run_async`) and outside one (`run`).
    :raises ConfigurationError: If there is no such deployment, mode or output, or the file is broken.
    :raises UnsafePipelineError: If the file asks for something outside the allowlist.
    """
    definition = read_definition(deployment, mode)
    if outputs is not None:
        definition = _pruned(definition, outputs, f"{deployment}/{_name(mode)}")
    if data_dir is not None:
        _set_data_dir(definition, str(data_dir))
    if any(node.get("model") == PACKAGED_MODEL for node in _mappings(definition)):
        seed_model_cache()
    definition["metadata"] = {
        **definition.get("metadata", {}),
        "deployment": deployment,
        "mode": _name(mode),
        "inputs": definition.pop("inputs", {}),
        "outputs": definition.pop("outputs", {}),
        "explain": definition.pop("explain", {}),
    }
    try:
        return AsyncPipeline.from_dict(definition)
    except Exception as error:  # Haystack raises whatever a component's __init__ raised; all of it is configuration.
        raise ConfigurationError(
            f"The pipeline `{deployment}/{_name(mode)}` could not be built: {error} Correct the file, or what it needs."
        ) from error


def list_modes() -> dict[str, list[str]]:
    """
    Name what can be loaded.

    :returns: Each deployment with its modes, `index` left out.
    """
    folder = resource_folder("pipelines")
    return {
        deployment.name: sorted(file.stem for file in deployment.glob("*.yml") if file.stem != "index")
        for deployment in sorted(folder.iterdir())
        if deployment.is_dir() and any(deployment.glob("*.yml"))
    }


def describe_mode(deployment: str, mode: str) -> str:
    """
    Give the comment that opens a mode's file: what it is for, what it costs, what it needs.

    :param deployment: A folder of `pipelines/`.
    :param mode: A file of that folder.
    :returns: The comment's lines without their `#`.
    """
    lines = []
    for line in pipeline_path(deployment, mode).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# ").rstrip())
    return "\n".join(lines)


def pipeline_path(deployment: str, mode: str | Path) -> Path:
    """
    Find the file of a mode.

    :param deployment: A folder of `pipelines/`.
    :param mode: A file of that folder, without `.yml`; a `Path` is the file itself.
    :returns: The file's path.
    :raises ConfigurationError: If there is none; the message lists what there is.
    """
    known = list_modes()
    if deployment not in known:
        raise ConfigurationError(
            f"There is no deployment `{deployment}`. Known deployments: {', '.join(known)}. Name one of these."
        )
    if isinstance(mode, Path):
        if not mode.is_file():
            raise ConfigurationError(f"There is no pipeline file {mode}. Check the path.")
        return mode
    path = resource_folder("pipelines") / deployment / f"{mode}.yml"
    if mode not in [*known[deployment], "index"] or not path.is_file():
        raise ConfigurationError(
            f"The deployment `{deployment}` has no mode `{mode}`. Known modes: {', '.join(known[deployment])}. "
            "Name one of these."
        )
    return path


def read_definition(deployment: str, mode: str | Path) -> dict[str, Any]:
    """
    Read a mode's YAML as data and check that it is safe to build.

    :param deployment: A folder of `pipelines/`.
    :param mode: A file of that folder, or a `Path`.
    :returns: The file's content.
    :raises ConfigurationError: If the file is missing or no pipeline.
    :raises UnsafePipelineError: If the file asks for something outside the allowlist.
    """
    path = pipeline_path(deployment, mode)
    if path.stat().st_size > _MAX_BYTES:
        raise UnsafePipelineError(
            f"{path.name} has {path.stat().st_size} bytes; a pipeline file has under {_MAX_BYTES}."
        )
    try:
        definition = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"{deployment}/{path.name} is not valid YAML: {error}. Correct the file.") from error
    if not isinstance(definition, dict) or not isinstance(definition.get("components"), dict):
        raise ConfigurationError(f"{deployment}/{path.name} is no pipeline: it has no `components`. Correct the file.")
    if _expanded_size(definition, {}) > _MAX_NODES:
        raise UnsafePipelineError(
            f"{deployment}/{path.name} grows beyond {_MAX_NODES:,} nodes when its anchors are written out. Remove the "
            "anchors that contain other anchors over and over."
        )
    _check_safe(definition, f"{deployment}/{path.name}")
    return definition


def _name(mode: str | Path) -> str:
    return mode.stem if isinstance(mode, Path) else mode


def _check_safe(definition: dict[str, Any], name: str) -> None:
    if os.environ.get("HAYSTACK_UNSAFE_DESERIALIZATION"):
        raise UnsafePipelineError(
            "HAYSTACK_UNSAFE_DESERIALIZATION is set, which lets a pipeline file load any code. Unset it and try again."
        )
    for node in _mappings(definition):
        kind = node.get("type")
        if isinstance(kind, str) and "init_parameters" in node and not kind.startswith(ALLOWED_TYPES):
            raise UnsafePipelineError(
                f"{name} asks for the type `{kind}`. Allowed are types below {', '.join(ALLOWED_TYPES)}. "
                "Use one of these, or load the file with Haystack yourself if you trust it."
            )
        if node.get("unsafe"):
            raise UnsafePipelineError(
                f"{name} sets `unsafe: {node['unsafe']}`, which lets a template run code. Remove it."
            )
    for component, spec in definition["components"].items():
        if not isinstance(spec, dict) or not isinstance(spec.get("type"), str):
            raise ConfigurationError(f"{name}: the component `{component}` has no `type`. Give its full module path.")
        if not spec["type"].startswith(ALLOWED_TYPES):
            raise UnsafePipelineError(f"{name} asks for the type `{spec['type']}`, which is not allowed. Remove it.")


def _expanded_size(node: Any, sizes: dict[int, int]) -> int:
    """Count the nodes of a YAML tree as if every anchor were written out; each anchor is visited once."""
    if not isinstance(node, dict | list):
        return 1
    if id(node) not in sizes:
        sizes[id(node)] = _MAX_NODES  # an anchor that contains itself has no end
        children = node.values() if isinstance(node, dict) else node
        sizes[id(node)] = 1 + sum(_expanded_size(child, sizes) for child in children)
    return sizes[id(node)]


def _mappings(node: Any) -> Iterator[dict[str, Any]]:
    """Every mapping of a YAML tree once, however many anchors point to it."""
    stack, seen = [node], set()
    while stack:
        current = stack.pop()
        if not isinstance(current, dict | list) or id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, dict):
            yield current
            stack.extend(current.values())
        else:
            stack.extend(current)


def _set_data_dir(definition: dict[str, Any], data_dir: str) -> None:
    for node in _mappings(definition):
        if str(node.get("type", "")).startswith(_STORE_PREFIX) and "document_store" not in node.get(
            "init_parameters", {}
        ):
            node.setdefault("init_parameters", {}).setdefault("path", data_dir)


def _without_loops(components: list[str], connections: list[dict[str, str]]) -> list[dict[str, str]]:
    """Leave out the connections that lead back: the first round of a loop needs nothing from them."""
    state: dict[str, str] = {}
    kept: list[dict[str, str]] = []

    def visit(component: str) -> None:
        state[component] = "open"
        for edge in connections:
            if edge["sender"].split(".")[0] != component:
                continue
            receiver = edge["receiver"].split(".")[0]
            if state.get(receiver) == "open":
                continue
            kept.append(edge)
            if receiver not in state:
                visit(receiver)
        state[component] = "done"

    fed = {edge["receiver"].split(".")[0] for edge in connections}
    for component in sorted(components, key=lambda name: name in fed):
        if component not in state:
            visit(component)
    return kept


def _pruned(definition: dict[str, Any], outputs: list[str], name: str) -> dict[str, Any]:
    """Keep the components that the named outputs need, and the connections and inputs between them."""
    declared: dict[str, str] = definition.get("outputs", {})
    unknown = [output for output in outputs if output not in declared]
    if unknown:
        raise ConfigurationError(
            f"The pipeline `{name}` has no output `{unknown[0]}`. Its outputs: {', '.join(declared)}. Name one "
            "of these."
        )
    connections = _without_loops(list(definition["components"]), definition.get("connections", []))
    needed: set[str] = set()
    frontier = [declared[output].split(".")[0] for output in outputs]
    while frontier:
        component = frontier.pop()
        if component not in needed:
            needed.add(component)
            frontier += [
                edge["sender"].split(".")[0] for edge in connections if edge["receiver"].split(".")[0] == component
            ]
    inputs = {
        key: kept
        for key, targets in definition.get("inputs", {}).items()
        if (kept := [target for target in targets if target.split(".")[0] in needed])
    }
    return {
        **definition,
        "components": {key: spec for key, spec in definition["components"].items() if key in needed},
        "connections": [edge for edge in connections if edge["receiver"].split(".")[0] in needed],
        "inputs": inputs,
        "outputs": {output: target for output, target in declared.items() if target.split(".")[0] in needed},
        "explain": {
            key: target for key, target in definition.get("explain", {}).items() if target.split(".")[0] in needed
        },
    }


def load_stores(deployment: str, *, data_dir: str | Path | None = None) -> dict[str, Any]:
    """
    Build a deployment's document stores alone, without the components around them.

    :param deployment: A folder of `pipelines/`.
    :param data_dir: Where the embedded stores keep their data; None as in `load_pipeline`.
    :returns: `parents` and `children`: the stores that the `index` pipeline writes to.
    :raises ConfigurationError: If the `index` pipeline does not name them as its writers' stores.
    """
    definition = read_definition(deployment, "index")
    if data_dir is not None:
        _set_data_dir(definition, str(data_dir))
    stores = {}
    for name, writer in (("parents", "parent_writer"), ("children", "child_writer")):
        try:
            spec = definition["components"][writer]["init_parameters"]["document_store"]
        except (KeyError, TypeError) as error:
            raise ConfigurationError(
                f"{deployment}/index.yml has no component `{writer}` with a `document_store`. Add it: it says where "
                f"{name} are kept."
            ) from error
        stores[name] = default_from_dict(import_class_by_name(spec["type"]), spec)
    return stores
