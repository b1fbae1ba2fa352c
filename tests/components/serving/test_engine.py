"""The modes that a server loads when it starts."""

import pytest
import yaml

from shiguan.errors import ConfigurationError
from shiguan.serving.engine import Engine
from shiguan.serving.settings import ServingSettings

MODE = {
    "components": {
        "prompt": {
            "type": "haystack.components.builders.prompt_builder.PromptBuilder",
            "init_parameters": {"template": "{{ query }} {{ color }}", "required_variables": ["color"]},
        }
    },
    "connections": [],
    "inputs": {"query": ["prompt.query"]},
    "outputs": {"answers": "prompt.prompt"},
}


@pytest.mark.parametrize("section", ["inputs", "options"])
@pytest.mark.parametrize("name", ["color", "top_k"])
def test_a_mode_that_needs_more_than_a_question_is_refused_with_the_input_that_it_needs(
    tmp_path, monkeypatch, section, name
):
    mode = {**MODE, section: {**MODE.get(section, {}), name: ["prompt.color"]}}
    (tmp_path / "pipelines" / "embedded").mkdir(parents=True)
    (tmp_path / "pipelines" / "embedded" / "painted.yml").write_text(yaml.safe_dump(mode), encoding="utf-8")
    monkeypatch.setenv("SHIGUAN_PIPELINES_DIR", str(tmp_path / "pipelines"))
    why = rf"painted.*`prompt\.color` is required, and a question may come without `{name}`"
    with pytest.raises(ConfigurationError, match=why):
        Engine(ServingSettings(data_dir=tmp_path / "library"), modes=["painted"])
