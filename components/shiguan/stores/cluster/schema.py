"""The fields of a passage on both servers: the filters on them, and how Elasticsearch indexes words."""

import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any
from unicodedata import normalize

from shiguan.errors import RefusedError
from shiguan.stores import BM25_B, BM25_K1
from shiguan.tenants import all_of, check_conditions, where
from shiguan.text.terms import LONGEST_WORD, MARKS, STOP_WORDS, UNSPACED, fold_accents, fold_text

KEYWORD_FIELDS = ("tenant_id", "source_id", "file_id", "parent_id", "source", "record_id", "title", "language", "kind")
"""Meta fields that hold one text each, by which both servers can filter."""

NUMBER_FIELDS = ("position", "start", "end", "tokens", "when_from", "when_to")
"""Meta fields that hold one whole number each."""

_MEMBERSHIP = ("in", "not in")
_MOST_TERMS = 65_536  # values in one query of Elasticsearch (`index.max_terms_count`); more are several queries
_RANGES = (">", ">=", "<", "<=")
# Longer keywords are kept but not indexed; Lucene takes 32,766 bytes, four for one character at most.
_LONGEST_KEYWORD = 8191
_ANALYZERS = ("bigrams", "characters", "words")
_LAST_HAN = 0x323AF
_IS_UNSPACED = re.compile(f"[{UNSPACED}]").match
# In the server's own language of expressions, Java's.
_LETTER = f"[\\p{{L}}\\p{{N}}]&&[^{UNSPACED}]"
_WORD = f"[\\p{{L}}\\p{{N}}{MARKS}]&&[^{UNSPACED}]"
_NUMBER = r"\p{Nd}{1,3}(?:,\p{Nd}{3}){1,20}(?!\p{Nd})|\p{Nd}+(?:\.\p{Nd}+){1,20}"


def passage_fields(*, searched: bool, keyword_fields: Sequence[str], bm25_fields: Sequence[str]) -> dict[str, Any]:
    """Name every field of a passage that Elasticsearch indexes."""
    keyword: dict[str, Any] = {"type": "keyword", "ignore_above": _LONGEST_KEYWORD}
    fields: dict[str, Any] = {"id": {"type": "keyword"}}
    fields |= {name: dict(keyword) for name in (*KEYWORD_FIELDS, *keyword_fields)}
    fields |= {name: {"type": "long"} for name in NUMBER_FIELDS}
    if not searched:
        return fields | {"content": {"type": "text", "index": False}}
    fields["content"] = {**_text("bigrams"), "fields": {name: _text(name) for name in _ANALYZERS[1:]}}
    for name in bm25_fields:
        field = fields.setdefault(name, dict(keyword))
        fields[name] = {**field, "fields": {analyzer: _text(analyzer) for analyzer in _ANALYZERS}}
    return fields


def word_settings(bm25_fields: Sequence[str]) -> dict[str, Any]:
    """Choose BM25, the analysis, and the fields that are searched: Haystack's query names none."""
    fields = ["content", *(f"content.{name}" for name in _ANALYZERS[1:])]
    fields += [f"{field}.{name}" for field in bm25_fields for name in _ANALYZERS]
    return {
        "query": {"default_field": fields},
        "similarity": {"default": {"type": "BM25", "k1": BM25_K1, "b": BM25_B}},
        "analysis": _analysis(),
    }


def _text(analyzer: str) -> dict[str, Any]:
    return {"type": "text", "analyzer": f"shiguan_{analyzer}"}


def _analysis() -> dict[str, Any]:
    """
    Produce the words of the embedded engine (`shiguan.text.terms`) with what Elasticsearch has built in.

    Three fields rather than one: single characters and their pairs in the same field would make a graph of positions,
    from which a query takes alternatives instead of adding up what it finds. Tokens are cut by the same expressions;
    nothing in them repeats a group without a bound, for a server that runs out of stack stops.
    """
    return {
        "char_filter": {
            "shiguan_folding": {"type": "mapping", "mappings": _foldings()},
            "shiguan_not": _replaced(f"(?i)(?<![{_WORD}'])[{_WORD}]{{0,64}}n't(?![{_WORD}]|'[{_LETTER}])"),
            "shiguan_endings": _replaced(
                f"(?i)(?<=[{_WORD}])(?:'(?:s|t|d|m|re|ve|ll)){{1,8}}+(?![{_WORD}]|'[{_LETTER}])"
            ),
        },
        "tokenizer": {
            "shiguan_bigrams": {"type": "pattern", "pattern": f"(?=([{UNSPACED}]{{2}}))", "group": 1},
            "shiguan_characters": {"type": "pattern", "pattern": f"[{UNSPACED}]", "group": 0},
            "shiguan_words": {"type": "pattern", "pattern": f"{_NUMBER}|[{_LETTER}][{_WORD}]*+", "group": 0},
        },
        "filter": {
            "shiguan_thousands": {"type": "pattern_replace", "pattern": ",", "replacement": ""},
            "shiguan_longest": {"type": "truncate", "length": LONGEST_WORD},
            "shiguan_stop": {"type": "stop", "stopwords": sorted(STOP_WORDS)},
            "shiguan_stem": {"type": "stemmer", "language": "porter2"},
        },
        "analyzer": {
            "shiguan_bigrams": _analyzer("bigrams", ["shiguan_folding"], []),
            "shiguan_characters": _analyzer("characters", ["shiguan_folding"], []),
            "shiguan_words": _analyzer(
                "words",
                ["shiguan_folding", "shiguan_not", "shiguan_endings"],
                ["lowercase", "shiguan_thousands", "shiguan_longest", "shiguan_stop", "shiguan_stem"],
            ),
        },
    }


def _analyzer(tokenizer: str, char_filters: list[str], filters: list[str]) -> dict[str, Any]:
    return {
        "type": "custom", "char_filter": char_filters, "tokenizer": f"shiguan_{tokenizer}", "filter": filters
    }  # fmt: skip


def _replaced(pattern: str) -> dict[str, Any]:
    return {"type": "pattern_replace", "pattern": pattern, "replacement": " "}


@cache
def _foldings() -> list[str]:
    """List which characters count as others to the server; it stores and shows texts as the source has them."""
    characters = (chr(code) for code in range(0x80, _LAST_HAN + 1) if not 0xD800 <= code < 0xF900)
    pairs = {c: folded for c in characters if (folded := _folded(c)) not in (c, c.lower())}
    # A mark of voice is a character of its own behind the one that it changes.
    for code in (*range(0x3041, 0x3100), *range(0xFF66, 0xFF9E)):
        for mark in "\u3099\u309a\uff9e\uff9f":
            if len(voiced := normalize("NFKC", chr(code) + mark)) == 1:
                pairs[chr(code) + mark] = voiced
    return [f"{_escaped(source)} => {_escaped(target)}" for source, target in pairs.items()]


def _folded(character: str) -> str:
    return "".join(one if _IS_UNSPACED(one) else fold_accents(one) for one in fold_text(character))


def _escaped(text: str) -> str:
    return "".join(c if c.isalnum() or ord(c) > 0xFFFF else f"\\u{ord(c):04x}" for c in text)


def servable(filters: dict[str, Any] | None, keyword_fields: Collection[str] = ()) -> dict[str, Any]:
    """
    Check a filter, and write it so that both servers' conversions give it Haystack's meaning.

    The conversions of the two integrations differ from `haystack.utils.filters` and from each other: Qdrant reads a
    NOT of several conditions as "none of them" where Haystack means "not all of them", an empty list as no condition
    at all, and a field without `meta.` as another field; Elasticsearch finds nothing under a field that it has no
    index for, so that `!=` finds everything. What can be written otherwise is; the rest is refused by name.
    """
    if not filters:
        return {}
    check_conditions(filters)
    return _servable(filters, {*KEYWORD_FIELDS, *keyword_fields})


def _servable(condition: Any, keywords: set[str]) -> dict[str, Any]:
    if "field" in condition:
        return _comparison(condition, keywords)
    operator, conditions = condition["operator"], condition["conditions"]
    if not conditions:
        raise RefusedError(f"`filters` has {operator} over nothing. Give it a list with at least one condition.")
    parts = [_servable(part, keywords) for part in conditions]
    if operator == "NOT" and len(parts) > 1:
        parts = [all_of(*parts)]
    return {"operator": operator, "conditions": parts}


def _comparison(condition: dict[str, Any], keywords: set[str]) -> dict[str, Any]:
    operator, field, value = condition["operator"], str(condition["field"]), condition["value"]
    name = field.removeprefix("meta.")
    is_number = name in NUMBER_FIELDS
    if name == "section":
        raise RefusedError(
            "This deployment cannot limit a question to `sections`: its servers hold headings as words to search by, "
            "not as values to filter by. Limit it to `sources`, or ask a library of the deployment `embedded`."
        )
    if field != "id" and not is_number and name not in keywords:
        raise RefusedError(
            f"This deployment cannot filter by `{field}`: neither server has an index for it. It can by id, "
            f"{', '.join(f'meta.{known}' for known in (*sorted(keywords), *NUMBER_FIELDS))}. Use one of these, or add "
            "the field to `keyword_fields` of every store in the deployment's files and ingest anew."
        )
    values = value if operator in _MEMBERSHIP else [value]
    expected = (int, float) if operator in _RANGES else int if is_number else str
    is_own = name in keywords.difference(KEYWORD_FIELDS)
    if (
        not values
        or (operator in _RANGES and not is_number)
        or not all(is_own if isinstance(one, bool) else isinstance(one, expected) for one in values)
    ):
        kind = "a whole number" if is_number else "a text, true or false" if is_own else "a text"
        raise RefusedError(
            f"This deployment cannot compare `{field}` with `{operator} {value!r}`: the field holds {kind}, a list has "
            f"at least one value, and ranges are of {', '.join(NUMBER_FIELDS)}. The servers would not agree."
        )
    written = "id" if name == "id" else f"meta.{name}"
    if operator not in _MEMBERSHIP or len(value) <= _MOST_TERMS:
        return {"field": written, "operator": operator, "value": value}
    parts = [where(written, operator, value[at : at + _MOST_TERMS]) for at in range(0, len(value), _MOST_TERMS)]
    return {"operator": "OR" if operator == "in" else "AND", "conditions": parts}
