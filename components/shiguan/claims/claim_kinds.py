"""Tells sentences that state something from those that talk to the reader or admit not to know."""

import re
from functools import cache
from typing import Literal

from shiguan.claims.claims import find_marks
from shiguan.llm.prompts import modes_with_sentence, not_found_sentence
from shiguan.text.terms import terms

ClaimKind = Literal["statement", "silence", "talk"]

_MATERIAL = r"(?:sources?|documents?|passages?|texts?|context|articles?|materials?|excerpts?|provided information)"
_TELLS = (
    r"(?:say|state|mention|specif\w*|provide|contain|include|give|answer|address|discuss|explain|indicate|describe|"
    r"list|cover|clarify|tell|record|name|know)"
)
# The sentence says that something is not in the sources, or that the writer does not know it.
_SILENCE = re.compile(
    rf"\b{_MATERIAL}\b[^.,;]{{0,30}}\b(?:do(?:es)? not|don't|doesn't|did not|didn't|never)\b[^.,;]{{0,20}}\b{_TELLS}\b"
    rf"|\b{_MATERIAL}\b[^.,;]{{0,20}}\b(?:contain|provide|give|offer|have|has)s? no\b"
    r"|\bthere (?:is|are|was|isn't|aren't)[^.,;]{0,8}\b(?:no|not|any)\b[^.,;]{0,24}\b(?:information|mention|details?|"
    rf"reference|indication)\b[^.;]{{0,60}}(?:{_MATERIAL}|$|\bof\b|\babout\b|\bon\b)"
    r"|\bi (?:do not|don't|did not|didn't|cannot|can't|could not|couldn't) "
    r"(?:have|find|see|know|answer|say|tell|provide)\b"
    r"|\bnot (?:explicitly |directly )?"
    rf"(?:mentioned|stated|specified|given|discussed|recorded)\b[^.;]{{0,25}}\b{_MATERIAL}"
    r"|\bi(?:'m| am) (?:not sure|unable|sorry|afraid)\b|^sorry\b|\bi apologi[sz]e\b"
    r"|(?:资料|来源|材料|文本|文档|上文|原文|史料|資料|來源|材料|文檔|原文)[^。，；]{0,12}(?:没有|未|并未|不曾|无|沒有|並未|無)"
    r"[^。，；]{0,8}(?:提及|提到|说明|记载|给出|涉及|信息|答案|说|载|說明|記載|給出|說|載)"
    r"|^(?:因此|所以|目前|故)?[，,]?(?:我们?|我們)?(?:无法|不能|無法)(?:确定|回答|判断|得知|確定|判斷)"
    r"|^(?:资料|史料|史書|史书|書中|书中|資料)?未[载載]|^(?:抱歉|对不起|不好意思|對不起)",
    re.IGNORECASE,
)
# The sentence speaks to the reader: an offer, a request, a piece of advice to ask others, an announcement.
_TALK = re.compile(
    r"^(?:please )?(?:feel free|let me know|i hope|is there anything|could you|can you|would you|do you|"
    r"here(?:'s| is| are)\b|"
    r"it (?:seems|looks) like (?:there|you)\b|i(?:'d| would|'ll| will) (?:be happy|be glad|like to|need)\b|"
    r"thank|happy to|"
    r"good luck|if you (?:have|need|would like|want)\b[^.]*\b(?:ask|let me|question|help|assist))"
    r"|\bfeel free to (?:ask|contact|reach)\b|\blet me know\b"
    r"|\bconsult(?:ing)?(?: with)? an?\b[^.]*\b(?:professional|"
    r"advis[eo]r|expert|lawyer|doctor|attorney|accountant|consultant)"
    r"|^(?:如果|若|如)(?:您|你)(?:还|有|需要|想|還)[^。]*(?:告诉|提问|联系|帮助|咨询|告訴|提問|聯繫|幫助)|^(?:希望|祝)[^。]*(?:您|你)"
    r"|请(?:告诉|告知|随时)|請(?:告訴|告知|隨時)|^(?:以下|下面)是",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？][\"”’」』)）]?\s*$")
# Where a sentence goes over from what is not said to what is.
_TURN = re.compile(
    r"[;；]\s*|,?\s+(?:but|however|although|though|yet|so)\b,?\s*|[，,]\s*(?:但是?|不过|不過|然而|只是|却|卻|只)|(?<=[^,]),\s+(?=they\b|it\b|the\b|we\b)",
    re.IGNORECASE,
)
# Fewer search terms than these state nothing that could be checked.
_FEWEST = 3
_LANGUAGES = ("en", "zh")


def claim_kind(sentence: str) -> ClaimKind:
    """Name what a sentence of an answer does."""
    plain = sentence.strip().replace("’", "'")
    if _QUESTION.search(plain):
        return "talk"
    if _SILENCE.search(plain):
        return "silence"
    return "talk" if _TALK.search(plain) else "statement"


def stated_part(sentence: str) -> str:
    """
    Give the part of a sentence that states something and so needs a source.

    A sentence that admits a gap may go on with a statement ("The sources do not name the year, but he died in 757"):
    only the clause that admits is free of proof.
    """
    if claim_kind(sentence) == "statement":
        return sentence
    clauses = [clause for clause in _TURN.split(sentence) if clause and clause.strip()]
    stated = [clause.strip() for clause in clauses if claim_kind(clause) == "statement"]
    joined = ", ".join(stated)
    if len(clauses) < 2 or len(terms(joined)) < _FEWEST:
        return ""
    return joined


def is_not_found(text: str) -> bool:
    """
    Tell whether a text is the not-found sentence of any mode, in any of its languages, and nothing else.

    Compared by search terms, so that quotes, punctuation, emphasis, case and traditional characters do not matter;
    citation marks that a model put behind it are ignored.
    """
    plain = text
    for mark in reversed(find_marks(text)):
        plain = plain[: mark.start] + " " + plain[mark.end :]
    said = tuple(terms(plain))
    return bool(said) and said in _sentences()


@cache
def _sentences() -> frozenset[tuple[str, ...]]:
    sentences = (not_found_sentence(mode, language) for mode in modes_with_sentence() for language in _LANGUAGES)
    return frozenset(tuple(terms(sentence)) for sentence in sentences)
