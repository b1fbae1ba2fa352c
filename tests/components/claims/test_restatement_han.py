"""Chinese claims: what changes nothing is stated, and what was wished, ordered, supposed or told is not."""

import pytest

from shiguan.claims.restatement import restates

STATED = [
    # The other voice, 被 for 为…所, and the place behind the verb.
    ("丙申，突厥杀刘武周于白道。", "丙申，刘武周被突厥杀于白道。"),
    ("丙申，斩裴炎于都亭。", "丙申，裴炎被斩于都亭。"),
    ("密遂败绩，裴仁基、祖君彦并为世充所虏。", "裴仁基、祖君彦并被世充所虏。"),
    ("密遂败绩，裴仁基、祖君彦并为世充所虏。", "世充虏裴仁基、祖君彦。"),
    ("议会通过了法案。", "法案由议会通过。"),
    # Words that are written for each other.
    ("他把首都从洛阳迁到长安。", "他将首都从洛阳迁到长安。"),
    ("劉裕被刁逵抓著。", "刘裕被刁逵抓着。"),
    ("执刺史李思文。思文，敬业之叔父也，知敬业之谋。", "李思文是敬业的叔父。"),
    ("20世纪20年代，该店开业于广州。", "1920年代，该店开业于广州。"),
    ("密与万馀人驰向洛口。", "密与一万余人驰向洛口。"),
    # A conjunction in front is left out; a name in a list is nobody who says so.
    ("因此在多倫多地區得到了25萬英畝的土地。", "在多伦多地区得到了25万英亩的土地。"),
    ("又于午桥创别墅，花木万株。", "于午桥创别墅，花木万株。"),
    ("俘掠云、朔北川，诏刘沔守雁门诸关。", "诏刘沔守雁门诸关。"),
    ("李光进破贼于郓州。光进斩贼将王武俊。", "李光进斩贼将王武俊。"),
    ("贼退。如果李靖不来，突厥陷云州。", "如果李靖不来，突厥陷云州。"),
]
CHANGED = [
    # Another era, an era that nobody named, another century, no certain number.
    ("咸亨二年薨，赠荆州都督。", "显庆二年薨，赠荆州都督。"),
    ("十九年二月庚戌，如洛阳宫。", "开元十九年二月庚戌，如洛阳宫。"),
    ("1920年代，该店开业于广州。", "1820年代，该店开业于广州。"),
    ("贼众二三千人攻城，不克。", "贼众三千人攻城，不克。"),
    ("贼众十五六人攻城，不克。", "贼众十六人攻城，不克。"),
    ("有三五人从李靖入城。", "有三十五人从李靖入城。"),
    # What was wished, asked, agreed or planned, and did not come to pass.
    ("上欲幸洛阳，发兵十万击高丽，群臣谏，乃止。", "发兵十万击高丽。"),
    ("长孙无忌请立晋王，杀承乾于东宫，上不许。", "杀承乾于东宫。"),
    ("裴寂劝高祖迁都樊城，焚长安宫室。", "焚长安宫室。"),
    ("议者以为宜罢兵，割河北六州与契丹。", "割河北六州与契丹。"),
    ("王世充与李密约，李密以兵三万击宇文化及。", "李密以兵三万击宇文化及。"),
    ("以裴度为淮西节度使，度固辞不拜。", "以裴度为淮西节度使。"),
    ("他希望能够加入球队，代表国家参加奥运会。", "代表国家参加奥运会。"),
    # What is told, guessed, supposed or made up.
    ("军中传言李密已死，王伯当代领其众。", "王伯当代领其众。"),
    ("贼诈称安庆绪败，史思明降唐。", "史思明降唐。"),
    ("俗传杨贵妃未死，东渡日本为尼。", "东渡日本为尼。"),
    ("专家推测该城建于汉代，毁于唐代战火。", "毁于唐代战火。"),
    ("有研究指各族将会升级，而凤头鹦鹉则会降级。", "凤头鹦鹉则会降级。"),
    ("苟李靖不来，突厥必陷云州。", "突厥必陷云州。"),
    ("如李靖不来，突厥陷云州。", "突厥陷云州。"),
    ("贼退。使李靖不来，突厥陷云州。", "突厥陷云州。"),
    ("一旦战败，荷兰将失去台湾的统治权。", "荷兰将失去台湾的统治权。"),
    ("在电影中，他杀死了国王并登上王位。", "他杀死了国王并登上王位。"),
    # Another one of the given name, another state.
    ("李光进破贼于郓州。朱光进继至，光进斩贼将王武俊。", "李光进斩贼将王武俊。"),
    ("后唐灭后梁，李存勖称帝。", "唐灭后梁，李存勖称帝。"),
    ("丙申，突厥杀刘武周于白道。", "丙申，突厥被刘武周杀于白道。"),
    ("密遂败绩，裴仁基、祖君彦并为世充所虏。", "祖君彦虏世充、裴仁基。"),
]


@pytest.mark.parametrize(("passage", "claim"), STATED)
def test_what_changes_nothing_is_stated(passage, claim):
    assert restates(claim, passage) is not None


@pytest.mark.parametrize(("passage", "claim"), CHANGED)
def test_what_was_not_done_or_by_another_is_not_stated(passage, claim):
    assert restates(claim, passage) is None
