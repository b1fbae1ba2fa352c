"""What every component of ours keeps, whatever it does."""

import importlib
import inspect
import pkgutil

import pytest
from haystack.core.component import Component

import shiguan

PLUMBING = {"commands", "checking", "serving", "evaluation"}


def component_classes():
    for module in pkgutil.walk_packages(shiguan.__path__, "shiguan."):
        if module.name.count(".") < 2 or module.name.split(".")[1] in PLUMBING:
            continue
        for name, value in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if value.__module__ == module.name and not name.startswith("_") and issubclass(value, Component):
                yield value


CLASSES = sorted(component_classes(), key=lambda value: value.__name__)


def snake_case(name):
    for acronym, word in (
        ("EPUB", "Epub"),
        ("PDF", "Pdf"),
        ("JSONL", "Jsonl"),
        ("BM25", "Bm25"),
        ("OpenAI", "Openai"),
        ("HyDE", "Hyde"),
        ("CBDB", "Cbdb"),
        ("MCP", "Mcp"),
    ):
        name = name.replace(acronym, word)
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def test_the_components_are_found():
    names = {value.__name__ for value in CLASSES}
    assert {
        "TenantFilter",
        "RelevanceGrader",
        "ParentDocumentFetcher",
        "EPUBToDocument",
        "PDFToDocument",
        "CitationExtractor",
    } <= names


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_the_file_is_named_after_its_class(cls):
    assert cls.__module__.rsplit(".", 1)[1] == snake_case(cls.__name__)


def init_parameters(cls):
    return list(inspect.signature(cls.__init__).parameters.values())[1:] if "__init__" in vars(cls) else []


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_init_parameters_are_stored_under_their_own_names(cls):
    """Otherwise Haystack's `dumps` writes the default, silently."""
    for parameter in init_parameters(cls):
        assert f"self.{parameter.name} = " in inspect.getsource(cls.__init__)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_everything_after_the_first_parameter_is_keyword_only(cls):
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in init_parameters(cls)[1:])


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_both_twins_of_run_take_the_same(cls):
    if not hasattr(cls, "run_async"):
        pytest.skip("no async twin")
    assert inspect.signature(cls.run) == inspect.signature(cls.run_async)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_the_class_and_its_run_are_documented(cls):
    assert len(inspect.getdoc(cls) or "") > 80
    run = inspect.getdoc(cls.run) or ""
    for name in list(inspect.signature(cls.run).parameters)[1:]:
        assert f":param {name}:" in run
    assert ":returns:" in run
