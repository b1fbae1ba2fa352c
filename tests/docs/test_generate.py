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


def test_the_reference_has_every_component(generate):
    page = generate.reference_page()
    assert "### ConversationReader" in page
    assert "- `text`: The question, or the question and its other wordings." in page


def test_the_page_of_options_is_up_to_date(generate):
    assert (DOCS / "options.md").read_text(encoding="utf-8") == generate.options_page(), "run `make docs`"
