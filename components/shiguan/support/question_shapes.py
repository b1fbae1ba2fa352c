"""What kind of answer a question asks for, and which sentences have one: rules for Chinese and English."""

import re
from typing import Literal

from shiguan.support.quantities import quantities

Shape = Literal["time", "number", "person", "place", "reason", "manner", "definition"]

_ENGLISH: list[tuple[Shape, re.Pattern[str]]] = [
    (shape, re.compile(pattern, re.IGNORECASE))
    for shape, pattern in [
        ("number", r"\bhow (?:many|much|long|far|tall|old|large|big|often|high|deep|wide|fast|heavy)\b"
                   r"|\bwhat (?:number|percent\w*|amount|population|proportion|fraction|share)\b|\bpercentage\b"),
        ("time", r"\bwhen\b|\b(?:what|which|in what|in which) (?:\w+ )?(?:year|month|day|date|century|decade|period|era|"
                 r"time)\b|\bsince what\b"),
        ("person", r"\bwho(?:m|se)?\b|\b(?:what|which) (?:\w+ ){0,2}(?:person|man|woman|king|queen|emperor|general|president|"
                   r"author|scientist|leader|ruler|bishop|pope|philosopher|composer|artist)\b|\bname of the (?:man|woman)"),
        ("place", r"\bwhere\b|\b(?:what|which) (?:\w+ ){0,2}(?:country|city|state|place|region|town|province|river|continent|"
                  r"nation|island|county|location|capital)\b"),
        ("reason", r"\bwhy\b|\bwhat (?:\w+ )?(?:caused?|reasons?|led to|purpose)\b|\bfor what (?:reason|purpose)"),
        ("manner", r"\bhow\b"),
        ("definition", r"^(?:who|what) (?:is|was|are|were) (?:an? |the )?[^?]{2,50}\?*$|\bwhat does .* mean\b|\bdefine\b"),
    ]
]  # fmt: skip
_CHINESE: list[tuple[Shape, re.Pattern[str]]] = [
    (shape, re.compile(pattern))
    for shape, pattern in [
        ("time", r"何时|何時|何年|什么时候|什麼時候|甚麼時候|哪(?:一|个|個)?(?:年|天|月|日|世纪|世紀|时期|時期|朝代|时间|時間)"
                 r"|几(?:年|月|日|号|点)|幾(?:年|月|日|號|點)|多久|什么(?:时间|年代|时期|朝代)|什麼(?:時間|年代|時期|朝代)"
                 r"|(?:时间|時間|日期|年份)(?:是|为|為)|何日|何月"),
        ("number", r"多少|几(?!乎|何)|幾(?!乎|何)|多(?:大|高|长|長|远|遠|深|重|宽|寬)|比例|百分之"),
        ("person", r"谁|誰|何人|哪(?:一)?(?:位|个人|個人|名)|什么人|什麼人|甚麼人"),
        ("place", r"哪里|哪裡|哪裏|哪儿|何处|何處|何地|在哪|哪(?:一|个|個|座|些)?(?:国|國|城|省|地|县|縣|州|市|洲)"
                  r"|什么(?:地方|地区|城市|国家)|什麼(?:地方|地區|城市|國家)|位于|位於"),
        ("reason", r"为什么|為什麼|为何|為何|何以|原因|为甚么|為甚麼|缘故|緣故|怎么会|因何"),
        ("manner", r"如何|怎么|怎麼|怎样|怎樣|怎么样|方式|方法"),
        ("definition", r"是谁|是誰|是什么|是什麼|何谓|何謂|是何(?:人|物)|什么是|什麼是|是怎样的|指的是"),
    ]
]  # fmt: skip
_HAN = re.compile(r"[\u3400-\u9fff]")
# Who or what is this one thing? Not: who was the leader of that?
_INTRODUCE = re.compile(
    r"^(?i:who|what) (?:is|was|are|were) (?:(?:the|an?) )?(?:[A-Z][\w'’-]*|of|the|de|van|von|al)(?: (?:[A-Z][\w'’-]*|of|the|de|van|von))*\s*\?*$"
    r"|^[^，,的是为為]{1,12}(?:是谁|是誰|是何人|是什么人|是什麼人|是什么|是什麼|何许人也|何許人也)[？?]*$|^(?:什么|什麼|何谓|何謂)是?[^，,的]{1,12}[？?]*$"
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
    r"\b(?:in|at|near|from|to|of|on|outside|between) (?:the )?[A-Z]|位于|位於|在|至|于|於|出生|地处|地處|[省市县縣州郡国國镇鎮村区區路城道山河江]"
)
_DEFINITION_CUES = re.compile(
    r"\b(?:is|was|are|were|means|refers to|known as|called|defined as)\b|是|为|為|者|也|指|称|稱|即|名|字|人[。，,]",
    re.IGNORECASE,
)
_CAPITALISED = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'’-]+")
_WHEN_CUES = re.compile(
    r"\b(?:century|decade|BC|AD|during|era|period)\b|世纪|世紀|年间|年間|时期|時期|初年|末年|当年|[春夏秋冬]|"
    r"月[朔望晦]|[甲乙丙丁戊己庚辛壬癸][子丑寅卯辰巳午未申酉戌亥]"
)


def question_shapes(question: str) -> list[Shape]:
    """
    Tell what kinds of answer a question asks for.

    :param question: A question in Chinese or English.
    :returns: The kinds, the most telling first; empty where nothing tells.
    """
    if _INTRODUCE.search(question.strip()):
        return ["definition"]
    rules = _CHINESE if _HAN.search(question) else _ENGLISH
    found = [shape for shape, pattern in rules if pattern.search(question.strip())]
    return [shape for shape in found if not (shape == "manner" and len(found) > 1)]


def question_subject(question: str) -> str:
    """
    Take from a question the words that only make it a question.

    English ones are stop words of the search terms already; Chinese ones are cut out here, with a space in their
    place, so that no pair of characters is formed across them.

    :param question: A question in Chinese or English.
    :returns: The rest; the question itself if nothing would be left.
    """
    subject = _CHINESE_FRAME.sub(" ", question)
    return subject if subject.strip(" ？?。，,！!") else question


def has_shape(sentence: str, shape: Shape, question: str) -> bool:
    """
    Tell whether a sentence holds the kind of thing that is asked for.

    :param sentence: A sentence of a source.
    :param shape: The kind.
    :param question: The question: what it says itself is no answer to it.
    :returns: True if there is such a thing in it.
    """
    if shape in ("time", "number"):
        asked = quantities(question)
        new = [q for q in quantities(sentence) if not any(q.agrees_with(other) for other in asked)]
        if shape == "number":
            return any(quantity.kind in ("number", "percent", "year") for quantity in new)
        dated = any(q.kind in ("year", "month", "day") or any(999 < v < 2100 for v in q.values) for q in new)
        return dated or bool(_WHEN_CUES.search(sentence))
    if shape == "person":
        if _HAN.search(sentence):
            return True
        return any(name.lower() not in question.lower() for name in _CAPITALISED.findall(sentence))
    cues = {"reason": _REASON_CUES, "manner": _MANNER_CUES, "place": _PLACE_CUES, "definition": _DEFINITION_CUES}
    return bool(cues[shape].search(sentence))
