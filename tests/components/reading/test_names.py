"""Texts that have a name, in another script too."""

import pytest

from shiguan.reading.text import read_text


@pytest.mark.parametrize(
    ("name", "text", "has"),
    [
        ("An Lushan", "Then An Lushan rose.", True),
        ("An Lushan", "安禄山反。", True),
        ("安祿山", "安禄山反。", True),
        ("安禄山", "Then An Lushan rose.", True),
        ("伦敦", "The fire of London.", True),
        ("London", "伦敦大火。", True),
        ("Guo Ziyi", "安禄山反。", False),
        ("拿破仑", "Then An Lushan rose.", False),
        ("Napoleon", "安禄山反于范阳。", False),
        ("Shu", "他入蜀。", True),
        ("Queequeg", "魁魁格是个捕鲸手。", True),
        ("Ahab", "魁魁格是个捕鲸手。", False),
    ],
)
def test_a_name_is_found_as_spelled_translated_in_pinyin_or_by_its_consonants(name, text, has):
    assert read_text(text).has_name(name) is has
