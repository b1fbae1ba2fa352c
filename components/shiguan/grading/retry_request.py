"""Puts into words what an attempt lacked: for the search, and for the next prompt."""

import re
from collections.abc import Sequence

from haystack import Document

from shiguan.claims.checker import CheckedClaim
from shiguan.llm.source_blocks import neutral_text
from shiguan.text.languages import HAN
from shiguan.text.terms import question_subject, terms

_MOST_CLAIMS = 6
_LONGEST_CLAIM, _LONGEST_QUERY = 300, 600
_TOKEN = re.compile(rf"[{HAN}]+|[^\W_{HAN}]+")
_WORDS = {
    "en": ("The sources do not support these sentences of it:", "What it lacked: ", "“{claim}” ({reason})"),
    "zh": ("下列句子没有资料支持：", "所缺：", "“{claim}”（{reason}）"),
}


def retry_queries(
    question: str, passages: Sequence[Document], refused: Sequence[CheckedClaim], missing: str = ""
) -> tuple[str, list[str]]:
    """
    Make the search for the next attempt from the question and from what of it no passage has, or a grader misses.

    Never from the words of a refused claim: whoever searches for an invention finds what seems to support it, and the
    answer is still none.
    """
    read = set[str]().union(*(terms(passage.content or "") for passage in passages))
    uncovered = [word for word in _TOKEN.findall(question_subject(question)) if not read.issuperset(terms(word))]
    said = set(terms(question))
    invented = set[str]().union(*(terms(one.stated) for one in refused)) - said
    wanted = " ".join(_without(missing[:_LONGEST_CLAIM], invented).split())
    queries = [question, " ".join(uncovered), wanted if set(terms(wanted)) - said else ""]
    queries = list(dict.fromkeys(query for query in queries if terms(query))) or [question]
    return " ".join(dict.fromkeys([question, *queries[1:]]))[:_LONGEST_QUERY], queries


def _without(text: str, invented: set[str]) -> str:
    """Take words out of a text: Latin ones, and Han characters in pairs."""

    def kept(match: re.Match[str]) -> str:
        token = match[0]
        if len(token) < 2 or not re.match(f"[{HAN}]", token):
            return " " if invented.issuperset(terms(token)) and terms(token) else token
        pairs = [
            any(len(term) == 2 and term in invented for term in terms(token[at : at + 2]))
            for at in range(len(token) - 1)
        ]
        gone = [before or after for before, after in zip([False, *pairs], [*pairs, False], strict=True)]
        return "".join(" " if out else character for character, out in zip(token, gone, strict=True))

    return _TOKEN.sub(kept, text)


def feedback_text(claims: Sequence[CheckedClaim], language: str, lacks: Sequence[str] = ()) -> str:
    """
    Tell the generator what was wrong with its answer, and how a grader would mend it.

    What the answer said is quoted as data: it may repeat what a passage wanted the model to say.
    """
    intro, lacked, item = _WORDS["zh" if language == "zh" else "en"]
    lines = []
    if claims:
        lines.append(intro)
        for one in claims[:_MOST_CLAIMS]:
            text = neutral_text(" ".join(one.claim.text.split()))[:_LONGEST_CLAIM]
            lines.append("- " + item.format(claim=text, reason=neutral_text(one.support.reason)))
    given = [neutral_text(" ".join(text.split()))[:_LONGEST_QUERY] for text in lacks if text.strip()]
    if given:
        lines.append(lacked + given[0])
        lines += [f"- {text}" for text in given[1:]]
    return "\n".join(lines)
