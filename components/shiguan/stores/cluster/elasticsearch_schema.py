"""How Elasticsearch keeps passages: mappings, analysis and settings."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from shiguan.stores.cluster.servable_filters import KEYWORD_FIELDS, NUMBER_FIELDS
from shiguan.text.han import fold_han
from shiguan.text.terms import STOP_WORDS

# Longer keywords are kept but not indexed; Lucene takes 32,766 bytes, four for one character at most.
_LONGEST_KEYWORD = 8191
_ANALYZERS = ("bigrams", "characters", "words")
_HAN = ((0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF))
_CJK = ["<IDEOGRAPHIC>", "<HIRAGANA>", "<KATAKANA>", "<HANGUL>", "<SOUTHEAST_ASIAN>"]


@dataclass(frozen=True)
class ElasticsearchSchema:
    """What an index looks like."""

    searched: bool
    keyword_fields: Sequence[str]
    bm25_fields: Sequence[str]
    bm25_k1: float
    bm25_b: float
    shards: int

    def mappings(self) -> dict[str, Any]:
        """State every field that is indexed; others are kept and returned, and none can change the mapping."""
        keyword: dict[str, Any] = {"type": "keyword", "ignore_above": _LONGEST_KEYWORD}
        properties: dict[str, Any] = {"id": {"type": "keyword"}}
        properties |= {name: dict(keyword) for name in (*KEYWORD_FIELDS, *self.keyword_fields)}
        properties |= {name: {"type": "long"} for name in NUMBER_FIELDS}
        if self.searched:
            properties["content"] = {**_text("bigrams"), "fields": {name: _text(name) for name in _ANALYZERS[1:]}}
            for name in self.bm25_fields:
                field = properties.setdefault(name, dict(keyword))
                properties[name] = {**field, "fields": {analyzer: _text(analyzer) for analyzer in _ANALYZERS}}
        else:
            properties["content"] = {"type": "text", "index": False}
        return {"dynamic": False, "properties": properties, "_meta": {"shiguan": self.fingerprints()}}

    def fingerprints(self) -> dict[str, Any]:
        """Say in short what an index is made with, part by part, so that a change can be judged."""
        analysis = _analysis() if self.searched else {}
        stop_words = analysis.get("filter", {}).pop("shiguan_stop", None)
        return {
            "analysis": _digest(analysis),
            "stop_words": _digest(stop_words),
            "bm25": f"{self.bm25_k1:g} {self.bm25_b:g}" if self.searched else "",
            "shards": self.shards,
        }

    def settings(self) -> dict[str, Any]:
        """
        State the index's settings: shards, BM25 and analysis.

        Replicas follow the number of nodes: none on a single one, which then is green, one copy on more.
        """
        index: dict[str, Any] = {"number_of_shards": self.shards, "auto_expand_replicas": "0-1"}
        if not self.searched:
            return {"index": index}
        # Haystack's query names no fields, and so asks those that stand here.
        fields = ["content", *(f"content.{name}" for name in _ANALYZERS[1:])]
        fields += [f"{field}.{name}" for field in self.bm25_fields for name in _ANALYZERS]
        index["query"] = {"default_field": fields}
        index["similarity"] = {"default": {"type": "BM25", "k1": self.bm25_k1, "b": self.bm25_b}}
        index["analysis"] = _analysis()
        return {"index": index}

    def template(self, index: str) -> dict[str, Any]:
        """Write the index template: the only way for settings to reach an index, whoever makes it."""
        return {
            "index_patterns": [f"{index}-*"],
            "priority": 500,
            "template": {"settings": self.settings(), "mappings": self.mappings()},
            "_meta": {"description": "Passages of Shiguan, made by `shiguan stores init`"},
        }

    def differences(self, mappings: dict[str, Any]) -> tuple[list[str], list[str]]:
        """Compare an index with what it should be: what it cannot serve with, and what only the next one will have."""
        expected = self.mappings()
        found = [
            f"`{path}` is {theirs or 'missing'}, expected {ours}"
            for path, ours in _types(expected["properties"]).items()
            if (theirs := _types(mappings.get("properties", {})).get(path)) != ours
        ]
        if str(mappings.get("dynamic", True)).lower() != "false":
            found.append("`dynamic` is not false, so documents can add fields")
        made = mappings.get("_meta", {}).get("shiguan")
        made, wanted = made if isinstance(made, dict) else {}, expected["_meta"]["shiguan"]
        changed = [part for part in wanted if made.get(part) != wanted[part]]
        found += [f"its `{part}` is that of another version" for part in changed if part not in _HARMLESS]
        return found, [_HARMLESS[part].format(made.get(part), wanted[part]) for part in changed if part in _HARMLESS]


_HARMLESS = {
    "stop_words": "it leaves out other stop words than the files say",
    "bm25": "it weighs words with k1 and b of {}, the files say {}",
    "shards": "it has {} shards, the files say {}",
}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _types(properties: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Name the type, and the analyzer, of every field and subfield."""
    found: dict[str, str] = {}
    for name, field in properties.items():
        analyzer = field.get("analyzer")
        found[prefix + name] = f"{field.get('type')} ({analyzer})" if analyzer else str(field.get("type"))
        found |= _types(field.get("fields", {}), f"{prefix}{name}.")
    return found


def _text(analyzer: str) -> dict[str, Any]:
    return {"type": "text", "analyzer": f"shiguan_{analyzer}"}


def _analysis() -> dict[str, Any]:
    """
    Give the words of the embedded engine (`shiguan.text.terms`) with what Elasticsearch has built in.

    Three fields rather than one: `cjk_bigram` with its single characters in the same field would make a graph of
    positions, from which a query takes alternatives instead of adding up what it finds. Each field keeps only its own
    kind, so that nothing counts twice.
    """
    char_filters = ["shiguan_han", "shiguan_thousands"]
    common = ["cjk_width", "lowercase"]
    return {
        "char_filter": {
            "shiguan_han": {"type": "mapping", "mappings": _foldings()},
            "shiguan_thousands": {"type": "pattern_replace", "pattern": r"(?<=\d),(?=\d{3}(?!\d))", "replacement": ""},
        },
        "filter": {
            "shiguan_only_pairs": {"type": "keep_types", "types": ["<DOUBLE>"]},
            "shiguan_only_unspaced": {"type": "keep_types", "types": _CJK},
            "shiguan_no_unspaced": {"type": "keep_types", "types": _CJK, "mode": "exclude"},
            "shiguan_possessive": {"type": "stemmer", "language": "possessive_english"},
            "shiguan_stop": {"type": "stop", "stopwords": sorted(STOP_WORDS)},
            "shiguan_stem": {"type": "stemmer", "language": "porter2"},
        },
        "analyzer": {
            "shiguan_bigrams": _analyzer(char_filters, [*common, "cjk_bigram", "shiguan_only_pairs"]),
            "shiguan_characters": _analyzer(char_filters, [*common, "shiguan_only_unspaced"]),
            "shiguan_words": _analyzer(
                char_filters,
                [*common, "shiguan_no_unspaced", "shiguan_possessive", "asciifolding", "shiguan_stop", "shiguan_stem"],
            ),
        },
    }


def _analyzer(char_filters: list[str], filters: list[str]) -> dict[str, Any]:
    return {"type": "custom", "char_filter": char_filters, "tokenizer": "standard", "filter": filters}


@cache
def _foldings() -> list[str]:
    """
    List the traditional and variant characters with the ones they count as, and curly apostrophes.

    The server folds, when passages are written and when questions come, so that what is stored and shown stays as the
    source has it; no plugin is needed.
    """
    pairs = (
        f"{character} => {folded}"
        for first, last in _HAN
        for character in map(chr, range(first, last + 1))
        if (folded := fold_han(character)) != character
    )
    return [*pairs, "\u2018 => '", "\u2019 => '"]
