"""Rules for questions: whether a model's rewording, goal or passage for them is usable."""

import re
import unicodedata
from pathlib import Path

from shiguan.resources import read_patterns
from shiguan.text.languages import detect_language
from shiguan.text.name_forms import foreign_names
from shiguan.text.terms import terms

_REPLIES = read_patterns(Path(__file__).with_name("rewritten_questions.yaml"))


_LONGEST_QUERY = 400
_GROWTH = 4
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "「": "」", "『": "』"}
_ENDS_IN_QUESTION = re.compile(r"[?？][\"”'’」)）\s]*$")
_FENCE = re.compile(r"```[ \t]*\w*")
_SHORTEST_PASSAGE = 8
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
_ABBREVIATION = re.compile(r"\b(?:[A-Z]\.){2,6}|\b[A-Z]{2,6}\b")
_CAPITALISED_RUN = re.compile(r"[A-Z][\w'’-]*(?: (?:of |and |for |the )?[A-Z][\w'’-]*){1,7}")
_OWN_SCRIPT = {"zh", "ja", "ko", "ar", "he", "ru", "el", "hi", "th"}
_FEWEST_WORDS = 5
_POINTING = re.compile(r"[他她它牠其这這那此该該们們的了呢吗嗎是有在为為什么麼哪何谁誰如怎样樣]")
_NOT_WORDS = re.compile(r"[\W_]+")


def cleaned_question(text: str) -> str:
    """Remove what models put around a question: a label, a number, quotation marks, line breaks."""
    line = " ".join(text.split())
    for _ in range(3):
        before = line
        line = _REPLIES["label"].sub("", line.strip("*_` "), count=1).strip()
        if len(line) > 2 and _QUOTES.get(line[0]) == line[-1] and line[0] not in line[1:-1]:
            line = line[1:-1].strip()
        if line == before:
            break
    return line if folded(line) else ""


def is_question(text: str) -> bool:
    """Return whether a text is a question or a request, and not a statement."""
    if _ENDS_IN_QUESTION.search(text):
        return True
    language = "zh" if detect_language(text) in ("zh", "ja") else "en"
    return bool(_REPLIES["question"][language].search(text))


def fault_of_rewrite(rewrite: str, question: str, context: str) -> str:
    """Return what is wrong with a follow-up that a model reworded as a standalone question."""
    if not rewrite:
        return "it is empty"
    if _refuses(rewrite, question):
        return "it is a refusal"
    if fault := _fault(rewrite, question, max(_LONGEST_QUERY, _GROWTH * len(question))):
        return fault
    if not is_question(rewrite) and is_question(question):
        return "it is not a question, perhaps an answer"
    if fault := _invention(rewrite, f"{context}\n{question}"):
        return fault
    # Rewriting replaces pronouns; a quarter of the other words of a question must stay.
    asked = set(terms(_POINTING.sub(" ", question)))
    drops = len(asked) > 2 and len(asked & set(terms(rewrite))) < 0.25 * len(asked)
    return "it asks something else" if drops else ""


def fault_of_goal(goal: str, question: str, context: str) -> str:
    """Return what is wrong with a model's statement of the user's goal."""
    if not goal:
        return "the LLM's reply was not in the form asked for"
    if _refuses(goal, question):
        return "the LLM refused"
    return _fault(goal, question, _LONGEST_QUERY) or _invention(goal, f"{context}\n{question}")


def _refuses(text: str, question: str) -> bool:
    refusal = _REPLIES["refusal"]
    return bool(refusal.search(text)) and not refusal.search(question)


def _fault(text: str, question: str, longest: int) -> str:
    if len(text) > longest:
        return f"it is too long ({len(text):,} characters)"
    return "" if _same_language(text, question) else f"it is in another language ({detect_language(text)})"


def question_part(text: str) -> str:
    """Cut off an answer that a model added to the question."""
    at = max(text.rfind("?"), text.rfind("？"))
    rest = text[at + 1 :].strip(" \"”'’」)）.。")
    return text[: at + 1] if at > 0 and rest else text


def usable_queries(found: list[str], question: str, *, most: int) -> list[str]:
    """Return a model's queries that can be searched besides the question."""
    seen = {folded(question)}
    kept: list[str] = []
    for text in found:
        query = cleaned_question(text)
        key = folded(query)
        if key and key not in seen and len(query) <= _LONGEST_QUERY and not _refuses(query, question):
            seen.add(key)
            kept.append(query)
    return kept[:most]


def cleaned_passage(reply: str, max_characters: int) -> str:
    """Extract the passage from a reply."""
    text = _FENCE.sub("", reply)
    text = _REPLIES["passage_label"].sub("", text.strip(), count=1)
    text = " ".join(text.split()).strip("\"“”'` ")
    if len(text) < _SHORTEST_PASSAGE or _REPLIES["passage_refusal"].search(text):
        return ""
    return text[:max_characters]


def folded(text: str) -> str:
    """Reduce a query to letters and digits of one case, by which queries are compared."""
    return _NOT_WORDS.sub("", unicodedata.normalize("NFKC", text)).casefold()


def _same_language(text: str, other: str) -> bool:
    languages = {detect_language(text), detect_language(other)}
    if len(languages) == 1 or "und" in languages:
        return True
    # The language of a few Latin words, often names, cannot be detected.
    return not languages & _OWN_SCRIPT and min(len(text.split()), len(other.split())) < _FEWEST_WORDS


def _invention(text: str, context: str) -> str:
    known = set(_DIGITS.findall(context))
    spelt_out = _spelt_out(text, context)
    names = [name for name in foreign_names(text, set(terms(context))) if name not in spelt_out]
    invented = names or [number for number in _DIGITS.findall(text) if number not in known]
    return f"it names what nobody had mentioned ({', '.join(invented[:3])})" if invented else ""


def _spelt_out(text: str, context: str) -> set[str]:
    """Return the words of names that the conversation has as an abbreviation, such as GDPR or U.S."""
    short = {match.replace(".", "") for match in _ABBREVIATION.findall(context)}
    words: set[str] = set()
    for run in _CAPITALISED_RUN.findall(text):
        capitalised = [word for word in run.split() if word[0].isupper()]
        for start in range(len(capitalised)):
            for end in range(start + 2, len(capitalised) + 1):
                if "".join(word[0] for word in capitalised[start:end]) in short:
                    words.update(capitalised[start:end])
    return words
