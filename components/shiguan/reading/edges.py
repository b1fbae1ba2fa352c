"""Finds where a piece may be cut out of a text: not inside a number, nor behind a denial or a lead that bars it."""

import re

from shiguan.reading.text import read_text
from shiguan.text.quantities import quantities

NUMERALS = frozenset("〇零一二三四五六七八九十百千万亿两廿卅卌壹贰叁肆伍陆柒捌玖拾佰仟")
_HAN = f"{''.join(sorted(NUMERALS))}萬億兩貳參陸"
_SCALE, _UNITS = "余餘多来來几幾半", "年载載月日时時刻旬岁歲世度丈尺寸里步亩畝斤石斗升匹贯貫文钱錢元"
# How far around a cut is read, in characters.
_REACH, _NEAR = 40, 12
# What makes one number of what stands before a cut and what stands behind it.
_SIGN = r"[,.:/·’'．：\-‐‑–—−~～]"
_INSIDE = re.compile(
    "|".join(
        [
            rf"\d(?:\0|{_SIGN}\0|\0{_SIGN})\d",  # 12|,500 and 3.|5 and 755|-763
            rf"[\d{_HAN}] ?\0 ?[{_HAN}{_SCALE}]",  # 十五|万 and 三百|余
            rf"[\d{_HAN}][{_SCALE}]\0[十百千万萬亿億]",  # 十余|万
            rf"(?:\d|[{_HAN}]{{2}}|[{_HAN.replace('一', '').replace('万', '')}])\0[{_UNITS}]",  # 七十|里
            rf"[\d{_HAN}][{_UNITS}个個天倍]\0半",  # 三年|半
            rf"(?:第|分之)\0[\d{_HAN}]|[{_HAN}]\0分之",  # 第|三 and 百分之|三
            r"\d ?\0 ?(?:[%％‰°]|per\s?cent)",  # 3|% and 3| per cent
            r"(?:\A|[\s(（])[-−]\0\d",  # -|5
            r"\0\s?and (?:a|one) (?:half|third|quarter)\b",  # three| and a half
        ]
    ),
    re.IGNORECASE,
)
_NUMBER = re.compile(rf"[\d{_HAN}](?:[\d{_HAN}{_SCALE}]|{_SIGN}(?=\d))*(?:\s?[%％‰]|[{_UNITS}])?")
_BETWEEN_WORDS = re.compile(r"[^\W_](?:\0|[\s-]\0|\0[\s-])[^\W_]", re.ASCII)
# Words that turn what follows into something else; marks of quotations and emphasis may stand in between.
_ENGLISH = (
    r"\b(?:no|not|never|nor|neither|none of|nobody|nothing|hardly|scarcely|barely|rarely|seldom|almost|nearly|only"
    r"|without|cannot|no longer|instead of|rather than|far from|(?:less|fewer) than)|(?<!\ba )\bfew|n['’]t"
)
_CHINESE = rf"[不无無没沒非莫勿毋弗仅僅]|(?<![乙丁己辛癸])未|(?<![\d{_HAN}两數数几幾])只|几乎|幾乎|险些|險些|差点|差點"
_LIMITS = re.compile("only|[仅僅只]", re.IGNORECASE)
_DENIES = re.compile(
    rf"((?:{_ENGLISH})(?: (?:yet|even|all|every|any|ever|be|been))*"
    rf"|(?:{_CHINESE})[能敢肯得可会會曾尝嘗必再应應许許愿願想有是]?)"
    r"[\s“”‘’\"'「『*_]*\Z",
    re.IGNORECASE,
)
# What a lead and a colon, or a heading above a list, bar: `Do not:`, `Common myths:`, and where that ends.
_ITEM = r"\s{0,9}(?:[-*+•·▪] |[(（]?\d{1,2}[.)、）]|[a-z][.)] |[一二三四五六七八九十]{1,2}、)"
_DO_NOT = r"(?:do|must|may|shall|should|can|could) not|cannot|\w+n['’]ts?|never|avoid|not to(?: do)?"
_UNTRUE = (
    r"(?:myths?|misconceptions?|fallac(?:y|ies)|falsehoods?|hoax(?:es)?|false|wrong|incorrect|untrue"
    r"|forbidden|prohibited|banned|not (?:allowed|permitted))"
)
_IN_HAN = (
    r"(?:禁止|[严嚴]禁|[误誤][区區解]|[错錯谬謬][误誤]|[谣謠]言|不[得可要能应應宜许許准]|勿|忌)[^\n。，；:：]{0,8}"
)
_LEAD, _COLON = r"[^\n.!?:：,]{0,60}", r"[*_\s]{0,4}[:：]"
_TOLD = "(?:views?|stor(?:y|ies)|tales?|legends?|examples?|claims?|statements?|allegations?|rumours?)"
_TOLDS = "谣言|传闻|故事|主张|请求|诉求|观点|假设|情节|例子|说法|设想"
_TOLD_IN_HAN = (
    rf"(?:以下|下列)[^\n。，；:：]{{0,12}}(?:{_TOLDS})[^\n。，；:：]{{0,8}}[。：:](?!\n)"
    rf"|(?:{_TOLDS})如下[。：:](?!\n)|想象一下[^\n。]{{0,20}}[。：:]"
)
_BARS = re.compile(
    rf"(?P<list>(?:\b(?:{_DO_NOT}|{_UNTRUE})\b{_LEAD}|{_IN_HAN})(?:{_COLON}\W{{0,3}}\n|\n(?={_ITEM})))"
    rf"|(?P<text>(?:\b(?:{_DO_NOT}|following\b{_LEAD}\b(?:{_DO_NOT}|{_UNTRUE})\b{_LEAD})|{_IN_HAN}|判[断斷][题題]?"
    rf"|(?:^|(?<=[.!?]\s))\W{{0,6}}(?:\w+ )?{_UNTRUE}(?: \w+){{0,3}}){_COLON}(?!\W{{0,3}}\n)|true or false[?:]"
    rf"|(?:^|(?<=[.!?]\s)|\blet (?:us|me) )(?:imagine|suppose|assume|picture)\b{_LEAD}[.!:](?!\W{{0,3}}\n)"
    rf"|\bfollowing\b{_LEAD}\b{_TOLD}\b{_LEAD}[.:]"
    rf"|{_TOLD_IN_HAN}"
    r"|^[^\n。，；：]{0,8}(?:除外|免[责責]|[误誤][区區]|[谣謠]言|辟[谣謠]|不予)[^\n。，；：]{0,8}\n"
    r"|^\W{0,6}(?:(?:common|popular) )?(?:myths?|misconceptions?|exclusions|hoaxes|rejected \w+)\W{0,3}\n)"
    r"|(?P<line>^[ \t]*(?:[-*] )?[❌✗✘🚫⛔])",
    re.IGNORECASE | re.MULTILINE,
)
_BARRED_TO = {
    "list": re.compile(rf"\n[ \t]{{0,8}}\n(?!{_ITEM})|\n(?!{_ITEM})(?:[^\n:：]{{1,20}}[:：]|#)"),
    "text": re.compile(
        rf"\n[ \t]{{0,8}}\n|(?:(?<=[.!?。！？；;])|\n)\s{{0,3}}(?!{_ITEM})[^\n.!?。！？；;,，:：]{{1,20}}[:：]"
    ),
    "line": re.compile(r"\n"),
}


def barred_spans(text: str) -> list[tuple[int, int]]:
    """Find what a text bars or calls untrue by the lead or heading before it: `Do not:`, `Common myths:`."""
    spans, end = list[tuple[int, int]](), 0
    for lead in _BARS.finditer(text):
        if lead.start() >= end:
            found = _BARRED_TO[lead.lastgroup or ""].search(text, lead.end())
            end = found.start() if found else len(text)
            spans.append((lead.end(), end))
    return spans


def splits_number(text: str, at: int) -> bool:
    """Return whether a cut there leaves a part of a number on each side; notes between the two are no part of it."""
    left, right = _around(text, at)
    cut = f"{left[-_NEAR:]}\0{right[:_NEAR]}"
    if _INSIDE.search(cut):
        return True
    place = len(left)
    return bool(_BETWEEN_WORDS.search(cut)) and any(q.start < place < q.end for q in quantities(left + right))


def number_around(text: str, at: int) -> tuple[int, int]:
    """Return the span of the number that a place is in; where it is in none, the place itself."""
    first = max(0, at - _REACH)
    window = text[first : at + _REACH]
    spans = [(q.start, q.end) for q in quantities(window)] + [match.span() for match in _NUMBER.finditer(window)]
    around = [(first + start, first + end) for start, end in spans if first + start < at < first + end]
    return max(around, key=lambda span: span[1] - span[0], default=(at, at))


def _around(text: str, at: int) -> tuple[str, str]:
    left, right = text[max(0, at - _REACH) : at], text[at : at + _REACH]
    if left.rstrip().endswith("]") or right.lstrip().startswith("["):
        for start, end in read_text(text).notes:
            if start <= at + 1 and at <= end:
                left = text[max(0, start - _REACH) : start].rstrip() if at >= start else left
                right = text[end : end + _REACH] if at <= end else right
    return left, right


def hidden_denial(text: str, start: int) -> str:
    """Return the words that deny or limit what begins there and stand directly before it; empty if none do."""
    found = _DENIES.search(text[max(0, start - _REACH) : start])
    return found[1] if found else ""


def only_limits(denial: str) -> bool:
    """Return whether such words limit what follows and do not deny it: that only Otto fled says that he did."""
    return bool(_LIMITS.match(denial))
