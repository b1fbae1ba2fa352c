"""No change of our files that lets a tenant see another's documents gets past the check."""

import json
import re
import sys
from collections import Counter
from functools import cache

import pytest
from haystack import Document, component
from haystack.core.errors import PipelineRuntimeError
from tests.security.mutant_parts import THEIRS, checked, load, spoken
from tests.security.tenant_mutants import FILES, mutants

from shiguan.checking.pipeline_check import check_pipeline
from shiguan.engine.loading import load_stores, mappings, pruned
from shiguan.haystack_compat import AsyncPipeline
from shiguan.memory import conversation_reader
from shiguan.tenants import TenantGuarded, asked_by

SHOWN = [path for path in FILES if path.parent.name == "embedded" and path.stem != "index"]


def file_name(path):
    return f"{path.parent.name}/{path.stem}"


@pytest.fixture(params=FILES, ids=file_name)
def file(request):
    return request.param


def test_the_file_itself_is_fine(file, tmp_path):
    assert check_pipeline(file, file_name(file)).findings == []
    assert checked(load(file), tmp_path).findings == []


def kind(mutant):
    """What was done, without the names of what it was done to."""
    return re.sub(r"\S*[._\dA-Z]\S*", "", mutant.name.rpartition(": ")[2])


@cache
def chosen():
    """One mutant of every kind; the files take turns, and so do the components of a file."""
    kinds: dict = {}
    for path in FILES:
        for mutant in mutants(path):
            kinds.setdefault(kind(mutant), []).append(mutant.id)
    assert len(kinds) >= 50
    return {found[place * 7 % len(found)] for place, found in enumerate(kinds.values())}


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["one of a kind", "every"])
def test_a_mutant_is_refused_for_what_was_done_to_it(file, tmp_path, every):
    let_through, beside_the_point = [], []
    tried = [mutant for mutant in mutants(file) if every or mutant.id in chosen()]
    assert tried
    for mutant in tried:
        findings = checked(mutant.data, tmp_path).findings
        outside = "from outside of the loop" in mutant.name  # refused because it ends with the first round
        to_the_point = [one for one in findings if one.check == ("starvation" if outside else "tenants") or "filter_policy" in one.where]  # fmt: skip
        if not to_the_point:
            let_through.append(mutant.id)
        # Whatever else is found would refuse a mutant that is broken rather than harmful.
        if not all(one in to_the_point or one.check == "starvation" for one in findings):
            beside_the_point.append((mutant.id, list(map(str, findings))))
    assert let_through == []
    assert beside_the_point == []


def test_there_are_at_least_two_hundred_mutants_and_no_two_are_the_same():
    everything = [mutant for path in FILES for mutant in mutants(path)]
    assert len(everything) >= 200
    assert max(Counter(mutant.id for mutant in everything).values()) == 1
    texts = Counter((mutant.file, json.dumps(mutant.data, sort_keys=True)) for mutant in everything)
    assert [mutant.id for mutant in everything if texts[mutant.file, json.dumps(mutant.data, sort_keys=True)] > 1] == []


@component
class FlatEmbedder:
    """Embeds everything alike, so that every document is near; with the inputs of `HyDEEmbedder` too."""

    @component.output_types(embedding=list[float], warnings=list[str], llm_calls=int)
    def run(self, text: str | list[str], use_hyde: bool | None = None):
        return {"embedding": [1.0] + [0.0] * 383, "warnings": [], "llm_calls": 0}


@component
class InOrder:
    """Ranks by leaving the order as it is."""

    @component.output_types(documents=list[Document], warnings=list[str])
    def run(self, query: str, documents: list[Document], filters: dict | None = None, top_k: int | None = None):
        return {"documents": documents, "warnings": []}


def without_models(node):
    if isinstance(node, dict):
        if str(node.get("type", "")).endswith("TextEmbedder"):
            return {"type": f"{FlatEmbedder.__module__}.FlatEmbedder", "init_parameters": {}}
        if str(node.get("type", "")).endswith("HyDEEmbedder"):
            return without_models(node["init_parameters"]["text_embedder"])
        return {key: without_models(value) for key, value in node.items()}
    return [without_models(value) for value in node] if isinstance(node, list) else node


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """One passage of each of two tenants; both answer the question."""
    folder = tmp_path_factory.mktemp("two-tenants")
    stores = load_stores("embedded", data_dir=folder)
    texts = {
        "ours": "Guo Ziyi took the capital back from the rebels.",
        "theirs": "In a letter that nobody else shall read, Guo Ziyi asked to be let go home.",
    }
    for tenant, text in texts.items():
        meta = {"tenant_id": tenant, "source_id": tenant, "title": "Annals", "position": 0}
        parent = Document(id=f"{tenant}-parent", content=text, meta=meta)
        child_meta = {**meta, "parent_id": parent.id, "start": 0, "end": len(text)}
        stores["parents"].write_documents([parent])
        stores["children"].write_documents(
            [Document(id=f"{tenant}-child", content=text, meta=child_meta, embedding=[1.0] + [0.0] * 383)]
        )
    return folder


def seen_tenants(data, library, filters):
    """Run what finds passages, as the tenant `ours` that tries everything a caller can say, and see whose come out."""
    data = without_models(data)
    for node in mappings(data):
        if str(node.get("type", "")).endswith("QdrantEdgeDocumentStore"):
            node["init_parameters"]["path"] = str(library)
    if "ranker" in data["components"]:
        data["components"]["ranker"] = {"type": f"{InOrder.__module__}.InOrder", "init_parameters": {}}
    data["outputs"] = {**{key: value for key, value in data["outputs"].items() if key == "library"}, "documents": "context_builder.documents"}  # fmt: skip
    data = pruned(data, list(data["outputs"]))
    said = {"query": "Guo Ziyi", "tenant_id": "ours", "owner": "theirs", "filters": filters, "where": filters}
    pipeline = AsyncPipeline.from_dict(data)
    try:
        with asked_by("ours"):
            results = pipeline.run(spoken(data, said), include_outputs_from=set(data["components"]))
    except (ValueError, PipelineRuntimeError):
        return set()  # an attack that this mutant cannot run, or that a store refuses, shows nothing
    outputs = [results.get(target.partition(".")[0], {}).get("documents", []) for target in data["outputs"].values()]
    return {document.meta["tenant_id"] for documents in outputs for document in documents}


@pytest.mark.parametrize("path", SHOWN, ids=file_name)
def test_the_file_itself_shows_the_tenants_own_passages_only(path, library):
    assert seen_tenants(load(path), library, None) == {"ours"}
    assert seen_tenants(load(path), library, THEIRS) == set()


@pytest.fixture
def unguarded(monkeypatch):
    """Stores, retrievers and fetchers as they are where nothing but the check stands before them."""
    everything = {"field": "id", "operator": "!=", "value": ""}
    monkeypatch.setattr(TenantGuarded, "_scoped", False)
    monkeypatch.setattr(conversation_reader, "tenant_of", lambda filters: "ours")
    for module in [sys.modules[name] for name in sys.modules if name.startswith("shiguan.")]:
        if hasattr(module, "require_filters"):
            monkeypatch.setattr(module, "require_filters", lambda filters, asked: filters or everything)


@pytest.mark.parametrize("path", SHOWN, ids=file_name)
def test_mutants_show_nothing_where_the_stores_are_guarded(path, library):
    """What holds without the check: a store knows for whom the pipeline runs, on whichever way its filters come."""
    for mutant in mutants(path):
        for filters in (None, THEIRS) if mutant.shows else ():
            assert "theirs" not in seen_tenants(mutant.data, library, filters), mutant.id


@pytest.mark.parametrize("path", SHOWN, ids=file_name)
@pytest.mark.usefixtures("unguarded")
def test_mutants_do_show_another_tenants_passages_when_they_are_run(path, library):
    """So a mutant is refused for real harm."""
    shown = [mutant for mutant in mutants(path) if mutant.shows]
    assert len(shown) >= 10
    harmless = [
        mutant.id
        for mutant in shown
        if not any("theirs" in seen_tenants(mutant.data, library, filters) for filters in (None, THEIRS))
    ]
    assert harmless == []
