"""A claim is stated by a passage if it stands there, or in a form that changes nothing; else it is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.claims.restatement import restates

WAR = (
    "In 757 An Lushan was murdered by An Qingxu. Helan Jinming gave Nan Jiyun a banquet and no soldiers. Nan Jiyun shot "
    "Yin Ziqi in the left eye. In the winter of 755 the rebels took Luoyang with 150,000 men, and the court fled. No "
    "soldiers ever reached Suiyang. The relieving army arrived three days after the fall. Shi Siming was murdered by "
    "officers of Shi Chaoyi. If the rebels had crossed the river, all was lost. Guo Ziyi defeated the rebel army's "
    "rearguard. The son of Zhang Xun was executed in 762."
)
CLASSICAL = (
    "天宝十四载十一月，安禄山反于范阳，众十五万。至德二载，安禄山为安庆绪所杀。郭子仪、李光弼自河北引兵还，肃宗以子仪为司空。"
    "叛军攻陷洛阳城外粮仓。李光颜讨淮西，多破贼。史思明不肯降。"
)
STATED = [
    (WAR, "An Lushan was murdered by An Qingxu in 757."),
    (WAR, "An Qingxu murdered An Lushan."),
    (WAR, "Yin Ziqi was shot in the left eye."),
    (WAR, "Helan Jinming gave Nan Jiyun a banquet."),
    (WAR, "The rebels took Luoyang in 755."),
    (WAR, "The rebels took Luoyang in the winter of 755."),
    (WAR, "Yes, the rebels took Luoyang with a hundred and fifty thousand men."),
    (WAR, "The rebels took Luoyang."),
    (WAR, "No soldiers ever reached Suiyang."),
    (WAR, "Nan Jiyun shot Yin Ziqi in the left eye, and the relieving army arrived three days after the fall."),
    (CLASSICAL, "安祿山反於范陽。"),
    (CLASSICAL, "755年十一月，安禄山反于范阳。"),
    (CLASSICAL, "安庆绪杀安禄山。"),
    (CLASSICAL, "肃宗以郭子仪为司空。"),
    (CLASSICAL, "史思明不肯降，李光颜讨淮西。"),
    ("John Mayow (1641–1679) refined this work (in Oxford) with care.", "John Mayow refined this work with care."),
    ("It fell. That’s what the court was told of Suiyang.", "that's what the court was told of Suiyang."),
    ("普通货柜最大毛重（包括高立方型）30480公斤。", "普通货柜最大毛重30480公斤。"),
]
CHANGED = [
    (WAR, "An Lushan murdered An Qingxu."),
    (WAR, "An Qingxu murdered An Lushan in 755."),
    (WAR, "Helan Jinming gave Nan Jiyun soldiers."),
    (WAR, "Yin Ziqi shot Nan Jiyun in the left eye."),
    (WAR, "The rebels took Luoyang in the summer of 755."),
    (WAR, "The rebels took Luoyang with 150 men."),
    (WAR, "Soldiers ever reached Suiyang."),
    (WAR, "The relieving army arrived three days before the fall."),
    (WAR, "Shi Siming was murdered by Shi Chaoyi."),
    (WAR, "Shi Chaoyi murdered Shi Siming."),
    (WAR, "The rebels had crossed the river."),
    (WAR, "Guo Ziyi defeated the rebel army."),
    (WAR, "Zhang Xun was executed in 762."),
    (CLASSICAL, "安禄山杀安庆绪。"),
    (CLASSICAL, "天宝十四载十一月，安禄山反于范阳，众十五。"),
    (CLASSICAL, "肃宗以李光弼为司空。"),
    (CLASSICAL, "叛军攻陷洛阳。"),
    (CLASSICAL, "李光进讨淮西，多破贼。"),
    (CLASSICAL, "史思明肯降。"),
    ("如果安禄山反，洛阳必陷于贼。", "洛阳必陷于贼。"),
    ("Nan Jiyun (allegedly) shot Yin Ziqi in the eye.", "Nan Jiyun shot Yin Ziqi in the eye."),
    ("Nan Jiyun (it is said) shot Yin Ziqi in the eye.", "Nan Jiyun shot Yin Ziqi in the eye."),
    ("The rebels lost 5 (thousand) men at Suiyang.", "The rebels lost 5 men at Suiyang."),
    ("史思明（未）降于唐。", "史思明降于唐。"),
]


@pytest.mark.parametrize(("passage", "claim"), STATED)
def test_what_changes_nothing_is_stated(passage, claim):
    found = restates(claim, passage)
    assert found is not None
    assert 0 <= found[0] < found[1] <= len(passage)


@pytest.mark.parametrize(("passage", "claim"), CHANGED)
def test_one_small_change_is_not_stated(passage, claim):
    assert restates(claim, passage) is None


def test_the_place_is_where_it_is_stated():
    start, end = restates("An Qingxu murdered An Lushan.", WAR)
    assert WAR[start:end] == "An Lushan was murdered by An Qingxu"


@given(st.text(), st.text() | st.text(alphabet="ab cd.。史安祿山十一23 不not"))
def test_any_texts_give_a_place_or_none(claim, passage):
    found = restates(claim, passage)
    assert found is None or 0 <= found[0] < found[1] <= len(passage)


@pytest.mark.parametrize("unit", ["哈", "in 1778 ", "An An ", "a b ", "被", "安禄山"])
def test_work_grows_with_the_length(unit, monkeypatch):
    from shiguan.claims import restatement

    compared, same = [], restatement._Token.same
    monkeypatch.setattr(restatement._Token, "same", lambda one, other: compared.append(1) or same(one, other))
    work = []
    for size in (400, 800, 1600):
        compared.clear()
        restates(unit * size + "x y z", unit * size * 2)
        work.append(len(compared) + 1)
    assert work[2] <= 2.6 * work[1] + 1000
