import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_modes_is_up_to_date(generate):
    assert (DOCS / "modes.md").read_text(encoding="utf-8") == generate.modes_page(), "run `make docs`"


def test_the_page_of_components_is_up_to_date(generate):
    assert (DOCS / "components.md").read_text(encoding="utf-8") == generate.components_page(), "run `make docs`"


def test_the_page_of_options_is_up_to_date(generate):
    assert (DOCS / "options.md").read_text(encoding="utf-8") == generate.options_page(), "run `make docs`"


def test_a_diagram_has_every_component_and_connection(generate):
    lines = generate._diagram(
        {
            "components": {"a": {"type": "x.y.A"}, "b": {"type": "x.y.B"}},
            "connections": [{"sender": "a.text", "receiver": "b.query"}],
            "inputs": {"query": ["a.query"]},
            "outputs": {"answers": "b.answers"},
        }
    )
    assert '    a["a<br/><small>A</small>"]' in lines
    assert '    a -- "text" --> b' in lines
    assert "    in_query --> a" in lines
    assert "    b --> out_answers" in lines
