import json

import pytest
from haystack import Document
from haystack.dataclasses import ChatMessage, ToolCall
from hypothesis import example, given
from hypothesis import strategies as st

from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.claims.claims import split_claims
from shiguan.errors import AnswerError

FIRST = "In the winter of 755 An Lushan rose in Fanyang. He had 150,000 men. Guo Ziyi did not join him."
SECOND = "天寶十四載十一月，安祿山反於范陽，眾十五萬。郭子儀，華州鄭縣人也。"
THIRD = "The Salt Commission was set up in 758. It sold salt to licensed merchants."


def sources():
    meta = {"number": 1, "source": "tang.epub", "title": "Tang", "section": ["Book 1", "Rising"]}
    blocks = [
        {"start": 0, "end": 48, "kind": "text", "anchor": {"href": "a.xhtml", "offset": 100}},
        {"start": 48, "end": 99, "kind": "text", "anchor": {"href": "b.xhtml", "offset": 0}},
    ]
    return [
        Document(id="p1", content=FIRST, score=0.8, meta={**meta, "blocks": blocks}),
        Document(id="p2", content=SECOND, score=0.5, meta={"number": 2, "source": "jiu.epub"}),
        Document(id="p3", content=THIRD, score=0.2, meta={"number": 3, "source": "salt.pdf", "anchor": {"page": 7}}),
    ]


def extract(*texts, documents=None, query="When?", **more):
    replies = [ChatMessage.from_assistant(text, meta={"model": "m", "usage": {"total_tokens": 3}}) for text in texts]
    documents = sources() if documents is None else documents
    return CitationExtractor(**more).run(replies=replies, documents=documents, query=query)


def answer(text, **more):
    return extract(text, **more)["answers"][0]


def test_citation_has_every_field():
    found = answer("An Lushan rose in Fanyang in the winter of 755 [1].")
    assert found.data == "An Lushan rose in Fanyang in the winter of 755 [1]."
    assert found.meta["status"] == "answered"
    quote = "In the winter of 755 An Lushan rose in Fanyang."
    assert found.meta["citations"] == [{
        "number": 1, "claim": {"start": 0, "end": 51}, "parent_id": "p1", "source": "tang.epub", "title": "Tang",
        "section": ["Book 1", "Rising"], "anchor": {"href": "a.xhtml", "offset": 100}, "start": 0, "end": 47,
        "quote": quote, "verdict": "supported", "confidence": 0.7867,  # 0.4 * 0.8 + 0.4 * 1 + 0.2 * 1/3
        "selector": {"type": "TextQuoteSelector", "exact": quote, "prefix": "", "suffix": FIRST[47:79]},
    }]  # fmt: skip
    json.dumps(found.meta)


def test_confidence_counts_how_often_a_passage_is_cited():
    text = "In the winter of 755 An Lushan rose in Fanyang [1]. He had 150,000 men [1]. 郭子儀，華州鄭縣人也[2]。"
    confidence = [(citation["number"], citation["confidence"]) for citation in answer(text).meta["citations"]]
    # 0.4 * 0.8 + 0.4 + 0.2 * 2/3 twice, and 0.4 * 0.5 + 0.4 + 0.2 * 1/3
    assert confidence == [(1, 0.8533), (1, 0.8533), (2, 0.6667)]
    found = answer("He had 150,000 men [1]. " * 5)  # three times count at most
    assert {citation["confidence"] for citation in found.meta["citations"]} == {0.92}


def test_offsets_of_a_cut_passage_are_those_of_the_stored_parent():
    cut = Document(id="p1", content=FIRST[48:], score=0.8, meta={"number": 1, "cut": [48, len(FIRST)]})
    (citation,) = answer("Guo Ziyi did not join him [1].", documents=[cut]).meta["citations"]
    assert FIRST[citation["start"] : citation["end"]] == citation["quote"] == "Guo Ziyi did not join him."


@pytest.mark.parametrize("mark", ["[1][3]", "[1-3]"])
def test_several_numbers_give_several_citations(mark):
    documents = [*sources()[:2], Document(id="p3", content=FIRST, meta={"number": 3})]
    found = answer(f"He had 150,000 men {mark}.", documents=documents)
    assert [citation["number"] for citation in found.meta["citations"]] == [1, 3]
    assert found.meta["claims"][0]["verdict"] == "supported"


def test_numbers_that_do_not_exist_are_dropped_and_reported():
    result = extract("He had 150,000 men [1][7]. The Salt Commission was set up in 758 [9].")
    found = result["answers"][0]
    assert found.data == "He had 150,000 men [1]. The Salt Commission was set up in 758 [3]."
    assert result["warnings"][0].startswith("The answer cited [7], [9], but there are only 3 sources")


def test_a_supported_claim_without_a_mark_is_given_one():
    found = answer("The Salt Commission was set up in 758.")
    assert found.data == "The Salt Commission was set up in 758. [3]"
    assert found.meta["claims"][0]["change"] == "added"
    assert found.meta["citations"][0]["parent_id"] == "p3"


def test_an_unsupported_claim_without_a_mark_is_flagged():
    result = extract("He had 150,000 men [1]. Whales sing in the sea.")
    found = result["answers"][0]
    assert found.data == "He had 150,000 men [1]. Whales sing in the sea ⚠."
    assert [(one["claim"], one["kind"]) for one in found.meta["changes"]] == [("Whales sing in the sea.", "marked")]
    assert [claim["verdict"] for claim in found.meta["claims"]] == ["supported", "unsupported"]
    assert len(found.meta["citations"]) == 1
    assert result["warnings"] == ["1 of the answer's 2 sentences are not supported by the sources."]


def test_claims_are_placed_in_the_shown_text():
    found = answer(
        "- He had 150,000 men [1]\n- 郭子儀，華州鄭縣人也。【2】\n\nThe Salt Commission <was> set up in 758 [3]."
    )
    for claim in found.meta["claims"]:
        assert found.data[claim["start"] : claim["end"]] == claim["text"]
    assert len(found.meta["claims"]) == 3


def test_a_not_found_answer_has_no_mark_and_no_markup():
    found = answer("<The sources do not say this.> [1]")
    assert (found.data, found.meta["status"]) == ("<The sources do not say this.>", "not_found")
    assert found.meta["citations"] == found.meta["claims"] == []
    for replies in ([], [ChatMessage.from_assistant("<source> </source>")]):
        told = CitationExtractor(mode="precise").run(replies, query="何时？")
        assert ([nobody.data for nobody in told["answers"]], bool(told["warnings"])) == (["资料未载。"], bool(replies))


@pytest.mark.parametrize(("reply", "status"), [
    ("The passages do not mention this.", "not_found"),
    ("The passages discuss the rising but do not mention the price of salt.", "not_found"),
    ("The passages discuss the Salt Commission of 758 [3] but do not mention its price.", "answered"),
    ("The sources do not mention his death, but he had 150,000 men [1].", "answered"),
])  # fmt: skip
def test_a_refusal_in_a_models_own_words_is_not_found(reply, status):
    assert answer(reply).meta["status"] == status


def test_not_found_sentence_beside_an_answer_is_not_cited():
    found = answer("The sources do not answer this question. He had 150,000 men [1].")
    assert found.meta["status"] == "answered"
    assert [claim["text"] for claim in found.meta["claims"]] == ["He had 150,000 men [1]."]


@pytest.mark.parametrize("text", ["The source you requested: <source> </source>", "Who held the town of Suiyang?"])
def test_a_reply_of_markup_or_of_the_question_alone_is_no_answer_and_says_so(text):
    reply = ChatMessage.from_assistant(text, meta={"model": "m"})
    result = CitationExtractor().run([reply], [], "Who held the town of Suiyang?", language="en")
    (answer,) = result["answers"]
    assert (answer.meta["status"], answer.data) == ("not_found", "The sources do not answer this question.")
    assert "held no answer" in result["warnings"][0]


@pytest.mark.parametrize("text", ["", "  \n", "[1]", "[1] 【2】.", "。！"])
def test_a_reply_without_an_answer_is_the_models_failure(text):
    with pytest.raises(AnswerError, match="the model `m` replied without an answer") as failure:
        extract(text)
    assert failure.value.stage == "generator"


@pytest.mark.parametrize(("reply", "words"), [
    (ChatMessage.from_assistant(None, reasoning="Hm.", meta={"finish_reason": "length"}), "ended with `length`"),
    (ChatMessage.from_assistant(tool_calls=[ToolCall("search", {})]), "asked for tools instead of answering"),
])  # fmt: skip
def test_a_reply_of_none_or_of_tool_calls_alone_is_the_models_failure(reply, words):
    with pytest.raises(AnswerError, match=words):
        CitationExtractor().run(replies=[reply], documents=sources())


def test_replies_may_be_texts():
    given = CitationExtractor().run(["He had 150,000 men [1]."], sources(), "How many?")["answers"][0]
    assert given.data == "He had 150,000 men [1]."
    assert given.meta["citations"] == answer("He had 150,000 men [1].").meta["citations"]


@pytest.mark.parametrize(("text", "query", "added"), [
    ("He had 150,000 men [1].", "How many, and who was his son?", "\n\nThe sources do not say: Who was his son?"),
    ("眾十五萬[2]。", "他有多少兵？其子是谁？", "\n\n资料没有说明：Who was his son?"),
    ("He had 150,000 men [1]. The sources do not name his son.", "How many, and who was his son?", ""),
])  # fmt: skip
def test_an_answer_says_which_sub_questions_it_leaves_open(text, query, added):
    reply = ChatMessage.from_assistant(text, meta={"asked": {"missing": ["Who was his son?"]}})
    assert CitationExtractor().run([reply], sources(), query)["answers"][0].data == text + added


def test_how_likely_the_passages_answer_is_told_with_every_answer():
    for reply in ("He had 150,000 men [1].", "The sources do not answer this question."):
        given = CitationExtractor().run([reply], sources(), "How many?", confidence=0.7)["answers"][0]
        assert given.meta["confidence"] == 0.7


def test_several_replies_give_several_answers():
    answers = extract("He had 150,000 men [1].", "Whales sing.", "The sources do not answer this question.")["answers"]
    assert [found.meta["status"] for found in answers] == ["answered", "answered", "not_found"]
    assert [len(found.meta["citations"]) for found in answers] == [1, 0, 0]


def test_documents_are_found_by_their_number_or_without_one_by_their_place():
    found = answer("He had 150,000 men [1].", documents=list(reversed(sources())))
    assert found.meta["citations"][0]["parent_id"] == "p1"
    assert [document.meta["number"] for document in found.documents] == [1, 2, 3]
    documents = [Document(id="a", content=THIRD), Document(id="b", content=FIRST)]
    assert answer("He had 150,000 men [2].", documents=documents).meta["citations"][0]["parent_id"] == "b"


def test_without_documents_nothing_is_supported():
    found = answer("He had 150,000 men [1].", documents=[])
    assert found.data == "He had 150,000 men ⚠."
    assert found.meta["claims"][0]["verdict"] == "unsupported"
    assert found.meta["citations"] == []


def test_answer_says_model_usage_language_and_prompt():
    reply = ChatMessage.from_assistant("x", meta={"model": "m", "usage": {"total_tokens": 3}, "prompt": "simple"})
    meta = CitationExtractor().run(replies=[reply], documents=[], query="何时？")["answers"][0].meta
    assert meta | {"model": "m", "usage": {"total_tokens": 3}, "language": "zh", "prompt": "simple"} == meta
    assert CitationExtractor().run(replies=[reply], language="fr")["answers"][0].meta["language"] == "fr"


def test_a_reply_cut_off_at_its_limit_is_reported():
    reply = ChatMessage.from_assistant("He had 150,000 men [1]. Guo Zi", meta={"finish_reason": "length"})
    found = CitationExtractor().run(replies=[reply], documents=sources())
    assert "cut off" in found["warnings"][0]
    assert found["answers"][0].data == "He had 150,000 men [1]."
    assert found["answers"][0].meta["finish_reason"] == "length"


def test_inputs_are_not_changed():
    documents = sources()
    before = [document.to_dict() for document in documents]
    extract("He had 150,000 men [1]. Guo Ziyi did not join him.", documents=documents)
    assert [document.to_dict() for document in documents] == before


TEXTS = st.text() | st.text(alphabet="ab He had 150,000 men.安祿山反。 [1]【2】[3]<&\n-#")


@given(st.lists(TEXTS, max_size=2), st.lists(TEXTS, max_size=3))
@example(["<HTML"], [])
def test_any_reply_keeps_offsets_numbers_and_status_right(replies, contents):
    documents = [Document(id=str(at), content=text, meta={"number": at + 1}) for at, text in enumerate(contents)]
    messages = [ChatMessage.from_assistant(text) for text in replies]
    # A reply of markup alone, such as `<html`, has letters and is an answer that nothing was found.
    if not all(split_claims(text.strip()).claims or any(map(str.isalpha, text)) for text in replies):
        with pytest.raises(AnswerError):
            CitationExtractor().run(replies=messages, documents=documents, query="q")
        return
    result = CitationExtractor().run(replies=messages, documents=documents, query="q")
    assert len(result["answers"]) == max(1, len(replies))
    for found in result["answers"]:
        assert found.data
        assert found.meta["status"] in (("answered", "not_found") if replies else ("quoted", "not_found"))
        for citation in found.meta["citations"]:
            assert found.meta["status"] != "not_found"
            assert 1 <= citation["number"] <= len(documents)
            content = contents[citation["number"] - 1]
            assert 0 <= citation["start"] <= citation["end"] <= len(content)
            assert content[citation["start"] : citation["end"]] == citation["quote"]
            assert 0 <= citation["claim"]["start"] < citation["claim"]["end"] <= len(found.data)
            assert 0 <= citation["confidence"] <= 1
            verdicts = ("supported", "partial", "unsupported", "contradicted") if replies else ("quoted",)
            assert citation["verdict"] in verdicts


def test_a_contradicted_claim_has_the_place_and_the_words_that_contradict_it():
    found = answer("He had 160,000 men [1].")
    (claim,) = found.meta["claims"]
    against = claim["against"]
    assert (claim["verdict"], claim["numbers"], found.meta["citations"]) == ("contradicted", [], [])
    assert (against["number"], against["parent_id"], against["quote"]) == (1, "p1", "He had 150,000 men.")
    assert FIRST[slice(*against["words"][0])] == "150,000"
    assert "against" not in answer("He had 150,000 men [1].").meta["claims"][0]
