"""Remarks about the answer, whoever asks and the model itself are dropped from a reply; what states something stays."""

import pytest

from shiguan.claims.claims import split_claims
from shiguan.claims.talk import is_talk

QUESTION = "Who was An Lushan?"
REMARKS = """
Great question!
That's an excellent question.
What an interesting topic!
Great question about An Lushan!
Sure!
Of course!
I hope this helps!
Hope that answers your question.
Let me know if you have any other questions.
Let me know if you would like to hear more about Nan Jiyun.
Please don't hesitate to reach out.
If you need more details, feel free to ask!
As an AI language model, I don't have access to live data.
My knowledge cutoff is 2023.
I was last updated in April 2023.
Thank you for your question.
I'd be happy to help!
**Confidence:** high.
置信度：高。
Let's dive in!
Let me break this down for you.
You're welcome!
Would you like to know more?
好问题！
这是一个很好的问题。
您问得非常好！
希望对你有帮助。
希望以上回答对您有所帮助！
如果您还有其他问题，请随时告诉我。
如有疑问，欢迎继续提问。
作为一个人工智能语言模型，我无法获取实时信息。
我的知识截止到2023年。
很高兴为您解答。
下面我来为您详细介绍一下。
当然可以！
不客气！
需要我继续介绍吗？
""".strip().split("\n")
STATEMENTS = """
He asked a great question.
Confidence: the army had none.
I came, I saw, I conquered.
The sources do not say why.
Yes.
No.
I do not know.
You can see the tomb in Luoyang.
Thanks to An Lushan, the court fled.
He hoped this would help his son.
If you cross the river, you reach Fanyang.
We held Suiyang for ten months.
The emperor fled!
I was trained in Fanyang.
The model of the city was made of clay.
资料没有说明原因。
我军大败。
他问了一个好问题。
如果过河，就到范阳。
希望他早日回京。
他希望得到帮助。
是的。
皇帝问：“你是谁？”
""".strip().split("\n")


@pytest.mark.parametrize("remark", REMARKS)
def test_a_remark_is_dropped_wherever_it_stands(remark):
    assert split_claims(f"{remark} He rose at Fanyang [1]. {remark}", QUESTION).text == "He rose at Fanyang."


@pytest.mark.parametrize("statement", STATEMENTS)
def test_what_states_something_or_admits_a_gap_stays(statement):
    assert not is_talk(statement, QUESTION)
    assert statement.rstrip(".") in split_claims(f"{statement} He rose at Fanyang [1].", QUESTION).text


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("As of my last update, the court fled to Chengdu [1].", "The court fled to Chengdu."),
        ("To the best of my knowledge, he fell.", "He fell."),
        ("根据我的最新更新，安禄山起兵。", "安禄山起兵。"),
        ("据我所知，安禄山起兵。", "安禄山起兵。"),
        ("谢谢您的提问，安禄山起兵。", "安禄山起兵。"),
        ("根据我的最新更新，\n- 安禄山起兵。", "- 安禄山起兵。"),
    ],
)
def test_what_the_model_says_of_itself_before_a_statement_is_taken_off(reply, text):
    assert split_claims(reply).text == text


def test_a_reply_of_remarks_alone_holds_no_claim():
    assert split_claims("Great question! I hope this helps! [2]").claims == ()
