from pathlib import Path

import pytest
from huggingface_hub import constants, hf_hub_download, resolve_revision

from shiguan.support.model_cache import PACKAGED_MODEL, packaged_file, seed_model_cache

pytestmark = pytest.mark.transformers


@pytest.fixture
def hub_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def test_every_file_is_found_under_the_revision_that_the_name_stands_for(hub_cache):
    seed_model_cache.__wrapped__()
    revision = resolve_revision(PACKAGED_MODEL, local_files_only=True, cache_dir=hub_cache)
    found = hf_hub_download(
        PACKAGED_MODEL, "modules.json", revision=revision, local_files_only=True, cache_dir=hub_cache
    )
    assert "Normalize" in Path(found).read_text(encoding="utf-8")


def test_the_snapshot_of_an_earlier_release_is_replaced(hub_cache):
    repository = hub_cache / "models--sentence-transformers--all-MiniLM-L6-v2"
    former = repository / "snapshots" / "packaged-53aa51172d142c89d9012cce15ae4d6"
    former.mkdir(parents=True)
    for name in ("modules.json", "model.safetensors"):
        (former / name).write_bytes(b"{}")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(former.name)
    seed_model_cache.__wrapped__()
    assert [path.name for path in (repository / "snapshots").iterdir()] == ["53aa51172d142c89d9012cce15ae4d6cc0ca6895"]
    assert hf_hub_download(PACKAGED_MODEL, "modules.json", local_files_only=True, cache_dir=hub_cache)


def test_the_plain_name_gives_the_model_as_it_was_published():
    """Its window is 256 tokens and its embeddings have the length 1; both were lost where no module list was found."""
    from sentence_transformers import SentenceTransformer

    seed_model_cache()
    model = SentenceTransformer(PACKAGED_MODEL, device="cpu", local_files_only=True)
    assert model.max_seq_length == 256
    assert [type(module).__name__ for module in model] == ["Transformer", "Pooling", "Normalize"]
    assert packaged_file("modules.json").is_file()
