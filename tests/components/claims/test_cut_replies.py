"""A reply that its model cut at the length limit loses the sentence that is not whole, and nothing else."""

import pytest
from haystack.dataclasses import ChatMessage

from shiguan.claims.claims import whole_reply, whole_sentences


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("He rose [1]. Together they held more than 80", "He rose [1]."),
        ("He rose [1]. It cost 3.", "He rose [1]."), ("He rose [1].", "He rose [1]."),
        ("He rose. [1]", "He rose. [1]"), ("He rose. [1", "He rose."), ("他起兵。[1]共有兵四十九万", "他起兵。[1]"),
        ("他起兵。[1][2]", "他起兵。[1][2]"), ("- He rose [1]\n- Together th", "- He rose [1]"),
        ("“He rose!” [1]", "“He rose!” [1]"), ("Half a sent", "Half a sent"), ("<think>He rose. A", ""),
    ],
)  # fmt: skip
def test_the_last_sentence_goes_if_it_is_not_whole(text, whole):
    assert whole_sentences(text) == whole


def test_only_a_reply_that_was_cut_is_shortened_and_only_once():
    done = ChatMessage.from_assistant("- He rose [1]\n- He fell", meta={"finish_reason": "stop"})
    assert whole_reply(done) is done
    cut = whole_reply(ChatMessage.from_assistant("- He rose [1]\n- He fe", meta={"finish_reason": "length"}))
    assert cut.text == "- He rose [1]"
    assert whole_reply(cut).text == cut.text
