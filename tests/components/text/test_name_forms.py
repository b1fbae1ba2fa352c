"""Names of a sentence."""

import pytest

from shiguan.text.name_forms import foreign_names, names_of
from shiguan.text.terms import terms


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("the governor murdered his wife", ()), ("He met Guo Ziyi near Fanyang.", ("Guo Ziyi", "Fanyang")),
        ("安禄山反于范阳", ("安禄山", "范阳")), ("总之，拿破仑在1871年烧毁了城市。", ("拿破仑",)),
        ("高祖以陈叔达为侍中", ("高祖", "陈叔达")),
        ("武后把月亮卖给了罗马", ("罗马",)),  # the dictionary: Rome, capital of Italy
        ("贼陷镇州、汲县，诸州皆降，英國来使", ("镇州", "汲县", "英國")), ("自太原攻洛阳", ("太原", "洛阳")),
        ("每逢星期一上课", ()), ("NASA在1969年登月。", ("NASA",)), ("约在公元前7000年", ()),
    ],
)  # fmt: skip
def test_names_are_found(sentence, names):
    assert names_of(sentence) == names


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        ("李光颜讨淮西", []),  # the other text has his given name
        ("李光进讨淮西", ["李光进"]),
        ("Guo Ziyi met Li Su at Rome.", ["Guo", "Ziyi", "Rome"]),
    ],
)
def test_a_name_is_foreign_where_no_form_of_it_stands(text, lacking):
    assert foreign_names(text, frozenset(terms("光颜、Li Su 讨淮西"))) == lacking
