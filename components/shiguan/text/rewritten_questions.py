"""Judges what a model made of a question: what may be searched, and what must be thrown away."""

import re
import unicodedata
from pathlib import Path

from shiguan.resources import read_patterns
from shiguan.text.languages import detect_language
from shiguan.text.name_clues import foreign_names
from shiguan.text.terms import terms

_LONGEST_QUERY = 400
_GROWTH = 4
_CUES = read_patterns(Path(__file__).with_name("rewritten_questions.yaml"))
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "「": "」", "『": "』"}
_ENDS_IN_QUESTION = re.compile(r"[?？][\"”'’」)）\s]*$")
_FENCE = re.compile(r"```[ \t]*\w*")
_SHORTEST_PASSAGE = 8
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
_ABBREVIATION = re.compile(r"\b(?:[A-Z]\.){2,6}|\b[A-Z]{2,6}\b")
_CAPITALISED_RUN = re.compile(r"[A-Z][\w'’-]*(?: (?:of |and |for |the )?[A-Z][\w'’-]*){1,7}")
_OWN_SCRIPT = {"zh", "ja", "ko", "ar", "he", "ru", "el", "hi", "th"}
_TELLING_WORDS = 5
# What a pronoun becomes is the point of rewriting; only what else was asked must stay.
_POINTING = re.compile(r"[他她它牠其这這那此该該们們的了呢吗嗎是有在为為什么麼哪何谁誰如怎样樣]")
_NOT_WORDS = re.compile(r"[\W_]+")


def cleaned_question(text: str) -> str:
    """Take away what models put around a question: a label, a number, quotation marks, line breaks."""
    line = " ".join(text.split())
    for _ in range(3):
        before = line
        line = _CUES["label"].sub("", line.strip("*_` "), count=1).strip()
        if len(line) > 2 and _QUOTES.get(line[0]) == line[-1] and line[0] not in line[1:-1]:
            line = line[1:-1].strip()
        if line == before:
            break
    return line if folded(line) else ""


def is_question(text: str) -> bool:
    """Tell a question or a request from a statement."""
    if _ENDS_IN_QUESTION.search(text):
        return True
    language = "zh" if detect_language(text) in ("zh", "ja") else "en"
    return bool(_CUES["question"][language].search(text))


def fault_of_rewrite(rewrite: str, question: str, context: str) -> str:
    """Find what is wrong with a follow-up that a model made to stand alone."""
    if not rewrite:
        return "it is empty"
    if _CUES["refusal"].search(rewrite) and not _CUES["refusal"].search(question):
        return "it is a refusal"
    if len(rewrite) > max(_LONGEST_QUERY, _GROWTH * len(question)):
        return f"it is too long ({len(rewrite):,} characters)"
    if not _same_language(rewrite, question):
        return f"it is in another language ({detect_language(rewrite)})"
    if not is_question(rewrite) and is_question(question):
        return "it is no question, perhaps an answer"
    invented = _invented(rewrite, f"{context}\n{question}")
    if invented:
        return f"it names what nobody had mentioned ({', '.join(invented[:3])})"
    if _drops_the_question(rewrite, question):
        return "it asks something else"
    return ""


def fault_of_goal(goal: str, question: str, context: str) -> str:
    """Find what is wrong with a model's sentence on what the person is after."""
    if not goal:
        return "the LLM's reply was not in the form asked for"
    if _CUES["refusal"].search(goal) and not _CUES["refusal"].search(question):
        return "the LLM refused"
    if len(goal) > _LONGEST_QUERY:
        return f"it is too long ({len(goal):,} characters)"
    if not _same_language(goal, question):
        return f"it is in another language ({detect_language(goal)})"
    invented = _invented(goal, f"{context}\n{question}")
    return f"it names what nobody had mentioned ({', '.join(invented[:3])})" if invented else ""


def question_part(text: str) -> str:
    """Cut an answer off that a model gave along with the question."""
    at = max(text.rfind("?"), text.rfind("？"))
    rest = text[at + 1 :].strip(" \"”'’」)）.。")
    return text[: at + 1] if at > 0 and rest else text


def usable_queries(found: list[str], question: str, *, most: int) -> list[str]:
    """Keep of a model's queries those that can be searched beside the question."""
    seen = {folded(question)}
    kept: list[str] = []
    for text in found:
        query = cleaned_question(text)
        key = folded(query)
        if not key or key in seen or len(query) > _LONGEST_QUERY:
            continue
        if _CUES["refusal"].search(query) and not _CUES["refusal"].search(question):
            continue
        seen.add(key)
        kept.append(query)
    return kept[:most]


def cleaned_passage(reply: str, max_characters: int) -> str:
    """Take a passage out of a reply."""
    text = _FENCE.sub("", reply)
    text = _CUES["passage_label"].sub("", text.strip(), count=1)
    text = " ".join(text.split()).strip("\"“”'` ")
    if len(text) < _SHORTEST_PASSAGE or _CUES["passage_refusal"].search(text):
        return ""
    return text[:max_characters]


def folded(text: str) -> str:
    """Reduce a query to what makes it the same query."""
    return _NOT_WORDS.sub("", unicodedata.normalize("NFKC", text)).casefold()


def _same_language(text: str, other: str) -> bool:
    languages = {detect_language(text), detect_language(other)}
    if len(languages) == 1 or "und" in languages:
        return True
    # In few Latin words, often names, no language can be told from another.
    return not languages & _OWN_SCRIPT and min(len(text.split()), len(other.split())) < _TELLING_WORDS


def _invented(text: str, said: str) -> list[str]:
    known = set(_DIGITS.findall(said))
    spelt_out = _spelt_out(text, said)
    names = [name for name in foreign_names(text, said) if name not in spelt_out]
    return names or [number for number in _DIGITS.findall(text) if number not in known]


def _spelt_out(text: str, said: str) -> set[str]:
    """Collect the words of names that the conversation has as an abbreviation, such as GDPR or U.S."""
    short = {match.replace(".", "") for match in _ABBREVIATION.findall(said)}
    words: set[str] = set()
    for run in _CAPITALISED_RUN.findall(text):
        capitalised = [word for word in run.split() if word[0].isupper()]
        for start in range(len(capitalised)):
            for end in range(start + 2, len(capitalised) + 1):
                if "".join(word[0] for word in capitalised[start:end]) in short:
                    words.update(capitalised[start:end])
    return words


def _drops_the_question(rewrite: str, question: str) -> bool:
    asked = set(terms(_POINTING.sub(" ", question)))
    if len(asked) < 3:
        return False
    return len(asked & set(terms(rewrite))) < 0.25 * len(asked)
