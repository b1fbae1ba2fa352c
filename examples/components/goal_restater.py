"""
GoalRestater.

Models attend best to the end of a prompt. The restater puts into one sentence what a conversation is after, so that
it can come last, right before the answer. A goal that names something nobody mentioned, is in another language or is
already an answer is not used; then, and without a model, the goal is the question itself, with the question before it
if it is a follow-up.

`prompt` takes a template of your own, with the variables `query`, `language`, `summary` and `history`.

It prints:

    And how did he die?
    The person wants to know how Zhang Xun died.
"""

from haystack import Pipeline, component
from haystack.components.builders import ChatPromptBuilder
from haystack.dataclasses import ChatMessage

from shiguan.query.goal_restater import GoalRestater


@component
class Restating:  # any chat generator will do, such as OpenAIChatGenerator
    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]):
        return {"replies": [ChatMessage.from_assistant('{"goal": "The person wants to know how Zhang Xun died."}')]}


pipeline = Pipeline()
pipeline.add_component("goal", GoalRestater(Restating()))
pipeline.add_component(
    "prompt", ChatPromptBuilder([ChatMessage.from_user("{{ query }}\n{{ goal }}")], required_variables="*")
)
pipeline.connect("goal.goal", "prompt.goal")
history = [ChatMessage.from_user("Who was Zhang Xun?"), ChatMessage.from_assistant("The defender of Suiyang.")]
question = "And how did he die?"
result = pipeline.run({"goal": {"query": question, "history": history}, "prompt": {"query": question}})
print(result["prompt"]["prompt"][0].text)
