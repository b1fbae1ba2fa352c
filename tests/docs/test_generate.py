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


@pytest.mark.parametrize("name", ["modes", "options"])
def test_a_generated_page_is_up_to_date(generate, name):
    page = getattr(generate, f"{name}_page")()
    assert (DOCS / f"{name}.md").read_text(encoding="utf-8") == page, "run `make docs`"


def test_the_reference_has_every_component(generate):
    page = generate.reference_page()
    assert "### ConversationReader" in page
    assert "- `text`: The question, or the question and its other wordings." in page
