"""
QueryAnalyzer, QueryRewriter.

The analyzer decides by rules, in English and Chinese, what kind of question was asked and which rewording is worth
trying; the rewriter does it, with at most one call of a model. The question itself always stays first among the
queries.

`word_queries` go to Haystack's `MultiQueryTextRetriever`, `vector_queries` to `HyDEEmbedder`. With a `history` the
same call makes a follow-up stand alone; with one of Shiguan's stores as `document_store` it also words the question
in the library's other languages.

It prints:

    step_back
    ['Why did the An Lushan rebellion break out?', 'What weakened the Tang army before 755?']
"""

from haystack import Pipeline, component
from haystack.dataclasses import ChatMessage

from shiguan.query.query_analyzer import QueryAnalyzer
from shiguan.query.query_rewriter import QueryRewriter


@component
class Rewording:  # any chat generator will do, such as OpenAIChatGenerator
    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]):
        return {"replies": [ChatMessage.from_assistant('{"queries": ["What weakened the Tang army before 755?"]}')]}


pipeline = Pipeline()
pipeline.add_component("analyzer", QueryAnalyzer())
pipeline.add_component("rewriter", QueryRewriter(Rewording()))
pipeline.connect("analyzer.analysis", "rewriter.analysis")
question = "Why did the An Lushan rebellion break out?"
result = pipeline.run({"analyzer": {"query": question}, "rewriter": {"query": question}})
print(result["rewriter"]["method"])
print(result["rewriter"]["queries"])
