"""Tells a question that leans on the conversation from one that stands alone, by rules."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from shiguan.resources import read_patterns
from shiguan.text.languages import HAN, detect_language

_SHORT_ZH = 4
_QUOTED = re.compile(r"“[^”]*”|「[^」]*」|《[^》]*》|\"[^\"]*\"")


@cache
def _cues() -> dict[str, Any]:
    return read_patterns(Path(__file__).with_name("follow_up.yaml"))


def needs_context(question: str, *, has_history: bool = True) -> bool:
    """
    Tell whether a question has to be read with the turns before it.

    Meant to save a call of a model, so it errs towards yes. A pronoun without a name before it, a word that opens an
    addition ("And…", "那…"), something left out ("the other one", "呢？"), a side of an unnamed thing ("What are the
    symptoms?") or next to no words are a yes. An English question is a no only if it names its own subject.
    """
    text = " ".join(question.split())
    if not has_history or not text:
        return False
    plain = _QUOTED.sub("“”", text)
    found = {name for name, pattern in _cues().items() if pattern.search(plain)}
    if detect_language(text) in ("zh", "ja"):
        leaning = {"pointers_zh", "openers_zh", "ending_zh", "side_zh"}
        return bool(found & leaning) or len(HAN.findall(plain)) <= _SHORT_ZH
    if found & {"openers_en", "missing_en", "bare_side_en"}:
        return True
    if "pointers_en" in found and "antecedent_en" not in found:
        return True
    if found & {"explain_en", "antecedent_en"}:
        return False
    return "name_en" not in found or "the_one_en" in found
