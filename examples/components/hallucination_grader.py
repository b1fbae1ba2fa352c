"""
HallucinationGrader.

Lets through only what the passages say. Every sentence that states something gets a verdict (supported, partial,
unsupported, contradicted). After the last attempt, unsupported sentences are removed or marked, or the whole answer
is refused (`on_unsupported`). In a loop with `AttemptLoop` the question is first tried again, with what the answer
lacked.

With an `answer_grader` a language model decides, in one call, about sentences that the local check is unsure of.

It prints:

    Zhang Xun held Suiyang in 757[1].
    supported Zhang Xun held Suiyang in 757.
    unsupported He had three eyes.
"""

from haystack import Pipeline
from haystack.components.builders import AnswerBuilder
from haystack.dataclasses import ChatMessage, Document

from shiguan.grading.hallucination_grader import HallucinationGrader

documents = [Document(content="Zhang Xun held Suiyang in 757. The town fell in the autumn.")]
reply = ChatMessage.from_assistant("Zhang Xun held Suiyang in 757 [1]. He had three eyes [1].")

pipeline = Pipeline()
pipeline.add_component("grader", HallucinationGrader())
pipeline.add_component("answers", AnswerBuilder())
pipeline.connect("grader.replies", "answers.replies")
question = "Who held Suiyang?"
result = pipeline.run(
    {"grader": {"replies": [reply], "documents": documents, "query": question}, "answers": {"query": question}},
    include_outputs_from={"grader"},
)
print(result["answers"]["answers"][0].data)
for verdict in result["grader"]["verdicts"]:
    print(verdict["verdict"], verdict["text"])
