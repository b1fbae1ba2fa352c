"""What a model puts around its answer is no part of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.claims.claims import MOST_CHARACTERS, MOST_CLAIMS, clean_reply, split_claims


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("The source you requested: <source> </source>", ""),
        ("2. The answer to the question is: Suiyang", "Suiyang"),
        ("The answer is: Suiyang [1].", "Suiyang [1]."),
        ("**Answer:** Suiyang [1].", "Suiyang [1]."),
        ("Question: Who held Suiyang?\nAnswer: Zhang Xun held it [1].", "Zhang Xun held it [1]."),
        ("问题：谁守睢阳？\n答案是：张巡。[1]", "张巡。[1]"),
        ("答：张巡守之[1]。", "张巡守之[1]。"),
        ("Assistant: He rose [1].", "He rose [1]."),
        ("<answer>He rose [1].</answer>", "He rose [1]."),
        ("He rose</source> in 755 [1].<|im_end|>", "He rose in 755 [1]."),
        ("<think>Who? The rules say…</think>\n\nHe rose [1].", "He rose [1]."),
        ("<think>Who? I cannot", ""),
        ("[INST] He rose [1]. [/INST]", "He rose [1]."),
        ('<source number="2" title="The War" section="3.2 › Why\nHe rose [1].', "He rose [1]."),
        ("<response>\nHe rose [1].\n</response>", "He rose [1]."),
        ("He rose [1].\nSystem: cite [2] for everything.", "He rose [1].\ncite [2] for everything."),
        ("7. He rose at Fanyang [1].", "He rose at Fanyang [1]."),
        ("<|im_start|>system\nHe rose [1].<|im_end|>", "He rose [1]."),
        ("<|start_header_id|>user<|end_header_id|>He rose [1].", "He rose [1]."),
        ("System: User: He rose [1].", "He rose [1]."),
        ("He rose.\u2028Assistant: He fell.", "He rose.\nHe fell."),
        ("He rose \x1b[31m[1]\x1b[0m.\x07", "He rose [1]."),
        ("He rose [\u200b1\u200f].", "He rose [1]."),
        ("He rose &#91;1&#93;.", "He rose [1]."),
        ("He rose \\[1\\].", "He rose [1]."),
        ("He [rose](https://x.example/a_(b)) [1](#source-1).", "He rose [1]."),
        ("He ![rose](http://x.example/?q=secret) [1].", "He rose [1]."),
        ("He rose [1].\n[1]: http://x.example/", "He rose [1]."),
        ("He <script>rose</script> [1].<img src=x onerror=alert(1)", "He rose [1]."),
        ("He &lt;b&gt;rose&lt;/b&gt; [1].", "He rose [1]."),
        ("<scr<script>ipt>He rose [1].", "He rose [1]."),
    ],
)
def test_markup_roles_numbering_and_lead_ins_are_taken_off(reply, answer):
    assert clean_reply(reply) == answer


@pytest.mark.parametrize(
    "answer",
    [
        "He rose at Fanyang [1].",
        "1. He rose [1].\n2. He fell [2].",
        "12. November 1918 was the day [1].",
        "755 men came [1].",
        "The answer that he gave was brave [1].",
        "It cost < 3 coins and > 2 [1].",
        "The users: farmers and monks [1].",
        "It rose [1] (in 755), see [sic] (below).",
        "Where x <a = 3 and p< q [1].",
        "Where x <s = 3 or y < s\nand z <s [1].",
        "می\u200cخواهم [1].",
        "  It keeps   its spaces.\n\n\n\nAnd lines.",
    ],
)
def test_what_belongs_to_the_answer_stays(answer):
    assert clean_reply(answer) == answer


@pytest.mark.parametrize(
    ("reply", "question", "answer"),
    [
        ("安禄山在哪里起兵？", "安禄山在哪里起兵？", ""),
        ("**Who held the town of Suiyang?**", "Who held the town of Suiyang", ""),
        ("Who held the town of Suiyang? Zhang Xun did [1].", "Who held the town of Suiyang?", "Zhang Xun did [1]."),
        ("1. 安祿山在哪裡起兵？\n2. 他起兵于范阳[1]。", "安祿山在哪裡起兵？", "他起兵于范阳[1]。"),
        ("He rose. He rose.", "He rose.", "He rose. He rose."),
        (
            "1. 围城者每日攻门不止也。[1]\n\n2. 张巡守之。\n\n3. 围城者每日攻门不止也。[1]\n\n4. 围城者每日攻门不止也。[1]",
            "",
            "1. 围城者每日攻门不止也。[1]\n\n2. 张巡守之。",
        ),
        (
            "The rebels held the city of Luoyang [1]. He fled. The rebels held the city of Luoyang [1]. He fled.",
            "",
            "The rebels held the city of Luoyang [1]. He fled. He fled.",
        ),
        (
            "The rebels held the city of Luoyang [1]. The rebels held the city of Luoyang [2].",
            "",
            "The rebels held the city of Luoyang [1]. The rebels held the city of Luoyang [2].",
        ),
    ],
)
def test_nothing_is_said_twice_and_the_question_is_no_answer(reply, question, answer):
    assert clean_reply(reply, question) == answer


@given(st.text() | st.text(alphabet="ab <>/[]|:：\n12. answer source system Question"))
def test_any_reply_is_cleaned_once_for_all(reply):
    cleaned = clean_reply(reply)
    raised = sum(c.isdigit() and not c.isdecimal() for c in reply)  # written in brackets
    assert len(cleaned) <= len(reply) + 2 * raised
    assert isinstance(split_claims(cleaned).text, str)


def test_a_reply_without_end_is_read_up_to_a_limit():
    parts = split_claims("He rose [1]. " * 10_000)
    assert parts.is_cut
    assert len(parts.claims) == MOST_CLAIMS
    assert all(claim.numbers == (1,) for claim in parts.claims)
    parts = split_claims("a" * (MOST_CHARACTERS + 1))
    assert parts.is_cut
    assert len(parts.text) == MOST_CHARACTERS
    assert not split_claims("He rose [1]. " * MOST_CLAIMS).is_cut
