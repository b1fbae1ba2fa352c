import re

import pytest

from shiguan.errors import ConfigurationError
from shiguan.llm import prompts
from shiguan.llm.prompts import list_prompts, load_prompt, not_found_sentence


def test_an_unknown_prompt_lists_the_known_ones(tmp_path, monkeypatch):
    (tmp_path / "hyde.jinja").write_text("text", encoding="utf-8")
    (tmp_path / "simple.jinja").write_text("text", encoding="utf-8")
    monkeypatch.setattr(prompts, "resource_folder", lambda name: tmp_path)
    assert list_prompts() == ["hyde", "simple"]
    assert load_prompt("hyde") == "text"
    with pytest.raises(ConfigurationError, match=re.escape("no prompt `nope`. Known: hyde, simple")):
        load_prompt("nope")
    with pytest.raises(ConfigurationError):
        load_prompt("../simple")


@pytest.mark.parametrize("mode", ["simple", "advanced", "precise"])
def test_every_mode_says_not_found_in_both_languages(mode):
    sentences = {not_found_sentence(mode, "en"), not_found_sentence(mode, "zh")}
    assert len(sentences) == 2
    assert not_found_sentence(mode, "fr") == not_found_sentence(mode, "en")


def test_an_unknown_mode_is_an_error():
    with pytest.raises(ConfigurationError, match="mode `hasty`"):
        not_found_sentence("hasty", "en")
