"""
Makes a true sentence false by one small change, by rule, and writes true sentences in other forms.

A rule gives nothing rather than a sentence that may still be true: it exchanges two names only where the
verb has a direction, exchanges words only within lists of which one excludes the other (`pair_words.yml`), and leaves
sentences alone that already deny, ask or quote.
"""

import random
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml
from bench.quality.swaps import _dates, _numbers
from opencc import OpenCC

_WORDS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("pair_words.yml").read_text(encoding="utf-8"))
Rule = Callable[[str, random.Random, frozenset[str]], Iterator[str]]

_UP = "A-ZÀ-ÖØ-Þ"
_CAP = rf"[{_UP}][\w’'-]*\w(?:\s(?:(?:of|de|la|van|von|del|y|al|ibn)\s(?=[{_UP}]))?[{_UP}][\w’'-]*\w)*"
_STARTS = r"(?:(?<=^)|(?<=\d, )|(?<=\d\d\d\d )|(?<=\band )|(?<=\bthat )|(?<=\bwhen )|(?<=\bwhere )|(?<=\bwhile ))"
_ENDS = r"(?=[.,;]|\s(?:in|on|at|from|during|after|before|until|with|for|by|and|as|to|near|because)\s)"
_NOT_NAMES = frozenset(
    (
        "The A An In On At By For From To He She It They This These That Those His Her Its Their When While After "
        "Before As If But And Or So Although However During Since Both Some Many Most All Each One Two Three No Not "
        "There Here What Who Now Then Thus With Under Another Such I We You My Our Your English French German Spanish "
        "Italian Chinese Japanese Roman Greek Russian American British European African Asian Indian Christian "
        "Catholic Protestant Jewish Islamic Muslim January February March April May June July August September "
        "October November December Monday Tuesday Wednesday Thursday Friday Saturday Sunday Until Upon Only Even Once "
        "Also According Like Between Among Several Other Later Formerly President "
    ).split()
)
_IRREGULAR, _SYMMETRIC = _WORDS["verbs"]["irregular"].split(), frozenset(_WORDS["verbs"]["symmetric"].split())
_HAN_VERBS = "|".join(sorted(_WORDS["verbs"]["han"].split(), key=len, reverse=True))
_HAN_MORE_VERBS = "|".join(_WORDS["verbs"]["han_persons"].split())
_NO_GIVEN = (
    "[的了在是为為于於之其而不人年月日时時和与與及国國朝军軍州县縣省市区區部门門城山河江大小上下中外内東西南北东]"
)
_VERB = rf"(?P<v>(?:[a-z]{{2,}}ed|{'|'.join(_IRREGULAR)})(?:\s(?:by|to))?)"
_ENTITY = rf"(?:[Tt]he )?{_CAP}"
_TWO_NAMES = re.compile(
    rf"{_STARTS}(?P<a>{_ENTITY}),?\s(?P<aux>(?:(?:was|were|had|had been|has been|later|then|also|soon)\s)*){_VERB}\s"
    rf"(?P<b>{_ENTITY}){_ENDS}"
)
_WORD = r"(?!had|was|were|not|have|has|who|that|which|never|then|also|been|whole|same|one)[a-z][a-z-]{2,}"
_PHRASE = rf"(?:The|the|A|An|a|an|His|Her|Their)\s(?:{_WORD}\s)?{_WORD}"
_TWO_PHRASES = re.compile(
    rf"{_STARTS}(?P<a>{_PHRASE}|{_CAP})\s(?P<aux>(?:(?:was|were|had|later|then|also)\s)*){_VERB}\s(?P<b>{_PHRASE}|{_CAP}){_ENDS}"
)
_RELATIVE = re.compile(
    rf"{_STARTS}(?P<a>{_ENTITY}),?\s(?P<m>(?:was |is |became )?"
    rf"(?:the |a )?(?:son|daughter|father|mother|successor|pupil|"
    rf"student|capital|wife|"
    rf"widow|nephew|disciple|part|colony|subsidiary|suburb|tributary) (?:of|to))\s(?P<b>{_CAP}){_ENDS}"
)
_FROM_TO = re.compile(rf"\bfrom\s(?:the\s)?(?P<a>{_CAP}),?\s(?P<m>(?:\w+\s){{0,2}}to)\s(?:the\s)?(?P<b>{_CAP}){_ENDS}")
_HAN_TWO = re.compile(
    rf"(?:(?<=[，。；])|^)(?P<lead>(?:[^，。；]{{0,8}}[年月日]，?)?)(?P<a>[^，。；、被把将將由从從于於的了在是与與和及跟对對为為其之而乃曾又再已便就后後年月日时時所并並也不]{{2,8}}?)"
    rf"(?P<aux>曾经?|于?|又|已|率军|率軍|大)(?P<v>{_HAN_VERBS})(?P<b>[^，。；、的了在是于於及而之其者所等并並时時后後不以为為一二三四五六七八九十百千]{{2,8}})(?=[，。；])"
)
_HAN_PASSIVE = re.compile(
    r"(?P<v>被|(?<![以因])为|(?<![以因])為)(?P<b>[^，。；、的了在是于於及所誉譽称稱认認视視以]{2,5})"
    rf"(?P<w>(?:(?<=[^所])所)?(?:{_HAN_VERBS}|{_HAN_MORE_VERBS}))(?=[，。；])"
)
_HAN_RELATIVE = re.compile(
    r"(?:(?<=[，。；])|^)(?P<a>[^，。；、的了在于於与與和及年月日]{2,8})是(?P<b>[^，。；、的了在于於与與和及年月日一]{2,8})的(?P<m>儿子|兒子|女儿|女兒|父亲|父親|母亲|母親|妻子|丈夫|弟子|学生|學生|首都|首府|省会|省會|支流|前身|继承人|徒弟|老师|老師|子公司)(?=[，。；])"
)
_HAN_GIVEN = re.compile(rf"(?=([{_WORDS['surnames']}](?!{_NO_GIVEN})[\u4e00-\u9fff](?!{_NO_GIVEN})[\u4e00-\u9fff]))")
_HAN_ACTS = re.compile(
    rf"(?:(?<=[，。；、使将将將军軍尉史令守牧遣命从從])|^)(?=(?P<a>[\u4e00-\u9fff]{{3}})(?:又|乃|遂|亦|曾|率军|大)?(?:{_HAN_VERBS}|{_HAN_MORE_VERBS})(?P<b>[\u4e00-\u9fff]{{3}}))"
)
_COMPANY = 2
"""Before and after how many different characters a name must stand."""
_HAN_FROM_TO = re.compile(
    r"(?P<p>从|從|自|由)(?P<a>[^，。；、的了在从從自由得受收看听聽\d一二三四五六七八九十]{2,6})(?P<m>出发，?|出發，?|经[^，。；]{2,8}|)(?P<q>到达|到達|前往|开往|開往|通往|飞往|飛往|迁往|遷往|迁至|遷至|移居|至|到)(?P<b>[^，。；、的了在\d一二三四五六七八九十]{2,6})(?=[，。；的])"
)
_PERSON = re.compile(rf"\b(?P<f>{'|'.join(' '.join(_WORDS['first_names']).split())})\s(?P<s>[A-Z][a-z]{{2,}})\b")
_HAN_PERSON = re.compile(
    rf"(?:(?<=[，、。和与與])|^)(?P<s>[{_WORDS['surnames']}])(?P<g>[\u4e00-\u9fff]{{2}})(?=[（，、和与與曾率出是为為])"
)
_HAN_FOREIGN = re.compile(r"(?<![\u4e00-\u9fff·])(?P<f>[\u4e00-\u9fff]{2,5})·(?P<s>[\u4e00-\u9fff]{2,5})")
_PLACE_LISTS = [line.split() for line in _WORDS["places"]]

_AUX = re.compile(
    r"\b(was|were|is|are|had|has|have|could|would|can|will|did|does|should|must)\b"
    r"(?! (?:not|n't|no|never|only|hardly|also|the only)\b)"
)
_DENIES = re.compile(
    r"\b(?:not|no|never|none|neither|nor|nothing|nobody|without|hardly|cannot|\w+n't|few|little|only|unless|but)\b|[n]['’]t\b",
    re.I,
)
_EN_DENIED = re.compile(
    r"\b(was|were|is|are|had|has|have|could|would|can|will|did|does|should|must) (not|never) (?!only)"
)
_HAN_DENIES = re.compile(r"[不没沒未无無非否莫勿仅僅只]|除非|以外|之外")
_HAN_AFFIRMS = re.compile(
    r"(?<=[^，。但于於还還就也都只总總凡不算可若要正便即而或说說又更皆因由])(?:(是)(?=[^，。不]{3,})|(位于|位於|成为|成為|获得|獲得|参加|參加|担任|擔任|加入|包括|拥有|擁有|属于|屬於|使用|采用|採用|支持|允许|允許|举行|舉行|发生|發生|出现|出現|毕业|畢業)(?![，。]|[^，。]{0,6}的)|(?<=[中内內里裡上仍])(有)(?=[^，。关關些的效助限]{2,}))"
)
_HAN_NOT = {"是": "不是", "有": "没有"}
_HAN_DENIED = re.compile(
    r"(并?没有|並?沒有|未曾|从未|從未|不是|不能|不会|不會|无法|無法|并未|並未|未能|不再|不得|不可)(?=[\u4e00-\u9fff]{3,})(?!效|完|来|來|想到|不|仅|僅|只)"
)
_HAN_AFFIRMED = {
    "不是": "是",
    "不能": "能",
    "不会": "会",
    "不會": "會",
    "无法": "能够",
    "無法": "能夠",
    "未能": "能够",
    "不再": "仍然",
    "不得": "可以",
    "不可": "可以",
}


def _swapped(match: re.Match[str], text: str) -> str:
    a, b = match["a"], match["b"]
    if not match.start("a") and a.startswith("The ") and not b.startswith("The "):
        a = f"the {a[4:]}"
    b = b[0].upper() + b[1:] if not match.start("a") else b
    return text[: match.start("a")] + b + text[match.end("a") : match.start("b")] + a + text[match.end("b") :]


_HAN_NAME = re.compile(
    rf"[{_WORDS['surnames']}][\u4e00-\u9fff]{{1,2}}|[\u4e00-\u9fff]{{1,6}}·[\u4e00-\u9fff]{{1,6}}"
    r"|[\u4e00-\u9fff]{1,5}(?:国|國|队|隊|军|軍|公司|帝|王|皇后|宗|祖|州|大学|大學|省|市|太后|公|侯|汗|贼|賊)"
)
_HAN_NO_NAME = re.compile("[他她它们們自己此该該但却很能可会會應应请請得用欲要商先]")


def _is_name(name: str) -> bool:
    if re.search(r"[\u4e00-\u9fff]", name):
        return bool(_HAN_NAME.fullmatch(name)) and not _HAN_NO_NAME.search(name)
    name = re.sub("^[Tt]he ", "", name)
    return name[0].isupper() and not {*name.split()} & _NOT_NAMES and not re.search(r"['’]s?$", name)


def han_names(text: str) -> frozenset[str]:
    """Find the names of persons in a Chinese text: a surname and two characters, in changing company."""
    around: dict[str, tuple[set[str], set[str]]] = {}
    for match in _HAN_GIVEN.finditer(text):
        before, after = around.setdefault(match[1], (set(), set()))
        before.add(text[match.start() - 1 : match.start()])
        after.add(text[match.start() + 3 : match.start() + 4])
    return frozenset(name for name, (before, after) in around.items() if min(len(before), len(after)) >= _COMPANY)


def roles(text: str, _draw: random.Random, names: frozenset[str]) -> Iterator[str]:
    """Exchange two names around a verb, or a relation, that has a direction."""
    for pattern in (_TWO_NAMES, _RELATIVE, _HAN_TWO, _HAN_RELATIVE):
        for match in pattern.finditer(text):
            verb = (match.groupdict().get("v") or "").removesuffix(" by")
            if match["a"] == match["b"] or verb in _SYMMETRIC or verb.endswith(" to"):
                continue
            if _is_name(match["a"]) and _is_name(match["b"]):
                yield _swapped(match, text)
    for match in _HAN_ACTS.finditer(text) if names else ():
        a, b = match["a"], match["b"]
        if a in names and b in names and a != b:
            yield _swapped(match, text)


def reverse(text: str, _draw: random.Random, names: frozenset[str]) -> Iterator[str]:
    """Exchange subject and object, or make an active sentence of a passive one with the names left in their places."""
    for match in _TWO_PHRASES.finditer(text):
        (a, b), verb = match.group("a", "b"), match["v"]
        phrases = [one for one in (a, b) if not _is_name(one) and not re.match(_PHRASE, one)]
        if phrases or a.lower() == b.lower() or verb.split()[0] in _SYMMETRIC or verb.endswith(" to"):
            continue
        if verb.endswith(" by"):
            if re.search("was|were", match["aux"]):
                yield text[: match.start("aux")] + verb.removesuffix(" by") + text[match.end("v") :]
            continue
        if match["aux"] and re.search("was|were", match["aux"]):
            continue
        first = b[0].upper() + b[1:] if match.start() == 0 else b
        second = a[0].lower() + a[1:] if re.match(_PHRASE, a) else a
        yield (
            text[: match.start("a")] + first + text[match.end("a") : match.start("b")] + second + text[match.end("b") :]
        )
    for match in _HAN_PASSIVE.finditer(text):
        if _is_name(match["b"]) or match["b"] in names:
            yield text[: match.start("v")] + match["w"].removeprefix("所") + match["b"] + text[match.end() :]


def name(text: str, draw: random.Random, names: frozenset[str]) -> Iterator[str]:
    """Put another person of the same surname, or another place of the same kind, in place of one."""
    for match in _PERSON.finditer(text):
        line = next(line.split() for line in _WORDS["first_names"] if match["f"] in line.split())
        yield _put(text, match.span("f"), draw.choice([one for one in line if one not in text]))
    for match in _HAN_FOREIGN.finditer(text):
        yield _put(text, match.span("f"), draw.choice([n for n in _WORDS["foreign"].split() if n not in text]))
    for one in sorted({match[1] for match in _HAN_GIVEN.finditer(text)} & names):
        others = sorted(other for other in names if other[0] == one[0] and other not in text)
        if text.count(one) == 1 and others:
            yield text.replace(one, draw.choice(others))
    for match in _HAN_PERSON.finditer(text) if not names else ():
        given = draw.choice([g for g in _WORDS["given"].split() if g not in match["g"]])
        yield _put(text, match.span("g"), match["g"][0] + given)
    traditional = _is_traditional(text)
    for places in _PLACE_LISTS:
        if traditional != _is_traditional(" ".join(places)):
            continue
        wide = bool(re.match(r"[\u4e00-\u9fff]", places[0]))
        for match in re.finditer(
            "(?:" + "|".join(places) + ")(?![西洋尼])" if wide else rf"(?<!New )\b(?:{'|'.join(places)})\b(?! [A-Z])",
            text,
        ):
            others = [other for other in places if other not in text]
            if text.count(match[0]) == 1 and others:
                yield _put(text, match.span(), draw.choice(others))


@cache
def converter(name: str) -> OpenCC:
    """Load a converter between the Chinese scripts once; `t2s` or `s2t`."""
    return OpenCC(name)


@lru_cache(64)
def _is_traditional(text: str) -> bool:
    return converter("t2s").convert(text) != text


def number(text: str, draw: random.Random, _names: frozenset[str]) -> Iterator[str]:
    """Change one digit, month or numeral."""
    for start, end, new in [*_dates(text, draw), *_numbers(text, draw)]:
        yield re.sub(r"\b(a|an) (?=\w)", _article, _put(text, (start, end), new))
    for match in re.finditer(r"(?<![\u4e00-\u9fff])?[二三四五六七八九](?=[十百千万萬年月日人])", text):
        yield _put(text, match.span(), draw.choice([d for d in "二三四五六七八九" if d != match[0]]))


def _affirmed(text: str, match: re.Match[str]) -> str:
    if re.search("从来$|從來$", text[: match.start()]):
        return "曾"
    return _HAN_AFFIRMED.get(match[0].removeprefix("并").removeprefix("並"), "")


def negation(text: str, draw: random.Random, _names: frozenset[str]) -> Iterator[str]:
    """Deny what is said, or say what is denied."""
    for match in _EN_DENIED.finditer(text):
        yield text[: match.end(1)] + text[match.end(2) :]
    for match in _HAN_DENIED.finditer(text):
        yield _put(text, match.span(), _affirmed(text, match))
    if not _DENIES.search(text):
        for match in list(_AUX.finditer(text))[:1]:
            yield text[: match.end()] + draw.choice([" not", " never"]) + text[match.end() :]
    if not _HAN_DENIES.search(text) and "的" in text:
        for match in list(_HAN_AFFIRMS.finditer(text))[:1]:
            yield _put(text, match.span(), _HAN_NOT.get(match[0], "没有" + match[0]))


def opposite(text: str, _draw: random.Random, _names: frozenset[str]) -> Iterator[str]:
    """Put a word's opposite in its place."""
    yield from _exchange(text, "opposites", both=True)


def order(text: str, _draw: random.Random, _names: frozenset[str]) -> Iterator[str]:
    """Put before for after, earlier for later."""
    yield from _exchange(text, "order", both=False)


def place(text: str, _draw: random.Random, _names: frozenset[str]) -> Iterator[str]:
    """Put north for south, or exchange where something came from with where it went."""
    yield from _exchange(text, "directions", both=False)
    for pattern in (_FROM_TO, _HAN_FROM_TO):
        for match in pattern.finditer(text):
            if pattern is _HAN_FROM_TO or (_is_name(match["a"]) and _is_name(match["b"])):
                yield _swapped(match, text)


def _exchange(text: str, kind: str, *, both: bool) -> Iterator[str]:
    for pair in " ".join(_WORDS[kind]).split():
        one, two = pair.split("/")
        for old, new in ((one, two), (two, one)) if both else ((one, two),):
            pattern = rf"(?<![江山陕广湖河]){old}" if not old.isascii() else rf"\b{old}\b"
            found = list(re.finditer(pattern, text))
            if len(found) != 1 or re.search(new if not new.isascii() else rf"\b{new}\b", text):
                continue
            if re.search(r"(?:继|繼|了.{1,3}|\bat|\bto|\bone) ?$|\bno longer$", text[: found[0].start()], re.I):
                continue
            following = text[found[0].end() :]
            if kind == "order" and re.match(r"[部面方裔后後前]| its own| all", following):
                continue
            if old in ("以前", "以后", "以後") and following[:1] not in ("，", "。", "的"):
                continue
            if not old.isascii() and converter("s2t" if _is_traditional(text) else "t2s").convert(new) != new:
                continue
            if old.isascii() and (text[: found[0].start()].split() or [""])[-1] == (following.split() or [""])[0]:
                continue
            if old.isascii() and text[found[0].end() :].startswith(
                (" of all", " but", " and", " or", "-", " as ", "most")
            ):
                continue
            yield re.sub(r"\b(a|an) (?=\w)", _article, _put(text, found[0].span(), new))


def _article(match: re.Match[str]) -> str:
    following = match.string[match.end() : match.end() + 3]
    return (
        "an "
        if following[0] in "aeiou" and following != "eur" and following != "uni"
        else "a "
        if following[0] in "bcdfgjklmnpqrstvwxyz"
        else match[0]
    )


_CUT_END = re.compile(
    r"\d{1,3}(?=,\d{3})|(?<![\d.])\d{1,3}(?=\.\d)"
    r"|\d+(?=%|\s?per cent|\s?percent|\s?million|\s?billion|万|亿|萬|億|多|余|餘)"
)
_CUT_HAN = re.compile(r"[一二三四五六七八九十百千]{1,3}(?=[十百千万亿萬億余餘])")
_CUT_START = re.compile(
    r"(?:\bNo|\bNot all(?: of)?|\bNone of|\bFew|\bHardly any|\bAlmost all|\bAlmost no|\bNot every)\s(?=(?:the\s)?[a-z])"
)
_CUT_HAN_START = re.compile(
    r"(?:没有|沒有|未曾|从未|從未|并未|並未|未能|不能|不肯|不敢|无法|無法|几乎|幾乎|未(?![遂来來必婚]))(?=[\u4e00-\u9fff]{6,}[。，；])(?!仅|僅|但|只|过|過|同|久|断|斷|少|论|論|如|得|管|足)"
)


def cut(text: str, _draw: random.Random, _names: frozenset[str]) -> Iterator[str]:
    """End or begin a sentence inside a number, or begin it behind a denial."""
    wide = bool(re.search(r"[\u4e00-\u9fff]", text))
    for match in [*_CUT_END.finditer(text), *(_CUT_HAN.finditer(text) if wide else ())]:
        if match.start() >= (6 if wide else 16):
            yield text[: match.end()] + ("。" if wide else ".")
    for match in re.finditer(r"(?<=\d)[,.](?=\d)", text):
        if len(text) - match.end() > (8 if wide else 24):
            yield text[match.end() :]
    for match in (_CUT_HAN_START if wide else _CUT_START).finditer(text):
        rest = text[match.end() :]
        if wide:
            yield re.split(r"(?<=[。；])|，", rest)[0].rstrip("，；。") + "。"
        elif match.start() == 0 and len(rest.split()) > 3:
            yield rest[0].upper() + rest[1:]


# What makes a sentence somebody's opinion, a condition, or true only nearly or in part.
_LIMITS = re.compile(
    r",? (?:according to|except(?: for)?|unless|if|provided that|with the exception of|apart from) [^,.;]{3,80}(?=[,.])"
    r"|^(?:According to|If|Unless|Except for|Apart from) [^,.]{3,80}, "
    r"|^[A-Z][\w ]{2,30} (?:claimed|claims|believed|argued|argues|suggested) that (?=[A-Z]|the )"
    r"|\b(?:almost|nearly|hardly|scarcely|barely|allegedly|reportedly|supposedly|possibly|probably|perhaps) "
    r"|据说|據說|相传|相傳|传说|傳說|可能|或许|或許|也许|也許|几乎|幾乎|似乎|^(?:如果|若|除非)[^，。]{2,20}，"
)


def limit(text: str, _draw: random.Random, _names: frozenset[str]) -> Iterator[str]:
    """Leave out what denies, doubts or limits the rest."""
    for match in _LIMITS.finditer(text):
        rest = text[: match.start()] + re.sub(r"^,(?= )", "" if match[0][0] == "," else ",", text[match.end() :])
        yield rest[0].upper() + rest[1:]


RULES: dict[str, Rule] = {
    "roles": roles, "reversed": reverse, "name": name, "number": number, "negation": negation,
    "opposite": opposite, "order": order, "place": place, "cut": cut, "limit": limit,
}  # fmt: skip


def _put(text: str, span: tuple[int, int], new: str) -> str:
    return text[: span[0]] + new + text[span[1] :]
