import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.text.follow_ups import needs_context

LEANS = """
Is it treatable?
And his sons?
What about the second one?
What are the symptoms?
Who else?
Why?
Tell me more.
How did they differ?
What happened after that?
Who received the first one?
What did he do there?
他是何时起兵的？
那他的儿子呢？
为什么？
后来呢？
此战的结果如何？
该城在哪里？
还有哪些？
原因是什么？
其部下是谁？
这场战争持续了多久？
上述两人有何不同？
""".strip().splitlines()
STANDS = """
What is throat cancer?
Tell me about lung cancer.
Who was An Lushan?
Why did An Lushan rebel against Emperor Xuanzong?
When did Guo Ziyi lose his command?
郭子仪是哪一年去世的？
安禄山在哪里起兵？
比较租庸调制与两税法的优劣。
唐玄宗其实知道安禄山要反吗？
""".strip().splitlines()


@pytest.mark.parametrize("question", LEANS)
def test_a_question_that_leans_on_the_conversation(question):
    assert needs_context(question)
    assert not needs_context(question, has_history=False)


@pytest.mark.parametrize("question", STANDS)
def test_a_question_that_stands_alone(question):
    assert not needs_context(question)


@given(st.text(max_size=200))
def test_without_a_history_nothing_is_missing(text):
    assert needs_context(text, has_history=False) is False


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_nothing_asked_leans_on_nothing(text):
    assert needs_context(text) is False


def test_most_follow_ups_of_real_conversations_are_noticed(public_data, record_property):
    """Missing one costs the answer, asking in vain only a call: so nearly all must be noticed, and some calls saved."""
    with gzip.open(public_data / "conv_rewrite_cast" / "data.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    said = [needs_context(row["turns"][-1]["text"], has_history=len(row["turns"]) > 1) for row in rows]
    needed = [row["needs_rewrite"] for row in rows]
    both = sum(a and b for a, b in zip(said, needed, strict=True))
    recall, precision = both / sum(needed), both / sum(said)
    spared = sum(not a and not b for a, b in zip(said, needed, strict=True)) / (len(rows) - sum(needed))
    for name, value in (("recall", recall), ("precision", precision), ("spared", spared)):
        record_property(name, value)
    assert recall >= 0.94
    assert precision >= 0.9
    assert spared >= 0.35
