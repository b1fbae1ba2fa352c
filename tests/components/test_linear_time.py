"""Texts of callers that are made to take long: twice as long a text takes at most 2.6 times as long."""

import json

import pytest
from haystack import Document, component
from haystack.dataclasses import ChatMessage
from haystack.utils.filters import document_matches_filter
from tests.doubles.processor_time import assert_grows_with_length

from shiguan.agent.tool_calls import read_step
from shiguan.claims.answer_check import AnswerCheck
from shiguan.claims.checker import checker_of
from shiguan.claims.claim_kinds import clauses, is_not_found
from shiguan.claims.claims import split_claims
from shiguan.claims.marks import neutral_answer, uniform_marks
from shiguan.claims.reply_cleaning import clean_reply
from shiguan.claims.restatement import places
from shiguan.claims.talk import is_talk
from shiguan.context.context_builder import ContextBuilder
from shiguan.conversations import Conversation, Turn
from shiguan.engine.conversations import export_markdown
from shiguan.engine.docx_notes import docx_with_footnotes
from shiguan.engine.mode_pipeline import checked_question
from shiguan.engine.places import PlaceFinder
from shiguan.ingest.docx_equations import field_text
from shiguan.llm.json_replies import json_object, json_strings, without_closed_thoughts, without_thoughts
from shiguan.llm.source_blocks import neutral_text
from shiguan.memory.conversation_reader import route_question
from shiguan.memory.unsearched import unsearched_answer
from shiguan.query.query_analyzer import analyse_question
from shiguan.query.sub_questions import read_plan
from shiguan.reading.folded import fold
from shiguan.reading.question import Question, asked_chapter, asked_work, asks_for_books
from shiguan.text.dates import find_dates
from shiguan.text.follow_ups import needs_context, salient_terms
from shiguan.text.languages import detect_language
from shiguan.text.name_forms import names_of
from shiguan.text.names import names_in_pinyin
from shiguan.text.quantities import quantities
from shiguan.text.terminal import printable
from shiguan.text.terms import question_weights, terms
from shiguan.text.works import plain_line
from shiguan.verify.attribution import Attribution
from shiguan.verify.quotations import QuotationSearch
from shiguan.verify.reading import read_text

TURNS = [ChatMessage.from_user("Who was Guo Ziyi?"), ChatMessage.from_assistant("A general.")]
NAMES = Attribution(
    [{"source": f"book {n}.epub", "title": f"Book number {n}", "section": [f"Chapter {n}"]} for n in range(50)]
)


def text(unit):
    return lambda size: unit * (size // len(unit))


def within(unit):
    """Repeat something in the middle of a sentence, where neither end of the text cuts a search short."""
    return lambda size: "Guo Ziyi retook" + unit * (size // len(unit)) + "it in 757."


def long_turn(text):
    salient_terms("What did he do there?", [ChatMessage.from_user(text), TURNS[1]])


class Repetitive:
    """Both stores of a library whose only book says the same all over; every search finds all of it."""

    def __init__(self, unit):
        meta = {
            "tenant_id": "a",
            "source_id": "s",
            "source": "book.txt",
            "title": "Book",
            "section": ["One"],
            "anchor": None,
        }
        text = unit * (3_000 // len(unit))
        self.found = [Document(id=f"p{at}", content=text, meta={**meta, "position": at}) for at in range(30)]
        self.children = [Document(id=f"c{one.id}", content="", meta={"parent_id": one.id}) for one in self.found]

    def filter_documents(self, filters):
        return [one for one in self.found if document_matches_filter(filters, one)]

    def bm25_retrieval(self, query, filters, top_k):
        return self.children[:top_k]

    def list_meta(self, filters, fields):
        return [{name: one.meta.get(name) for name in fields} for one in self.found]


def quotation(unit, of="哈"):
    store = Repetitive(of)
    return lambda text: QuotationSearch({"parents": store, "children": store}, "a").check(text, "Book number 7")


def place(text):
    """Look for half of a text, with another character in it, in a book that repeats it."""
    half = text[: len(text) // 2]
    book = Document(id="p", content=text, meta={"source": "book.txt", "section": []})
    exact = half[: len(half) // 2] + "\u4e00" + half[len(half) // 2 :]
    PlaceFinder([book]).find({"quote": exact, "selector": {"exact": exact, "prefix": half[:32], "suffix": half[:32]}})


@component
class Summarizer:
    """Sums up each of the first passages with a reply that is as long as it is told."""

    def __init__(self, reply):
        self.reply = reply

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]):
        summaries = {str(number): self.reply for number in range(1, 5)}
        return {"replies": [ChatMessage.from_assistant(json.dumps({"summaries": summaries}))]}


def summed_up(text):
    """Sum up four passages that do not fit, each as long as the text, as is what the model writes of each."""
    passages = [Document(id=f"p{at}", content=f"{at}. {text}", score=-at) for at in range(5)]
    builder = ContextBuilder(1_500, strategy="summarize", chat_generator=Summarizer(text))
    builder.run(documents=passages, query="Who retook it?")


def restated(text):
    """Check a sentence against a passage that has brackets all over."""
    checker = checker_of({1: Document(content=f"Guo Ziyi {text} retook it.")})
    checker.check(split_claims("Guo Ziyi retook it [1]."))


def streamed(text):
    """Check an answer in pieces, as a model writes it."""
    check = AnswerCheck([Document(content="Guo Ziyi retook it.")])
    for at in range(0, len(text), 8):
        if check.add(text[at : at + 8]):
            check.finished()
    check.close()


def conversation(text):
    export_markdown(Conversation("c", text, 0.0, 0.0, 1, "b"), [Turn(text, text, number=1)])


def notes(text):
    docx_with_footnotes("T", [(text, None)], dict.fromkeys(range(1, text.count("[") + 1), "Note."), "s")


CASES = {
    **{f"whom pronouns mean {unit!r}": (lambda one, claim=claim: list(places(claim, one)), text(unit), 4_000)
       for unit, claim in (("Karl rose. He fled to Acre. ", "Karl fled to Acre."), ("郭子仪反。他逃往洛阳城。", "郭子仪逃往洛阳城。"))},
    # `verify`: fifty thousand quotations looked each at all the spaces behind their sentence.
    "spaces behind quotations": (read_text, lambda size: '"a" ' * (size // 26) + " " * size, 100_000),
    **{f"verify {unit!r}": (read_text, text(unit), 20_000) for unit in ("“", '"a" ', "“「a」", "\n \n", "> —\n", "a. ", "a | ")},
    **{f"folded {unit!r}": (fold, text(unit), 20_000) for unit in ("哈", "a'", "1,", "(", "\u0301", "[1")},
    "quotation in a repetitive book": (quotation("哈"), text("哈"), 6_000),
    "quotation that is nearly there": (quotation("哈"), text("哈哈哈哈哈呵"), 6_000),
    "quotation with gaps": (quotation("哈"), text("哈哈哈哈哈哈…"), 6_000),
    "quotation of short periods": (quotation("哈", "哈哈哈哈哈呵"), text("哈哈哈哈哈吼"), 6_000),
    # Places in periodic text.
    **{f"place in {unit!r}": (place, text(unit), 1_500) for unit in ("哈", "ab", "abcde")},
    "names of a source": (lambda text: NAMES.allows(text, {"source": "", "section": [], "anchor": None}), text("Book number 7, "), 15_000),
    # Questions are at most 2,000 characters long.
    **{
        f"{name} {unit!r}": (function, text(unit), 1_000)
        for name, function in {
            "question": checked_question, "analysis": analyse_question, "route": lambda one: route_question(one, TURNS),
            "unsearched": lambda one: unsearched_answer(one, "en"), "times": lambda one: Question(one).times, "quantities": quantities,
            "library": lambda one: (asks_for_books(one), asked_work(one), asked_chapter(one)), "names": names_of, "pinyin": names_in_pinyin,
        }.items()
        for unit in ("哈", "一", "第一章", "chapter 1 ", "what we ", "in a ", "who was the brother of the ", "G. ", "1,", "755年", "and how ", "what did we ", "remind me ")
    },
    **{f"context {unit!r}": (needs_context, text(unit), 2_000) for unit in ("「", "“", "《", "a", "it takes ", "the dogs, it ", "他")},
    **{
        f"{name} {unit!r}": (function, text(unit), 16_000)
        for name, function in {
            "reply": clean_reply, "marks": uniform_marks, "claims": split_claims, "object": lambda one: json_object(one, "a"),
            "refusal": is_not_found, "earlier answer": lambda one: neutral_answer(one, {1}), "neutral": neutral_text,
            "strings": lambda one: json_strings(one, "a"), "thoughts": without_thoughts, "plan": lambda one: read_plan(one, "Who?"),
        }.items()
        for unit in ("[1", "[1,", '{"a":', "`", "*", "<sup>", "Source [1] says ", ". ", "(")
    },
    **{f"forms of marks {unit!r}": (split_claims, text(unit), 16_000) for unit in ("9", "[^1", "^1", "```\n", "Sources:\n", "(Source: ", "a [1]\n[1] b\n", "来源")},
    **{
        f"reply {unit!r}": (clean_reply, text(unit), 16_000)
        for unit in ("<think></think>", "<|channel|>analysis", "[THINK]", "【1†a", "[@1, p. 2")
    },
    **{f"field {unit!r}": (lambda one: field_text(f"EQ {one}"), text(unit), 16_000) for unit in ("\\o(", "\\o\\ad \\s\\up 9 ", "\\* ")},
    # One sentence of a reply, of a turn, of a text to check.
    **{
        f"{name} within {unit!r}": (function, within(unit), 8_000)
        for name, function in {
            "reply": clean_reply, "marks": uniform_marks, "claims": split_claims, "refusal": is_not_found, "talk": is_talk, "clauses": clauses,
            "neutral": neutral_text, "read": read_text, "folded": fold, "turn": long_turn, "terms": terms, "weights": question_weights,
            "dates": find_dates, "language": detect_language, "quantities": quantities, "printable": printable, "title": plain_line,
        }.items()
        for unit in (" ", "\n", "\u3000", "*", "(", "- ", "「", "[1] ")
    },
    **{
        f"check {make(22)!r}": (lambda text: checker_of({1: Document(content="Guo Ziyi retook it.")}).check(split_claims(text)), make, 2_000)
        for make in (text("Guo retook it in 757. "), text("郭子仪收复长安，"), text("not "), within(" "), within("("))
    },
    **{f"streamed {unit!r}": (streamed, text(unit), 1_200) for unit in ("e.g. x, ", "3.1，", "安。", "a\n")},
    **{f"title {unit!r}": (plain_line, text(unit), 100_000) for unit in ("\u200b", "\n", "\u202e", "a ")},
    **{f"summaries {unit!r}": (summed_up, text(unit), 1_000) for unit in ("哈", "Guo retook it in 757. ", "a ")},
    **{f"brackets {unit!r}": (restated, text(unit), 4_000) for unit in ("(", "(a) ", "（哈）", "于1990年在", "(not ", ")(", "x, who fled, ", "He was a king. ")},
    **{f"rulers {unit!r}": (find_dates, text(unit), 10_000) for unit in ("世祖武皇帝", "晋世祖武皇帝泰始二年", "文帝元年", "侯", "宋太祖")},
    **{
        f"call of a tool {unit!r}": (lambda one: read_step(ChatMessage.from_assistant(f"{{}}{one}x"), 0), text(unit), 1_000)
        for unit in ("\n{}", " ", "\n", "\n```", "\naction:")
    },
    **{
        f"thoughts {unit!r}": (lambda one: without_closed_thoughts(f"{one}</thought>{one}"), text(unit), 10_000)
        for unit in ("<think>", "<think><thought>", "</think>", "<think>a</think>")
    },
    "conversation": (conversation, text("[a](b) "), 20_000),
    "notes": (notes, text("a [1] "), 6_000),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def model_reads_once():
    """The embedder's time counts, too."""


@pytest.mark.parametrize("case", CASES)
def test_twice_as_long_a_text_takes_at_most_2_6_times_as_long(case):
    function, make, size = CASES[case]
    assert_grows_with_length(function, make, size)
