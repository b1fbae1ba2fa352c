"""Splits text into sentences in Chinese, English and other scripts: by rules, in linear time."""

import re
from itertools import pairwise
from pathlib import Path

from shiguan.resources import read_table

# A blank line, a form feed or a paragraph separator ends a sentence whatever precedes it; so does the start of a
# list item, of a table row, of a Markdown heading or of an indented Chinese paragraph, and the end of a heading line.
_NEWLINE = r"(?:\r\n?|[\n\x85\u2028])"
_HARD_BREAK = re.compile(
    rf"{_NEWLINE}[^\S\r\n\x85\u2028]*{_NEWLINE}"
    r"|[\x0b\x0c\x1c-\x1e\u2029]"
    rf"|{_NEWLINE}(?=\u3000|[ \t]{{0,8}}(?:[-*+•·▪‣◦]|\d{{1,3}}[.)]|#{{1,6}})[ \t]|[一二三四五六七八九十百]{{1,4}}、)"
    rf"|{_NEWLINE}(?=[^\r\n\x85\u2028]{{0,1000}}[ ]\|[ ]|[ \t]{{0,8}}(?:\||```|~~~))"
    rf"|#(?<![^\r\n\x85\u2028]#)#{{0,5}}[ \t][^\r\n]{{0,400}}(?:{_NEWLINE}|\Z)"
)

# Marks that end a sentence anywhere, without a space after them.
_FULL = frozenset("。！？；｡︒？！؟؛۔׃।॥։።፧။។៕༎‼⁇⁈⁉")
_ELLIPSIS = frozenset("…‥.")
_STOP = re.compile(
    # The stop itself: a run of marks, or a spaced ellipsis.
    r"(?P<run>\.(?:[ \u00a0]\.)+|[.!?．…‥。！？；｡︒؟؛۔׃।॥։።፧။។៕༎‼⁇⁈⁉]+)"
    # What closes with it: quotes, brackets, direction marks, emphasis, and the marks of notes and citations.
    r"(?P<close>(?: ?\[\^?\d{1,3}(?:[ ,，、–-]{1,3}\d{1,3}){0,8}\](?!\()| ?【\d{1,3}】"
    r"|\*{1,3}(?![\w*])|_{1,3}(?!\w)|[”’״」』）》〉】〕］｝﹂﹄)\]}»›\"'＂＇¹²³⁰⁴-⁹"
    r"\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]|[“‘«](?=\s|$)|[ \u00a0\u202f]»(?=[\s,.;]|$)){0,24})"
)
_WORD_BEFORE = re.compile(r"[^\W_]+(?:\.[^\W_]+)*$")
_WORD_AFTER = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_LAST_WORD = re.compile(r"[^\W_]\S*\s+$")
_ROMAN_OR_LETTER = re.compile(r"(?:[ivxlcdm]+|[IVXLCDM]+|[A-Z]\d*)(?![^\W_])")
_LABEL = re.compile(
    r"\s*(?:(?:table|figure|map|plate|chart|box|illustration|chapter|part|section|book|act|scene|canto|volume)\s)?\s*",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[\d¼-¾⅐-⅞]|[AB]\.?[CD]\b")
_WORD_OF_A_LETTER = re.compile(r"[IA]\s")
# "Ph.D", "LL.B", "N.E".
_DOTTED = re.compile(r"(?=.*\b[^\W\d_]\b)(?:[^\W\d_](?:\.[^\W\d_])+|[A-Z][A-Za-z]{0,3}(?:\.[A-Z][A-Za-z]{0,3})+)")
_NO_SPACE = re.compile(r"\S")
_TRIMMED = re.compile(r"\S(?:.*\S)?", re.DOTALL)
# How far around a stop words are read, in characters: longer than any abbreviation.
_REACH = 40
_OPENERS = "»“‘\"'([{«‹„‚״¿¡—–-*_#>（《「『【〈\u200e\u200f\u061c\u202a\u202b\u2066\u2067\u2068"
_WIDE = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_TITLES, _NUMBERED, _WORDS, _OPEN, _STARTERS = (
    frozenset(words.split()) for words in read_table(Path(__file__).with_name("sentences.yaml")).values()
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """
    Find the sentences of a text, in linear time.

    Chinese and Japanese ones end at 。！？； and ……, English ones at . ! ? unless the word before is an abbreviation,
    others at their own stops; a blank line always ends one, a plain line break never does.
    """
    ends = [0]
    for start, end in pairwise(_hard_ends(text)):
        ends += [*_sentence_ends(text, start, end), end]
    return [found.span() for start, end in pairwise(ends) if (found := _TRIMMED.search(text, start, end))]


def _hard_ends(text: str) -> list[int]:
    ends = [0]
    for match in _HARD_BREAK.finditer(text):
        # A heading line is matched whole: it is a segment of its own, and so is the text before it.
        ends += match.span() if match[0][0] == "#" else [match.end()]
    return [*ends, len(text)]


def _sentence_ends(text: str, start: int, end: int) -> list[int]:
    """Find where sentences end before the end of a segment."""
    found: list[int] = []
    sentence = start
    quotes, stars, counted = 0, 0, start
    in_row = " | " in text[start:end] and "\n" not in text[start:end].strip()
    for match in _STOP.finditer(text, start, end):
        run, close = match["run"], match["close"]
        stop = match.end("run")
        at = match.end()
        wide = not _FULL.isdisjoint(run) or _is_wide_stop(
            run, text[match.start() - 1 : match.start()], text[at : at + 1]
        )
        if wide and ('"' in close or text.startswith("**", at)):
            # Without spaces only the count shows whether a straight quote or emphasis closes or opens.
            quotes += text.count('"', counted, stop)
            stars += text.count("**", counted, stop)
            counted = stop
            if '"' in close and quotes % 2 == 0:
                at = text.index('"', stop)
            elif text.startswith("**", at) and stars % 2:
                at += 2
        if in_row and not run.strip("；"):
            ends = False  # the cells of a row belong together
        elif wide:
            ends = at >= end or not (text[at] in "，、,،：:" or (text[at] == "と" and at > stop))
        else:
            ends = _ends_latin(text, match, sentence, end)
        if ends and at < end:
            found.append(at)
            sentence = at
    return found


def _is_wide_stop(run: str, before: str, after: str) -> bool:
    """Return whether a half-width stop or an ellipsis is in text that is written without spaces."""
    if run != "." and _ELLIPSIS.issuperset(run):
        # One … is a pause; …… between Han characters is the end of a sentence that trails off.
        return len(run) >= 2 and bool(_WIDE.match(before)) and (not after or bool(_WIDE.match(after)))
    if run[0] == "．":
        return bool(_WIDE.match(before))
    if "!" in run or "?" in run:
        return bool(_WIDE.match(before) or _WIDE.match(after))
    return bool(_WIDE.match(before)) and bool(_WIDE.match(after))


def _ends_latin(text: str, match: re.Match[str], sentence: int, end: int) -> bool:
    at = match.end()
    if at >= end:
        return True
    if not text[at].isspace():
        return False
    following = _NO_SPACE.search(text, at, end)
    if following is None:
        return True
    word_at = following.start()
    while word_at < min(end, following.start() + 6) and text[word_at] in _OPENERS:
        word_at += 1
    after = text[word_at] if word_at < end else ""
    if after.islower():
        return False
    if match["run"] != ".":
        return True
    before = text[max(sentence, match.start() - _REACH) : match.start()]
    return not _is_abbreviated(before, text[word_at : min(end, word_at + _REACH)], closed=bool(match["close"]))


def _is_abbreviated(before: str, after: str, *, closed: bool) -> bool:
    """Return whether a dot between these two pieces of text is part of the word before it and ends no sentence."""
    found = _WORD_BEFORE.search(before)
    if not found:
        return False
    word = found[0]
    lower = word.lower()
    if lower in _TITLES:
        return True
    before = before[: found.start()]
    numbered = word.replace(".", "").isdecimal() or _ROMAN_OR_LETTER.fullmatch(word)
    if numbered and not closed and _LABEL.fullmatch(before):
        return True  # "1. Introduction", "IV. The Whale", "Table 3. Events"
    digit = bool(_NUMBER.match(after))
    if lower in _NUMBERED and (digit or _ROMAN_OR_LETTER.match(after)):
        return lower not in _WORDS or not _WORD_OF_A_LETTER.match(after)
    if word == "v":
        # "Fletcher v. Peck", but not a vector v.
        return digit or ((party := _LAST_WORD.search(before)) is not None and party[0][0].isupper())
    if len(word) == 1 and word.islower():
        return digit  # "c. 1200"
    if lower not in _OPEN and not _DOTTED.fullmatch(word) and not _is_initial(word, before):
        return False
    next_word = _WORD_AFTER.match(after)
    if not next_word:
        return True  # "Oct. 5", "U.S. $5", "Smith & Co. & Sons"
    # "J. I. Smith": a word that could start a sentence does not if it is itself an initial.
    another_initial = len(next_word[0]) == 1 and after[next_word.end() :][:1] == "."
    return another_initial or next_word[0].lower() not in _STARTERS


def _is_initial(word: str, before: str) -> bool:
    """Return whether a letter stands for a name."""
    if len(word) > 1:
        return False
    if word.isupper():
        return not (word in "CFK" and before.endswith("°"))
    # Letters of scripts that have no capitals: "ח. נ. ביאליק", but not the last one of ארה״ב.
    return word.isalpha() and not _WIDE.match(word) and (not before or before[-1] in " \t\n\u00a0([.-־")
