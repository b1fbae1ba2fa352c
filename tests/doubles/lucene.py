"""The shipped analysis in real Lucene, where its jars and JPype are; see `SHIGUAN_LUCENE_JARS` in CONTRIBUTING.md."""

import importlib.util
import os
from pathlib import Path

import pytest


class LuceneAnalyzer:
    """Runs an Elasticsearch analysis, of the parts that the shipped one has, in Lucene's own classes."""

    def __init__(self, analysis):
        import jpype

        if not jpype.isJVMStarted():
            # The package brings a Java of its own, which its classes need.
            own = next(iter(jars()[0].parents[1].glob("jre/lib/server/libjvm.*")), None)
            jpype.startJVM(jvmpath=own and str(own), classpath=[str(jar) for jar in jars()])
        self.java = jpype
        self.analysis = analysis
        base = "org.apache.lucene.analysis."
        self.kinds = {name: jpype.JClass(base + path) for name, path in _CLASSES.items()}
        self.pattern = jpype.JClass("java.util.regex.Pattern").compile
        self.reader = jpype.JClass("java.io.StringReader")
        self.term = jpype.JClass(base + "tokenattributes.CharTermAttribute")
        self.position = jpype.JClass(base + "tokenattributes.PositionIncrementAttribute")
        builder = self.kinds["maps"]()
        for line in analysis["char_filter"]["shiguan_folding"]["mappings"]:
            builder.add(*(_unescaped(side.strip()) for side in line.split("=>")))
        self.map = builder.build()
        words = self.kinds["words"](len(analysis["filter"]["shiguan_stop"]["stopwords"]), False)
        for word in analysis["filter"]["shiguan_stop"]["stopwords"]:
            words.add(word)
        self.stop_words = words

    def terms(self, analyzer, text):
        """Give the terms of a text, which stand one behind the other."""
        how = self.analysis["analyzer"][analyzer]
        reader = self.reader(text)
        for name in how["char_filter"]:
            part = self.analysis["char_filter"][name]
            if part["type"] == "mapping":
                reader = self.kinds["mapping"](self.map, reader)
            else:
                reader = self.kinds["replace_text"](self.pattern(part["pattern"]), part["replacement"], reader)
        part = self.analysis["tokenizer"][how["tokenizer"]]
        stream = tokenizer = self.kinds["tokenizer"](self.pattern(part["pattern"]), part["group"])
        tokenizer.setReader(reader)
        for name in how["filter"]:
            stream = self._filter(stream, name)
        found = []
        term, position = stream.getAttribute(self.term.class_), stream.getAttribute(self.position.class_)
        stream.reset()
        while stream.incrementToken():
            assert position.getPositionIncrement() > 0, "terms at one place are alternatives to a query"
            found.append(str(term.toString()))
        stream.end()
        stream.close()
        return [one for one in found if one]

    def _filter(self, stream, name):
        if name == "lowercase":
            return self.kinds["lowercase"](stream)
        part = self.analysis["filter"][name]
        if part["type"] == "pattern_replace":
            return self.kinds["replace"](stream, self.pattern(part["pattern"]), part["replacement"], True)
        if part["type"] == "truncate":
            return self.kinds["truncate"](stream, part["length"])
        if part["type"] == "stop":
            return self.kinds["stop"](stream, self.stop_words)
        assert part == {"type": "stemmer", "language": "porter2"}
        return self.kinds["stem"](stream, "English")


_CLASSES = {
    "maps": "charfilter.NormalizeCharMap$Builder",
    "mapping": "charfilter.MappingCharFilter",
    "replace_text": "pattern.PatternReplaceCharFilter",
    "tokenizer": "pattern.PatternTokenizer",
    "replace": "pattern.PatternReplaceFilter",
    "lowercase": "LowerCaseFilter",
    "truncate": "miscellaneous.TruncateTokenFilter",
    "stop": "StopFilter",
    "words": "CharArraySet",
    "stem": "snowball.SnowballFilter",
}


def jars():
    """Lucene's jars: of a folder that is named, else of the package `arcadedb-embedded`."""
    folder = os.environ.get("SHIGUAN_LUCENE_JARS")
    if folder is None:
        package = importlib.util.find_spec("arcadedb_embedded")
        folder = Path(package.origin).parent / "jars" if package and package.origin else None
    return sorted(Path(folder).glob("lucene-*.jar")) if folder else []


def lucene(analysis):
    """Start Lucene, or skip the test with the reason."""
    if importlib.util.find_spec("jpype") is None or not jars():
        pytest.skip("needs Lucene: pip install arcadedb-embedded JPype1, and Java 17")
    return LuceneAnalyzer(analysis)


def _unescaped(text):
    parts = text.split("\\u")
    return parts[0] + "".join(chr(int(part[:4], 16)) + part[4:] for part in parts[1:])
