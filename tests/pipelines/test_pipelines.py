"""Every pipeline file is loaded, is what it says, and keeps the tenant's documents apart."""

import pytest
import yaml
from haystack import Document, Pipeline
from tests.doubles.own_modes import PIPELINES

from shiguan.engine.loading import OTHER_FILES, describe_mode, load_pipeline
from shiguan.haystack_compat import AsyncPipeline

FILES = sorted(path for path in PIPELINES.glob("*/*.yml") if path.stem != "models")
MODES = [path for path in FILES if path.stem not in OTHER_FILES]


# The files of the servers name sentence-transformers models, whose components exist only with their extra.
FOR_SERVERS = {"elasticsearch_qdrant": pytest.mark.transformers}


def name(path):
    return f"{path.parent.name}/{path.stem}"


def marked(paths):
    return [pytest.param(path, id=name(path), marks=FOR_SERVERS.get(path.parent.name, ())) for path in paths]


def definition(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(params=marked(FILES))
def path(request):
    return request.param


@pytest.fixture(params=marked(MODES))
def mode(request):
    return request.param


def test_it_opens_with_what_it_is_for_what_it_costs_and_what_it_needs(path):
    comment = describe_mode(path.parent.name, path.stem)
    assert comment.startswith(f"{path.stem}: ")
    assert "LLM calls" in comment
    assert "Needs:" in comment


def test_a_mode_gives_answers_and_documents(mode):
    data = definition(mode)
    assert {"answers", "documents"} <= set(data["outputs"])
    assert set(data["inputs"]) == {"query", "tenant_id"}
    assert {"filters", "top_k", "language"} <= set(data["options"])


def test_the_retrieval_alone_needs_no_generator(mode):
    pipeline = load_pipeline(mode.parent.name, mode.stem, outputs=["documents"])
    assert "generator" not in pipeline.graph.nodes
    assert "citation_extractor" not in pipeline.graph.nodes
    assert {"parent_fetcher", "search"} & set(pipeline.graph.nodes)


def test_it_is_built_and_plain_haystack_writes_and_reads_it_without_losing_anything(path):
    pipeline = load_pipeline(path.parent.name, path.stem)
    assert set(pipeline.graph.nodes) == set(definition(path)["components"])
    before, after = pipeline.to_dict(), Pipeline.loads(pipeline.dumps()).to_dict()
    for written in (before, after):
        written["connections"].sort(key=str)
    assert after == before


@pytest.mark.parametrize("deployment", sorted({path.parent.name for path in FILES}))
def test_plain_haystack_reads_the_file_of_a_mode_itself(deployment, request):
    """Without the loader of this project: the file is a pipeline of Haystack's."""
    if deployment in FOR_SERVERS:
        pytest.importorskip("sentence_transformers")
    for mode in ("simple", "advanced", "precise"):
        text = (PIPELINES / deployment / f"{mode}.yml").read_text(encoding="utf-8")
        pipeline = AsyncPipeline.loads(text)
        assert set(pipeline.graph.nodes) == set(yaml.safe_load(text)["components"])
        assert AsyncPipeline.loads(pipeline.dumps()).to_dict()["components"] == pipeline.to_dict()["components"]


# As the embedded retrievers scale them: how far above the mean of what was found.
WORDS = {"words": 1.25, "both": 1.0, "low": 0.25}
VECTORS = {"both": 1.5, "vectors": 0.75, "far": 0.5}
FUSED = {
    # Half of each list's score, added up.
    "merge": {"both": 1.25, "words": 0.625, "vectors": 0.375, "far": 0.25, "low": 0.125},
    # 1 / (60 + rank) of each list, to the best possible.
    "reciprocal_rank_fusion": {
        "both": (61 / 62 + 1) / 2, "words": 1 / 2, "vectors": 61 / 62 / 2, "low": 61 / 63 / 2, "far": 61 / 63 / 2,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "deployment", ["embedded", *(pytest.param(name, marks=mark) for name, mark in FOR_SERVERS.items())]
)
@pytest.mark.parametrize("join_mode", FUSED)
def test_rank_fusion_is_one_word_away_in_simple(deployment, join_mode, tmp_path):
    shipped = (PIPELINES / deployment / "simple.yml").read_text(encoding="utf-8")
    own = definition(PIPELINES / deployment / "simple.yml")["x-joiner"]["init_parameters"]["join_mode"]
    assert shipped.count(f"join_mode: {own}") == 1
    file = tmp_path / "simple.yml"
    file.write_text(shipped.replace(f"join_mode: {own}", f"join_mode: {join_mode}"), encoding="utf-8")
    joiner = load_pipeline(deployment, file, outputs=["documents"]).get_component("joiner")
    lists = [[Document(id=key, score=score) for key, score in found.items()] for found in (WORDS, VECTORS)]
    found = {document.id: document.score for document in joiner.run(lists)["documents"]}
    assert found == pytest.approx(FUSED[join_mode])
    assert next(iter(found)) == "both"
