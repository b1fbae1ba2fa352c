"""What the tests of conversation stores say and read."""

from shiguan.conversations import Turn


def say(store, *questions, tenant="ours", conversation="c"):
    return [store.append(tenant, conversation, Turn(question, f"answer to {question}")) for question in questions]


def questions(store, tenant="ours", conversation="c", **words):
    return [turn.question for turn in store.turns(tenant, conversation, **words)]
