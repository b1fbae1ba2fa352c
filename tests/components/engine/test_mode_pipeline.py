"""What one component does to its inputs, another one does not see; and what they share is not asked for its kind."""

from copy import deepcopy

import pytest
from haystack import Document, component
from haystack.core.pipeline.utils import _deepcopy_with_exceptions
from haystack.dataclasses import ByteStream, ChatMessage, GeneratedAnswer
from haystack.tools import Tool
from hypothesis import given
from hypothesis import strategies as st

from shiguan.engine.mode_pipeline import ModePipeline, _copied
from shiguan.text.passages import SharedDocument

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
META = st.dictionaries(st.text(min_size=1), st.lists(PLAIN))
DOCUMENTS = st.builds(Document, content=st.text(), meta=META, embedding=st.none() | st.lists(st.floats(0, 1)))
ANSWERS = st.builds(GeneratedAnswer, data=st.text(), query=st.text(), documents=st.lists(DOCUMENTS), meta=META)
VALUES = st.recursive(
    PLAIN | DOCUMENTS | ANSWERS | st.builds(ChatMessage.from_user, st.text()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner) | st.sets(PLAIN),
)


@given(VALUES)
def test_a_copy_is_the_one_that_haystack_makes(value):
    assert _copied(value) == _deepcopy_with_exceptions(value) == value


def test_what_hangs_below_a_document_or_an_answer_is_copied_too():
    document = Document(content="c", meta={"section": ["a"]}, embedding=[0.5], blob=ByteStream(b"b", meta={"x": [1]}))
    answer = GeneratedAnswer(data="d", query="q", documents=[document], meta={"citations": [{"number": 1}]})
    twin = _copied(answer)
    twin.documents[0].meta["section"].append("b")
    twin.documents[0].embedding.append(1.0)
    twin.documents[0].blob.meta["x"].append(2)
    twin.meta["citations"][0]["number"] = 2
    assert document.meta == {"section": ["a"]}
    assert document.embedding == [0.5]
    assert document.blob.meta == {"x": [1]}
    assert answer.meta == {"citations": [{"number": 1}]}


def no_tool() -> None:
    """Do nothing."""


def test_components_and_tools_are_passed_on_as_they_are():
    @component
    class Nothing:
        @component.output_types(value=int)
        def run(self) -> dict[str, int]:
            return {"value": 1}

    tool = Tool(name="t", description="d", parameters={"type": "object", "properties": {}}, function=no_tool)
    one = Nothing()
    copied = _copied({"tools": [tool], "component": one})
    assert copied["tools"][0] is tool
    assert copied["component"] is one


@component
class Spoiler:
    """Changes everything that it is given."""

    @component.output_types(seen=list)
    def run(self, documents: list[Document], settings: dict) -> dict[str, list]:
        seen = [(deepcopy(document.meta), document.score) for document in documents]
        for document in documents:
            document.meta["spoiled"] = True
            document.__dict__["score"] = -1.0
        documents.clear()
        settings["inner"].append("spoiled")
        return {"seen": [*seen, deepcopy(settings)]}


@component
class Source:
    """Gives the same documents to all."""

    @component.output_types(documents=list[Document], settings=dict)
    def run(self, kind: str) -> dict:
        make = SharedDocument if kind == "shared" else Document
        return {"documents": [make(id="d", meta={"a": 1}, score=0.5)], "settings": {"inner": []}}


@pytest.mark.parametrize("kind", ["shared", "plain"])
def test_components_that_change_their_inputs_change_nobody_elses(kind):
    pipeline = ModePipeline()
    pipeline.add_component("source", Source())
    for name in ("first", "second"):
        pipeline.add_component(name, Spoiler())
        pipeline.connect("source.documents", f"{name}.documents")
        pipeline.connect("source.settings", f"{name}.settings")
    results = pipeline.run({"source": {"kind": kind}})
    assert results["first"]["seen"][0] == results["second"]["seen"][0] == ({"a": 1}, 0.5)
    # Each sees the settings as they came, with its own change alone.
    assert results["first"]["seen"][1] == results["second"]["seen"][1] == {"inner": ["spoiled"]}


def test_what_a_caller_gets_is_not_what_the_next_component_changes():
    pipeline = ModePipeline()
    pipeline.add_component("source", Source())
    pipeline.add_component("spoiler", Spoiler())
    pipeline.connect("source.documents", "spoiler.documents")
    pipeline.connect("source.settings", "spoiler.settings")
    found = pipeline.run({"source": {"kind": "shared"}}, include_outputs_from={"source"})["source"]
    assert [(document.meta, document.score) for document in found["documents"]] == [({"a": 1}, 0.5)]
    assert found["settings"] == {"inner": []}
