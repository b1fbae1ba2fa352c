from functools import cache

import pytest
from haystack import Document
from haystack.dataclasses import ChatMessage
from hypothesis import given, settings
from hypothesis import strategies as st

from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.claims.answer_check import AnswerCheck
from shiguan.claims.claims import whole_reply

PASSAGES = [
    Document(content="An Lushan rose at Fanyang in 755. He took Luoyang in the twelfth month.", meta={"number": 1}),
    Document(content="天寶十四載，安祿山反於范陽。玄宗奔蜀。", meta={"number": 2}),
]
QUESTION = "Who rose at Fanyang?"
ANSWERS = [
    f"{QUESTION}\n\nAn Lushan rose at Fanyang in 755 [1].",
    "An Lushan rose at Fanyang in 755 [1]. He took Luoyang in the twelfth month [1]. He had three eyes.",
    "An Lushan rose at Fanyang in 755. [1] He took Luoyang in the twelfth month. [1]",
    "安祿山反於范陽。[2]玄宗奔蜀。[2][9]他有三隻眼。",
    "## The rising\n\n- An Lushan rose at Fanyang in 755 [1].\n- He took Luoyang with 3.14 men [1].\n\nI hope this helps!",
    "No mark at all: An Lushan rose at Fanyang in 755. He took Luoyang in the twelfth month.",
    "  \n An Lushan rose at Fanyang in 755 [1, 2]。He took Luoyang",
    "<thinking>[1] says 755. So he rose then. It is [1].</thinking>\nAn Lushan rose at Fanyang in 755 [1]. He took it.",
    "An Lushan rose at Fanyang in 755 [1]. He took Luoyang. An Lushan rose at Fanyang in 755 [1]. He took Luoyang in "
    "the twelfth month [1].\n\nAn Lushan rose at Fanyang in 755 [1].",
    "<think>Who? An Lushan rose. </think>An Lushan rose at Fanyang in 755 [1]. <think>And? He took.</think> He took it.",
    "An Lushan rose at Fanyang in 755 [1]. He took Luoyang. <reasoning>He had three eyes. It never ends. No",
    "### The governor murdered his wife\n\nAn Lushan rose at Fanyang in 755 [1]. The governor (he had three eyes) was old.",
    "| The governor murdered his wife | An Lushan rose at Fanyang in 755 [1]. |\n\n**Guo Ziyi the Gambler**: He took Luoyang.",
]


def streamed(pieces):
    """Give the claims and the text that are told of an answer in pieces."""
    stream, claims, shown = AnswerCheck(PASSAGES, QUESTION), [], ""
    for piece in pieces:
        if stream.add(piece):
            claims += stream.finished()
            shown += "".join(stream.pieces)
    stream.close()
    claims += stream.finished()
    return claims, shown + "".join(stream.pieces)


@cache
def whole(answer):
    (found,) = CitationExtractor().run([ChatMessage.from_assistant(answer)], PASSAGES, QUESTION)["answers"]
    return found


@pytest.mark.parametrize("answer", ANSWERS)
@given(data=st.data())
@settings(max_examples=10)
def test_however_it_is_cut_the_claims_are_those_of_the_whole_answer(answer, data):
    cuts = sorted(data.draw(st.sets(st.integers(1, len(answer) - 1), max_size=30)))
    pieces = [answer[start:end] for start, end in zip([0, *cuts], [*cuts, len(answer)], strict=True)]
    found = whole(answer)
    claims, shown = streamed(pieces)
    assert shown.split() == found.data.split()
    assert [claim["index"] for claim in claims] == list(range(len(claims)))
    bare = [{key: value for key, value in claim.items() if key not in ("index", "citations")} for claim in claims]
    assert bare == found.meta["claims"]
    cited = [{**citation, "confidence": 0} for claim in claims for citation in claim["citations"]]
    assert cited == [{**citation, "confidence": 0} for citation in found.meta["citations"]]


def test_a_sentence_is_told_when_the_next_one_begins_and_its_mark_is_not_missed():
    stream = AnswerCheck(PASSAGES)
    assert not stream.add("An Lushan rose at Fanyang in 755.")
    assert stream.add(" [1") is True
    assert stream.finished() == []  # the mark is not whole yet
    stream.add("] ")
    assert stream.add("He") is True
    (claim,) = stream.finished()
    assert claim["text"] == "An Lushan rose at Fanyang in 755."
    assert (claim["numbers"], claim["verdict"]) == ([1], "supported")


@pytest.mark.parametrize("answer", ["", "   ", "The sources do not answer this question.", "[1]"])
def test_what_claims_nothing_has_no_claims(answer):
    assert streamed(answer)[0] == []


def test_a_link_that_is_half_there_is_no_mark_and_no_text():
    answer = (
        "An Lushan rose at Fanyang in 755. [1](https://x.example/a) He took Luoyang in the twelfth month [9](//x) now."
    )
    _, shown = streamed(answer)
    assert shown == whole(answer).data
    assert "x.example" not in shown


def test_a_point_in_a_number_ends_nothing():
    stream = AnswerCheck(PASSAGES)
    told = [stream.finished() for piece in "It cost 3.14 coins and" if stream.add(piece)]
    assert told
    assert not any(told)


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_nothing_of_a_working_block_is_told_however_long_it_is(size):
    working = "<thinking>" + "It may be that he had three eyes. " * 800 + "</thinking>"
    answer = f"{working}\n\nAn Lushan rose at Fanyang in 755 [1]. He took Luoyang in the twelfth month [1]."
    stream = AnswerCheck(PASSAGES)
    told, claims = "", []
    for at in range(0, len(answer), size):
        if stream.add(answer[at : at + size]):
            claims += stream.finished()
            told += "".join(stream.pieces)
            assert claims == [] or at + size > len(working)
    assert claims  # told before the end
    stream.close()
    claims += stream.finished()
    told += "".join(stream.pieces)
    assert told == "An Lushan rose at Fanyang in 755 [1]. He took Luoyang in the twelfth month [1]."
    assert [claim["verdict"] for claim in claims] == ["supported", "supported"]


def test_a_reply_cut_at_its_limit_is_streamed_without_its_unfinished_sentence():
    reply = ChatMessage.from_assistant(
        "An Lushan rose at Fanyang in 755 [1]. He took Luoyang in the twel", meta={"finish_reason": "length"}
    )
    (found,) = CitationExtractor().run([reply], PASSAGES)["answers"]
    stream = AnswerCheck(PASSAGES)
    stream.add(reply.text)
    claims, shown = stream.finished(), "".join(stream.pieces)
    stream.close(whole_reply(reply).text)
    claims += stream.finished()
    assert shown + "".join(stream.pieces) == found.data == "An Lushan rose at Fanyang in 755 [1]."
    assert len(claims) == len(found.meta["claims"]) == 1


def test_a_sentence_that_is_not_finished_is_not_judged(monkeypatch):
    stream, judged = AnswerCheck(PASSAGES), []
    read = stream.checker.verdict
    monkeypatch.setattr(stream.checker, "verdict", lambda claim, stated: judged.append(stated) or read(claim, stated))
    assert stream.add("No. 3, which rose at Fanyang in 755, vs. it, took Luoyang") is True
    stream.finished()
    assert not judged
    stream.close()
    assert judged
