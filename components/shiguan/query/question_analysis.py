"""Reads off a question, by rules, what it asks for and how it is best rewritten."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from shiguan.resources import read_patterns
from shiguan.text.languages import detect_language

QuestionType = Literal["simple_fact", "complex_reasoning", "multi_hop", "comparison", "aggregation", "open_ended"]
TYPES: tuple[QuestionType, ...] = get_args(QuestionType)
TASKS = ("qa", "summarize", "compare", "code")
SCOPES = ("local", "global")

_BASE = dict(zip(TYPES, (2, 6, 5, 6, 4, 6), strict=True))
# Which answers are prose that a writer could imagine; names, numbers and lists are not.
_PROSE = ("complex_reasoning", "comparison", "open_ended")
_CHOICE_COMPLEXITY = 4
_PLAIN_TEXT_TASK = 4
_LONG = {"zh": 45, "en": 26}
_ASKS_WHAT_IT_IS = re.compile(
    r"^(?:what is|what's|define|who was|who is)\b|什么是|什麼是|是什么|是誰|是谁|何谓|何許人|何许人", re.IGNORECASE
)


@dataclass(frozen=True)
class QuestionAnalysis:
    """What a question is like."""

    type: QuestionType
    complexity: int
    language: str
    task: str
    scope: str
    imaginable: bool
    reasons: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Give the fields as plain data."""
        return {**asdict(self), "reasons": list(self.reasons)}


def analyse_question(question: str) -> QuestionAnalysis:
    """Analyse a question by rules."""
    rules = _rules()
    text = " ".join(question.split())
    language = detect_language(text)
    table = "zh" if language in ("zh", "ja") else "en"
    type_, cues = _type_of(text, table)
    task = _task_of(text, type_)
    if task in ("code", "summarize"):
        type_ = "open_ended"
    whole_text = task == "summarize" and bool(rules["whole_text"].search(text))
    choice = type_ == "comparison" and bool(rules["choice"][table].search(text))
    complexity, harder = _complexity_of(text, table, type_, plain=task == "code" or whole_text, choice=choice)
    return QuestionAnalysis(
        type=type_,
        complexity=complexity,
        language=language,
        task=task,
        scope="local" if type_ in ("simple_fact", "multi_hop") else "global",
        imaginable=type_ in _PROSE and not choice and not whole_text and task != "code",
        reasons=tuple([f"{type_}: {name}" for name in cues] + harder) or ("simple_fact: no cue of another type",),
    )


def with_model_reply(analysis: QuestionAnalysis, reply: dict[str, Any]) -> tuple[QuestionAnalysis, list[str]]:
    """Let a model's opinion override the rules, field by field, where it is one of the allowed values."""
    changes: dict[str, Any] = {}
    broken = []
    for field, allowed in (("type", TYPES), ("task", TASKS), ("scope", SCOPES)):
        value = str(reply.get(field, "")).strip().lower().replace(" ", "_").replace("-", "_")
        if value in allowed:
            changes[field] = value
        else:
            broken.append(field)
    complexity = reply.get("complexity")
    if isinstance(complexity, str) and re.fullmatch(r"\s*\d{1,2}\s*(?:/\s*10\s*)?", complexity):
        complexity = int(re.findall(r"\d+", complexity)[0])
    if isinstance(complexity, int | float) and not isinstance(complexity, bool) and 1 <= complexity <= 10:
        changes["complexity"] = round(complexity)
    else:
        broken.append("complexity")
    type_ = changes.get("type", analysis.type)
    if type_ != analysis.type:
        changes["imaginable"] = type_ in _PROSE and changes.get("task", analysis.task) != "code"
    elif changes.get("task") == "code":
        changes["imaginable"] = False
    return replace(analysis, **changes, reasons=(*analysis.reasons, "the LLM's opinion")), broken


@cache
def _rules() -> dict[str, Any]:
    return read_patterns(Path(__file__).with_name("analysis_rules.yaml"))


def _type_of(text: str, table: str) -> tuple[QuestionType, list[str]]:
    weights: dict[str, float] = {}
    names: dict[str, list[str]] = {}
    rules = _rules()
    plain = bool(rules["plain_ask"][table].search(text))
    for type_, cues in rules["cues"][table].items():
        # A name in brackets: the words may as well be part of a question about a plain fact.
        asked = {name: cue for name, cue in cues.items() if not (plain and name.startswith("("))}
        found = {name: cue["weight"] for name, cue in asked.items() if cue["pattern"].search(text)}
        if found:
            weights[type_] = max(found.values())
            names[type_] = list(found)
    if rules["identity"][table].search(text) and _hops(text, table) < 2:
        weights.pop("multi_hop", None)
    if not weights:
        return "simple_fact", []
    best = max(TYPES, key=lambda type_: weights.get(type_, 0.0))
    return best, names.get(best, [])


def _hops(text: str, table: str) -> int:
    if table == "zh":
        return text.count("的")
    return len(re.findall(r"\b(?:of|who|that|which|whose)\b", text[5:].replace("name of", ""), re.IGNORECASE))


def _task_of(text: str, type_: QuestionType) -> str:
    if _rules()["code"].search(text):
        return "code"
    if _rules()["summarise"].search(text):
        return "summarize"
    return "compare" if type_ == "comparison" else "qa"


def _complexity_of(text: str, table: str, type_: QuestionType, *, plain: bool, choice: bool) -> tuple[int, list[str]]:
    if plain:
        return _PLAIN_TEXT_TASK, []
    base = _CHOICE_COMPLEXITY if choice else _BASE[type_]
    if type_ == "simple_fact" and _ASKS_WHAT_IT_IS.search(text):
        base = 1
    rules = _rules()
    reasons = [name for name, pattern in rules["harder"][table].items() if pattern.search(text)]
    if (len(text) if table == "zh" else len(text.split())) > _LONG[table]:
        reasons.append("long")
    kinds = (rules["cues"][table][kind].values() for kind in _PROSE)
    if type_ in _PROSE and sum(any(cue["pattern"].search(text) for cue in cues) for cues in kinds) >= 2:
        reasons.append("of several kinds at once")
    return max(1, min(10, base + len(reasons))), reasons


# Up to this complexity a question is searched as it is, and from that on it is taken apart.
_DIRECT_UNTIL, _DECOMPOSE_FROM = 3, 7
METHODS = ("none", "multi_query", "step_back", "decompose", "expand", "contextualize")


def choose_method(found: QuestionAnalysis) -> str:
    """Choose the method for a question that stands alone."""
    if (
        found.complexity <= _DIRECT_UNTIL
        or found.task == "code"
        or (found.task, found.imaginable) == ("summarize", False)
    ):
        return "none"
    if found.type == "multi_hop" or found.complexity >= _DECOMPOSE_FROM:
        return "decompose"
    if found.type in ("comparison", "aggregation", "open_ended"):
        return "multi_query"
    return "step_back" if found.type == "complex_reasoning" else "expand"


def method_of(analysis: Mapping[str, Any] | None) -> str | None:
    """Read the method from an analysis that came over a wire."""
    method = (analysis or {}).get("method")
    return method if method in METHODS else None
