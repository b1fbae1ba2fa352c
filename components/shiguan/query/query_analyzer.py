"""Classifies a question, so that later stages spend no more on it than it needs."""

import re
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from haystack import component

from shiguan.reading.text import read_text
from shiguan.resources import read_patterns

QuestionType = Literal["simple_fact", "complex_reasoning", "multi_hop", "comparison", "aggregation", "open_ended"]
_TYPES: tuple[QuestionType, ...] = get_args(QuestionType)

_BASE = dict(zip(_TYPES, (2, 6, 5, 6, 4, 6), strict=True))
# The types whose answers are prose that a model could imagine; names, numbers and lists are not.
_PROSE = ("complex_reasoning", "comparison", "open_ended")
_CHOICE_COMPLEXITY = 4
_PLAIN_TEXT_TASK = 4
_LONG = {"zh": 45, "en": 26}
_ASKS_WHAT_IT_IS = re.compile(
    r"^(?:what is|what's|define|who was|who is)\b|什么是|什麼是|是什么|是誰|是谁|何谓|何許人|何许人", re.IGNORECASE
)
# From this complexity on a hypothetical passage justifies its call.
_HYDE_FROM = 6
# Up to the first complexity a question is searched unchanged; from the second on it is decomposed.
_DIRECT_UNTIL, _DECOMPOSE_FROM = 3, 7


@component
class QueryAnalyzer:
    """
    Finds the type, difficulty, language, task and scope of a question, and the method to search for it.

    Rules for Chinese and English decide, in well under a millisecond; in other languages they recognize little and
    classify most questions as simple.

    - `type`: simple_fact, complex_reasoning, multi_hop, comparison, aggregation or open_ended
    - `complexity`: 1 to 10; `language`: ISO 639-1; `task`: qa, summarize, compare or code
    - `scope`: local (exact details) or global (a synthesis)
    - `use_hyde`: from complexity 6, where the answer is prose; names, dates and lists gain nothing from an imagined
      passage that guesses them
    - `method` for `QueryRewriter`: none up to complexity 3; decompose from 7 and for multi-hop; multi_query for
      comparison, aggregation and open questions; step_back for reasoning; otherwise expand

    Example:
    ```python
    QueryAnalyzer().run(query="安史之乱为什么会爆发？")["analysis"]
    # {"type": "complex_reasoning", "complexity": 6, "language": "zh", "task": "qa", "scope": "global",
    #  "use_hyde": True, "method": "step_back", "reasons": ["complex_reasoning: why"]}
    ```
    """

    @component.output_types(analysis=dict[str, Any])
    def run(
        self,
        query: str,
        task: str | None = None,
        language: str | None = None,
        scope: str | None = None,
    ) -> dict[str, Any]:
        """
        Analyse a question.

        :param query: The question.
        :param task: The task, if the user named one; it takes precedence over that of the analysis.
        :param language: The language of the answer, if the user named one.
        :param scope: `local` or `global`, if the user named one; None or `auto` for that of the analysis.
        :returns: `analysis`, a plain dict.
        """
        analysis = analyse_question(query, task)
        if language:
            analysis["language"] = language
        if scope not in (None, "", "auto"):
            analysis["scope"] = scope
        return {"analysis": analysis}


def analyse_question(question: str, task: str | None = None) -> dict[str, Any]:
    """Analyse a question by rules; a given task takes precedence over the one that it seems to have."""
    rules = _rules()
    text = " ".join(question.split())
    language = read_text(text).language
    table = "zh" if language in ("zh", "ja") else "en"
    type_, cues = _type_of(text, table)
    own_task = _task_of(text, type_)
    if own_task in ("code", "summarize"):
        type_ = "open_ended"
    task = task or own_task
    whole_text = own_task == "summarize" and bool(rules["whole_text"].search(text))
    choice = type_ == "comparison" and bool(rules["choice"][table].search(text))
    complexity, harder = _complexity_of(text, table, type_, plain=own_task == "code" or whole_text, choice=choice)
    imaginable = type_ in _PROSE and not choice and not whole_text and own_task != "code"
    return {
        "type": type_,
        "complexity": complexity,
        "language": language,
        "task": task,
        "scope": "local" if type_ in ("simple_fact", "multi_hop") else "global",
        "use_hyde": imaginable and complexity >= _HYDE_FROM,
        "method": _method(type_, complexity, plain=task == "code" or (task == "summarize" and not imaginable)),
        "reasons": [f"{type_}: {name}" for name in cues] + harder or ["simple_fact: no cue of another type"],
    }


def _method(type_: QuestionType, complexity: int, *, plain: bool) -> str:
    """Choose how a standalone question is reworded."""
    if complexity <= _DIRECT_UNTIL or plain:
        return "none"
    if type_ == "multi_hop" or complexity >= _DECOMPOSE_FROM:
        return "decompose"
    if type_ in ("comparison", "aggregation", "open_ended"):
        return "multi_query"
    return "step_back" if type_ == "complex_reasoning" else "expand"


_rules = partial(read_patterns, Path(__file__).with_name("analysis_rules.yaml"))


def _type_of(text: str, table: str) -> tuple[QuestionType, list[str]]:
    weights: dict[str, float] = {}
    names: dict[str, list[str]] = {}
    rules = _rules()
    plain = bool(rules["plain_ask"][table].search(text))
    for type_, cues in rules["cues"][table].items():
        # A cue whose name is in brackets may also be part of a question about a plain fact.
        asked = {name: cue for name, cue in cues.items() if not (plain and name.startswith("("))}
        found = {name: cue["weight"] for name, cue in asked.items() if cue["pattern"].search(text)}
        if found:
            weights[type_] = max(found.values())
            names[type_] = list(found)
    if rules["identity"][table].search(text) and _hops(text, table) < 2:
        weights.pop("multi_hop", None)
    if not weights:
        return "simple_fact", []
    best = max(_TYPES, key=lambda type_: weights.get(type_, 0.0))
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
