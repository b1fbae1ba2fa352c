"""Counts the negations of a sentence, in Chinese and English."""

import re

_ENGLISH = re.compile(
    r"\b(?:not|no|never|none|nor|neither|without|cannot|nobody|nothing|nowhere|hardly|failed to|refused to|unable to)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
# Words that look like denials and deny nothing are taken out first.
_HARMLESS = re.compile(
    # An opening no answers the question and is no part of the statement.
    r"^\s*no,|^(?:不|没有|不是)，|not only|no\. ?\d|no doubt|not just|no longer than"
    r"|不[仅僅但久少同断斷过過料意得如及惜管论論足足]|不得不|无[数數论論比]|無[数數论論比]|非常|未[来來]|差不多|了不起|莫[不非]|除非|否则|否則|是否|[能可会會]否"
    r"|无不|無不|不[可能]不|并非不|不知不觉|没完|沒完",
    re.IGNORECASE,
)
_CHINESE = re.compile(r"不|没|沒|未|无|無|非|莫|勿|弗|毋")


def negations(sentence: str) -> int:
    """Count the words by which a sentence denies."""
    plain = _HARMLESS.sub(" ", sentence)
    return len(_ENGLISH.findall(plain)) + len(_CHINESE.findall(plain))
