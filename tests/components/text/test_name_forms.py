"""Names of a sentence, and texts that have them in another script."""

import pytest

from shiguan.text.name_forms import named_text, names_of


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("the governor murdered his wife", ()),
        ("He met Guo Ziyi near Fanyang.", ("Guo Ziyi", "Fanyang")),
        ("安禄山反于范阳", ("安禄山", "范阳")),
        ("总之，拿破仑在1871年烧毁了城市。", ("拿破仑",)),
    ],
)
def test_names_are_found(sentence, names):
    assert names_of(sentence) == names


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
        ("Queequeg", "魁魁格是个捕鲸手。", True),
        ("Ahab", "魁魁格是个捕鲸手。", False),
    ],
)
def test_a_name_is_found_as_spelled_translated_in_pinyin_or_by_its_consonants(name, text, has):
    assert named_text(text).has(name) is has
