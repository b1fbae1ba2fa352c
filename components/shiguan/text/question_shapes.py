"""What kind of answer a question asks for, and which sentences have one: rules for Chinese and English."""

import re
from typing import Literal

from shiguan.text.han import has_han
from shiguan.text.quantities import Quantity, quantities

Shape = Literal["time", "number", "person", "place", "reason", "manner", "definition"]


def _rules(table: dict[Shape, str], flags: re.RegexFlag) -> list[tuple[Shape, re.Pattern[str]]]:
    # Each line of the table is one alternative.
    return [(shape, re.compile("|".join(lines.split()).replace("_", " "), flags)) for shape, lines in table.items()]


_WHICH = r"\b(?:what|which)_(?:\w+_){0,2}"
# In the tables an underscore is a space and a line break separates alternatives; the first shape that fits is the one.
_ENGLISH = _rules(
    {
        "number": r"""\bhow_(?:many|much|long|far|tall|old|large|big|often|high|deep|wide|fast|heavy)\b
            \bwhat_(?:number|percent\w*|amount|population|proportion|fraction|share)\b
            \bpercentage\b""",
        "time": r"""\bwhen\b
            \b(?:what|which)_(?:\w+_)?(?:year|month|day|date|century|decade|period|era|time)\b
            \bsince_what\b""",
        "person": rf"""\bwho(?:m|se)?\b
            {_WHICH}(?:person|man|woman|king|queen|emperor|general|president|author|scientist|leader|ruler)\b
            {_WHICH}(?:bishop|pope|philosopher|composer|artist|governor|minister|eunuch|poet|writer)\b
            \bname_of_the_(?:man|woman)""",
        "place": rf"""\bwhere\b
            {_WHICH}(?:country|city|state|place|region|town|province|river|continent|nation)\b
            {_WHICH}(?:island|county|location|capital|prefecture)\b""",
        "reason": r"""\bwhy\b
            \bwhat_(?:\w+_)?(?:caused?|reasons?|led_to|purpose)\b
            \bfor_what_(?:reason|purpose)""",
        "manner": r"\bhow\b",
        "definition": r"""^(?:who|what)_(?:is|was|are|were)_(?:an?_|the_)?[^?]{2,50}\?*$
            \bwhat_does_.*_mean\b
            \bdefine\b""",
    },
    re.IGNORECASE,
)
_CHINESE = _rules(
    {
        "time": r"""何时|何時|何年|何日|何月|多久
            (?:什么|什麼|甚麼)(?:时候|時候|时间|時間|年代|时期|時期|朝代)
            哪(?:一|个|個)?(?:年|天|月|日|世纪|世紀|时期|時期|朝代|时间|時間)
            [几幾](?:年|月|日|号|號|点|點)
            (?:时间|時間|日期|年份)(?:是|为|為)""",
        "number": r"""多少|几(?!乎|何)|幾(?!乎|何)|比例|百分之
            多(?:大|高|长|長|远|遠|深|重|宽|寬)""",
        "person": r"""谁|誰|何人|(?:什么|什麼|甚麼)人
            哪(?:一)?(?:位|个人|個人|名)""",
        "place": r"""哪里|哪裡|哪裏|哪儿|何处|何處|何地|在哪|位于|位於
            哪(?:一|个|個|座|些)?(?:国|國|城|省|地|县|縣|州|市|洲)
            (?:什么|什麼)(?:地方|地区|地區|城市|国家|國家)""",
        "reason": r"""为什么|為什麼|为甚么|為甚麼|为何|為何|何以|因何
            原因|缘故|緣故|怎么会|怎麼會""",
        "manner": r"如何|怎么|怎麼|怎样|怎樣|方式|方法",
        "definition": r"""是谁|是誰|是什么|是什麼|是何(?:人|物)|何谓|何謂
            什么是|什麼是|是怎样的|是怎樣的|指的是""",
    },
    re.NOFLAG,
)
# Who or what is this one thing? Not: who was the leader of that?
_NAME = r"(?:[A-Z][\w'’-]*|of|the|de|van|von|al)"
_INTRODUCE = re.compile(
    rf"^(?i:who|what) (?:is|was|are|were) (?:(?:the|an?) )?{_NAME}(?: {_NAME})*\s*\?*$"
    r"|^[^，,的是为為]{1,12}(?:是谁|是誰|是何人|是什么人|是什麼人|是什么|是什麼|何许人也|何許人也)[？?]*$"
    r"|^(?:什么|什麼|何谓|何謂)是?[^，,的]{1,12}[？?]*$"
)
# What a question is made of besides its subject; taken out before its words are compared with the sources'.
_CHINESE_FRAME = re.compile(
    r"什么时候|什麼時候|甚麼時候|什么样的|什么样|什么|什麼|甚麼|为何|為何|为什么|為什麼|谁|誰|何时|何時|何年|何处|何處|何地|何人|"
    r"何以|何谓|何謂|哪一年|哪一|哪里|哪裡|哪裏|哪儿|哪些|哪个|哪個|哪位|哪年|哪|多少|几(?!乎)|幾(?!乎)|如何|怎么样|怎么|怎麼|怎样|怎樣|"
    r"请问|請問|是否|有没有|有沒有|吗|嗎|呢|的|了|是|在|被|把|于|於|与|與|和|及|而|这|這|那|其|为|為|有|会|會|请|請|"
    r"当时|當時|下列|根据|根據|以下|一个|一個|个|個|将|將|由|从|從|到|以|可以|能|之"
)
_REASON_CUES = re.compile(
    r"because|since|due to|as a result|in order to|so that|owing to|reason|led to|caused|therefore|to avoid|thus"
    r"|因为|因為|由于|由於|因此|所以|故|以致|為了|为了|原因|导致|導致|使得|因而|缘|緣|致使|因",
    re.IGNORECASE,
)
_MANNER_CUES = re.compile(
    r"\bby\b|\bthrough\b|\busing\b|\bvia\b|\bwith\b|通过|通過|以|用|采用|採用|利用|凭|憑", re.IGNORECASE
)
_PLACE_CUES = re.compile(
    r"\b(?:in|at|near|from|to|of|on|outside|between) (?:the )?[A-Z]"
    r"|位于|位於|在|至|于|於|出生|地处|地處|[省市县縣州郡国國镇鎮村区區路城道山河江]"
)
_DEFINITION_CUES = re.compile(
    r"\b(?:is|was|are|were|means|refers to|known as|called|defined as)\b|是|为|為|者|也|指|称|稱|即|名|字|人[。，,]",
    re.IGNORECASE,
)
_BEFORE_YEAR = re.compile(
    r"\b(?:in|since|by|from|until|till|around|circa|c\.|AD|before|after|year|and|to)\s*$", re.IGNORECASE
)
_CAPITALISED = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'’-]+")
_WHEN_CUES = re.compile(
    r"\b(?:century|decade|BC|AD|during|era|period)\b|世纪|世紀|年间|年間|时期|時期|初年|末年|当年|[春夏秋冬]|"
    r"月[朔望晦]|[甲乙丙丁戊己庚辛壬癸][子丑寅卯辰巳午未申酉戌亥]"
)


def question_shapes(question: str) -> list[Shape]:
    """Tell what kinds of answer a question asks for."""
    if _INTRODUCE.search(question.strip()):
        return ["definition"]
    rules = _CHINESE if has_han(question) else _ENGLISH
    found = [shape for shape, pattern in rules if pattern.search(question.strip())]
    return [shape for shape in found if not (shape == "manner" and len(found) > 1)]


def question_subject(question: str) -> str:
    """
    Take from a question the words that only make it a question.

    English ones are stop words of the search terms already; Chinese ones are cut out here, with a space in their
    place, so that no pair of characters is formed across them.
    """
    subject = _CHINESE_FRAME.sub(" ", question)
    return subject if subject.strip(" ？?。，,！!") else question


def has_shape(sentence: str, shape: Shape, question: str) -> bool:
    """Tell whether a sentence holds the kind of thing that is asked for."""
    if shape in ("time", "number"):
        asked = quantities(question)
        new = [q for q in quantities(sentence) if not any(q.agrees_with(other) for other in asked)]
        if shape == "number":
            return any(quantity.kind in ("number", "percent", "year") for quantity in new)
        dated = any(_is_date(quantity, sentence) for quantity in new)
        return dated or bool(_WHEN_CUES.search(sentence))
    if shape == "person":
        if has_han(sentence):
            return True
        return any(name.lower() not in question.lower() for name in _CAPITALISED.findall(sentence))
    cues = {"reason": _REASON_CUES, "manner": _MANNER_CUES, "place": _PLACE_CUES, "definition": _DEFINITION_CUES}
    return bool(cues[shape].search(sentence))


def _is_date(quantity: Quantity, sentence: str) -> bool:
    if quantity.kind in ("year", "month", "day"):
        return True
    if quantity.kind != "number" or not all(value.is_integer() for value in quantity.values):
        return False
    value = max(quantity.values)
    written = quantity.end - quantity.start == len(str(int(value)))
    before = sentence[max(0, quantity.start - 8) : quantity.start]
    return written and (999 < value < 2100 or (99 < value <= 999 and bool(_BEFORE_YEAR.search(before))))
