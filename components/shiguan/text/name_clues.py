"""Finds names in one text that another text does not have."""

import re

from shiguan.text.han import HAN
from shiguan.text.quantities import FULL_MONTHS
from shiguan.text.terms import terms

_DIGIT = re.compile(r"\d")
_CAPITALISED = re.compile(r"[^\W\d_][\w'’.-]*")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;]\s|[\n\"“(])\s*$")
# Capitalised, but no names.
_NO_NAMES = frozenset(
    "I January February March April May June July August September October November December Monday Tuesday "
    "Wednesday Thursday Friday Saturday Sunday However Additionally Furthermore Moreover Therefore Overall Also "
    "In Generally".split()
)
_SURNAMES = (
    "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜戚谢邹喻柏窦章云苏潘葛奚范彭郎鲁韦昌马苗凤方俞任袁柳"
    "史唐费廉岑薛雷贺倪汤滕殷罗毕郝安常乐于傅卞齐康伍余顾孟黄穆萧尹姚邵汪祁毛狄臧戴宋庞熊纪舒屈项祝董梁杜阮蓝季贾江颜郭"
    "梅林刁钟徐邱骆高夏蔡田胡凌霍虞万柯管卢莫房缪解应宗丁宣邓郁单杭洪包左石崔吉龚程邢裴陆荣翁荀羊甄曲封储靳段富巫焦巴"
    "牧隗山谷车侯宓蓬全班仰秋仲伊宫宁仇栾甘厉戎祖武符刘景詹龙叶幸司黎白蒲从鄂索籍赖卓屠蒙池乔闻党翟谭贡姬申冉雍桑桂牛"
)
_FOLD = str.maketrans(
    "趙錢孫吳鄭馮陳衛蔣韓楊許呂張嚴華謝鄒竇雲蘇魯韋馬鳳袁費賀湯羅畢樂於傅齊顧黃蕭龐紀項賈顏鍾駱盧應鄧單陸榮龔儲車寧欒厲劉龍葉黨翟譚貢喬聞",
    "赵钱孙吴郑冯陈卫蒋韩杨许吕张严华谢邹窦云苏鲁韦马凤袁费贺汤罗毕乐于傅齐顾黄萧庞纪项贾颜钟骆卢应邓单陆荣龚储车宁栾厉刘龙叶党翟谭贡乔闻",
)
_HAN_RUN = re.compile(f"[{HAN}·•]+")
_PLACE_END = "州县郡省市国国镇道关城山河江湖岛洲都府"
_TRANSLITERATED = frozenset(
    "阿埃艾奥巴贝比波博布查茨达戴德迪蒂杜多尔费菲弗福盖戈格古哈海赫胡基吉加卡凯科克库拉莱勒雷里利林隆卢鲁伦罗洛马麦曼梅米莫姆纳内尼诺"
    "努帕佩皮普奇乔切让萨塞森沙什史斯索塔泰坦特腾图托瓦威维文沃乌西希夏谢辛雅亚伊因尤泽扎兹佐"
)


def foreign_names(text: str, other: str) -> list[str]:
    """
    Find what looks like a name in a text and does not stand in the other one.

    English: capitalised words inside a sentence, and others that are capitalised and no common word. Chinese: runs of
    characters that the other text does not have and that look like a person (a surname and one or two characters), a
    place, or a foreign name. Rules only; a name that is also a common word is missed.
    """
    said = set(terms(other))
    found = [name for name in _capitalised(text) if not said.issuperset(terms(name))]
    found.extend(_han_names(text, said))
    return list(dict.fromkeys(found))


def _capitalised(text: str) -> list[str]:
    names = []
    for match in _CAPITALISED.finditer(text):
        word = match[0].rstrip(".'’-")
        if not word[0].isupper() or word in _NO_NAMES or not terms(word):
            continue
        # `16 Dec 755` and `Dec 16, 755` have a month, which is compared as such, and no name.
        if word in FULL_MONTHS and _DIGIT.search(text, max(0, match.start() - 3), match.end() + 3):
            continue
        opens = bool(_SENTENCE_START.search(text[max(0, match.start() - 4) : match.start()]))
        following = _CAPITALISED.search(text, match.end())
        # The first word of a sentence is a name if another capitalised word follows at once.
        joined = following is not None and following.start() == match.end() + 1 and following[0][0].isupper()
        if not opens or joined or word.isupper():
            names.append(word)
    return names


def _han_names(text: str, said: set[str]) -> list[str]:
    names = []
    for run in _HAN_RUN.finditer(text):
        plain = run[0]
        folded = plain.translate(_FOLD)
        at = 0
        while at < len(plain):
            end = at
            # A pair of neighbours that the other text does not have belongs to something new.
            while end + 1 < len(plain) and not said.issuperset(terms(plain[end : end + 2])[-1:]):
                end += 1
            if end > at:
                piece, fold = plain[at : end + 1], folded[at : end + 1]
                name = _name_in(piece, fold, said)
                if name:
                    names.append(name)
            at = max(end, at + 1)
    return names


def _name_in(piece: str, folded: str, said: set[str]) -> str:
    new = [at for at, character in enumerate(piece) if not said.intersection(terms(character))]
    if not new:
        return ""
    core, fold = piece[new[0] : new[-1] + 1], folded[new[0] : new[-1] + 1]
    if sum(character in _TRANSLITERATED for character in fold) >= max(3, 0.75 * len(fold)):
        return core
    before = folded[new[0] - 1] if new[0] else ""
    if len(core) in (2, 3) and fold[0] in _SURNAMES:
        return core
    if len(core) <= 2 and before and before in _SURNAMES and before not in "于安常任从方高时何全应解管会":
        return before + core
    after = folded[new[-1] + 1] if new[-1] + 1 < len(folded) else ""
    if len(core) in (1, 2, 3) and (fold[-1] in _PLACE_END and len(core) > 1):
        return core
    if len(core) in (1, 2) and after and after in "州县郡省市镇":
        return core + after
    return ""


def looks_like_name(run: str) -> bool:
    """Tell whether a run of Han characters looks like a name by itself: of a person, a place or something foreign."""
    folded = run.translate(_FOLD)
    if "·" in run or "•" in run:
        return True
    if len(folded) >= 2 and sum(character in _TRANSLITERATED for character in folded) >= max(2, 0.75 * len(folded)):
        return True
    place = len(folded) >= 2 and folded[-1] in f"{_PLACE_END}阳京原津陵"
    return place or (2 <= len(folded) <= 4 and folded[0] in _SURNAMES)
