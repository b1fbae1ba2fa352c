"""Marks in the forms that models write them in, lists of sources and fences: shown alike, and alike in the stream."""

import pytest
from haystack import Document
from haystack.dataclasses import ChatMessage
from hypothesis import given, settings
from hypothesis import strategies as st

from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.claims.answer_check import AnswerCheck
from shiguan.claims.claims import split_claims

ROSE, TOOK = "An Lushan rose at Fanyang in 755", "He took Luoyang in the twelfth month"
PASSAGES = [
    Document(content=f"{ROSE}. {TOOK}.", meta={"number": 1}),
    Document(content="The salt tax paid for half of the army.", meta={"number": 2}),
]
SHOWN = f"{ROSE} [1]. {TOOK} [1]."
FORMS = {
    "labelled": f"{ROSE} [citation:1]. {TOOK} [cite: 1].",
    "two labels": f"{ROSE} [citation:1]. {TOOK}[citation:1][citation:2].",
    "linked": f"{ROSE} [[1]](#source-1). {TOOK} [1](https://example.org/a).",
    "linked by its name": f"{ROSE} ([source 1](#1)). {TOOK} [Source 1](https://example.org/a).",
    "footnotes": f"{ROSE}[^1]. {TOOK}^1^.\n\n[^1]: The War, section 2.",
    "bare carets": f"{ROSE} [^1^]. {TOOK}^1.",
    "round": f"{ROSE} (1). {TOOK} (1, 2).",
    "wide": f"{ROSE}【1】. {TOOK}【1†L3-L5】.",
    "raised": f"{ROSE}<sup>[1]</sup>. {TOOK}<cite>1</cite>.",
    "in formulas": f"{ROSE} $^{{1}}$. {TOOK} \\cite{{1}}.",
    "in a formula": f"{ROSE} $^1$. {TOOK} $^{{[1]}}$.",
    "in an empty element": f'{ROSE} <citation id="1"/>. {TOOK} <source id=1></source>.',
    "raised digits": f"{ROSE} ¹. {TOOK}¹.",
    "with a title": f"{ROSE} [1: The War]. {TOOK} [1, chapter 2].",
    "with a sign": f"{ROSE} (#1). {TOOK} [#1].",
    "with a page": f"{ROSE} [1, p. 12]. {TOOK} [1, pp. 3-4].",
    "with the page or line of another number": f"{ROSE} [1, p. 2]. {TOOK}【1†L2-L2】.",
    "with an at sign": f"{ROSE} [@1]. {TOOK} [@source1].",
    "in quotes, with a stop": f'{ROSE} ["1"]. {TOOK} [1.].',
    "with an id": f"{ROSE} [source_id: 1]. {TOOK} [passage no. 1].",
    "with an equals sign": f"{ROSE} [id=1]. {TOOK} [片段1].",
    "with a section": f"{ROSE} [Doc 1 §2]. {TOOK} [1; p. 2].",
    "in braces": f"{ROSE} {{cite:1}}. {TOOK} {{{{cite|1}}}}.",
    "in an element": f"{ROSE} <source>1</source>. {TOOK} <sources>1</sources>.",
    "circled": f"{ROSE} ①. {TOOK} [①].",
    "linked to nothing": f"{ROSE} [1](). {TOOK} [1]().",
    "as a reference": f"{ROSE} (see also [1]). {TOOK} (per passage 1).",
    "twice in round": f"{ROSE} (passages [1] and [1]). {TOOK} (引自[1]).",
    "a file below a rule": f"{ROSE} [1]. {TOOK} [1].\n\n---\n\n1. war.epub, p. 3",
    "in other languages": f"{ROSE} (Quelle 1). {TOOK}【引1】.",
    "in Japanese": f"{ROSE}（出典1）. {TOOK} [出典: 1].",
    "sources used": f"{ROSE} [1]. {TOOK} [1].\n\nSources used: [1], [2]",
    "sources in other languages": f"{ROSE} [1]. {TOOK} [1].\n\nQuellen:\n[1] war.epub",
    "after thoughts of gpt-oss": f"<|channel|>analysis<|message|>Or Suyab [2].<|end|><|start|>assistant<|channel|>final<|message|>{ROSE} [1]. {TOOK} [1].",
    "after thoughts of Mistral": f"[THINK]Or Suyab [2].[/THINK]{ROSE} [1]. {TOOK} [1].",
    "after thoughts of Gemma": f"<unused94>thought\nOr Suyab [2].<unused95>{ROSE} [1]. {TOOK} [1].",
    "after thoughts of Seed": f"<seed:think>Or Suyab [2].</seed:think>{ROSE} [1]. {TOOK} [1].",
    "fenced": f"```markdown\n{ROSE} [1]. {TOOK} [1].\n```",
    "fenced without a name": f"```\n{ROSE} [1]. {TOOK} [1].\n```",
    "cut within the fence": f"~~~md\n{ROSE} [1]. {TOOK} [1].",
    "sources": f"{ROSE} [1]. {TOOK} [1].\n\n**Sources:**\n[1] war.epub\n",
    "numbered sources": f"{ROSE} [1]. {TOOK} [1].\n\n## References\n\n1. The War, chapter 1\n2. The Salt Commission\n",
    "bulleted sources": f"{ROSE} [1]. {TOOK} [1].\n\n---\n**参考资料：**\n- [1] 安史之乱\n- [2] 盐铁论",
    "sources without a heading": f"{ROSE} [1]. {TOOK} [1].\n\n[1] The War, section 2\n[2] salt.epub",
    "sources in a line": f"{ROSE} [1]. {TOOK} [1].\n\nSources: [1] The War; [2] The Salt Commission",
    "sources in brackets": f"{ROSE} [1] (Source: The War). {TOOK} [1] (来源：安史之乱).",
}


def answered(reply):
    (found,) = CitationExtractor().run([ChatMessage.from_assistant(reply)], PASSAGES)["answers"]
    return found


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_shown_alike_and_brings_in_no_passage(form):
    found = answered(FORMS[form])
    assert found.data == SHOWN
    assert [one["number"] for one in found.meta["citations"]] == [1, 1]


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
@settings(max_examples=5)
def test_the_stream_gives_what_the_whole_reply_gives(form, data):
    reply = FORMS[form]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(reply) - 1), max_size=20)))
    stream, shown, numbers = AnswerCheck(PASSAGES), "", []
    for start, end in zip([0, *cuts], [*cuts, len(reply)], strict=True):
        if stream.add(reply[start:end]):
            numbers += [claim["numbers"] for claim in stream.finished()]
            shown += "".join(stream.pieces)
    stream.close()
    numbers += [claim["numbers"] for claim in stream.finished()]
    assert shown + "".join(stream.pieces) == SHOWN[: len(shown + "".join(stream.pieces))]
    assert numbers == [[1], [1]]


@pytest.mark.parametrize(
    "reply",
    [
        f"{ROSE} (755).",
        f"{ROSE} (see [1]), and (1) the court fled; (2) Luoyang fell.",
        "The area is 50 km^2.",
        "The area is 50 square metres². It grew by 7 km² and 10³.",
        "城方三十里²。",
        "他做了三件事：①减税；②筑城；③练兵。",
        "The town (id 1204) and the clause (§ 3) are old.",
        "He dined at [10:30] and said [sic].",
        "```python\nprint(1)\n```",
        "Income came from:\n\n- the salt tax [2]\n- the land tax [1]",
        "[1] An Lushan rose at Fanyang in 755\n[2] The salt tax paid for half of the army",
        "The sources of the Yellow River (in the west) were not known.",
    ],
)
def test_what_only_looks_like_it_is_kept(reply):
    text = split_claims(reply).text
    for words in reply.replace("[1]", "").replace("[2]", "").replace("(see )", "").split():
        assert words in text


def test_a_mark_of_five_thousand_digits_is_no_citation():
    parts = split_claims(f"{ROSE} [{'9' * 5000}].")
    assert parts.text == f"{ROSE}."
    assert parts.marks == ()
