"""Names of a sentence."""

import pytest

from shiguan.text.name_forms import names_of


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
