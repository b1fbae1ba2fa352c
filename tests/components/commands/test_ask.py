"""How a question is typed, what the options say of themselves, and what a person reads of an unsure answer."""

import io
import json

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text
from tests.doubles.small_library import TENANT

from shiguan.cli import main
from shiguan.commands.answer_view import AnswerView
from shiguan.commands.arguments import QUESTION_OPTIONS
from shiguan.commands.terminal import place_line, print_indented
from shiguan.engine.options import AskOptions, allowed_values

QUESTION = "Who proposed the two-tax reform?"
WORDS = QUESTION.split()


@pytest.mark.parametrize(("arguments", "typed"), [
    (("ask", QUESTION), ""), (("ask", *WORDS), ""), (("ask", "--mode", "simple", *WORDS), ""),
    (("ask", "-"), f"\n{QUESTION}\n"),
    (("ask", "-"), "Who proposed\nthe two-tax reform?"),
    (("search", *WORDS), ""), (("search", "-"), QUESTION),
    (("why", *WORDS, "--expected", "Yang Yan"), ""),
])  # fmt: skip
def test_a_question_needs_no_quotation_marks_and_comes_from_standard_input(shiguan, arguments, typed):
    code, out, _ = shiguan(*arguments, "--json", typed=typed)
    assert (code, json.loads(out)["question" if "why" in arguments else "query"]) == (0, QUESTION)


def test_nothing_on_standard_input_is_an_empty_question(shiguan):
    code, _, err = shiguan("ask", "-", typed=" \n")
    assert (code, "The question is empty" in err) == (2, True)


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])  # as locales have it
def test_a_question_in_another_encoding_is_refused_and_says_so(data_dir, capsys, monkeypatch, errors):
    typed = "安禄山，哪一年起兵？".encode("gb18030")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed), encoding="utf-8", errors=errors))
    assert main(["ask", "-", "--tenant", TENANT, "--data-dir", str(data_dir)]) == 2
    assert "The question is not in UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["Yang Yan proposed", "史記卷一百", "a\n\nbc"])
def test_a_text_with_a_margin_is_whole_on_a_terminal_that_is_narrower(text):
    for width in range(1, 10):
        printed = io.StringIO()
        print_indented(Console(file=printed, width=width), Text(text), 6)
        assert "".join(printed.getvalue().split()) == "".join(text.split())


def test_no_line_of_chinese_begins_with_a_sign_that_closes():
    text = "玄宗幸蜀，至马嵬驿，“六军不发。”帝曰：“何故？”（见本纪。）" * 3
    for width in range(20, 40):
        printed = io.StringIO()
        print_indented(Console(file=printed, width=width), Text(text), 2)
        lines = [line.strip() for line in printed.getvalue().splitlines()]
        assert "".join(lines) == text
        assert not [line for line in lines if line[0] in "，。？”）"]
        assert max(map(cell_len, lines)) <= width - 2


@pytest.mark.parametrize("command", ["ask", "chat", "search"])
def test_help_tells_the_values_of_every_option(capsys, command):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    told = " ".join(capsys.readouterr().out.split()).replace("- ", "-")  # a line may end at a hyphen
    for name in ("top_k", *QUESTION_OPTIONS):
        values = allowed_values(name)
        told_values = values if isinstance(values, str) else ", ".join(values)
        assert f"{told_values}. {AskOptions.model_fields[name].description}".replace("- ", "-") in told
    assert "step_back" in told
    assert "compare" in told
    assert "simple, advanced, precise" in told


def answer(status, **metadata):
    citation = {
        "number": 1, "source": "tang.epub", "section": ["Annals"], "anchor": {}, "start": 0, "quote": "朱全忠篡唐。",
        "sentence": [0, 6], "words": [], "verdict": "quoted", "confidence": 0.3,
    }  # fmt: skip
    shown = status in ("quoted", "closest")
    base = {"timings_ms": {"total": 120.0}, "llm_calls": 0, "model": "", "warnings": []}
    return {
        "answer": "以下是最接近的原文，一字未改。\n\n> 朱全忠篡唐。" if shown else "The sources do not answer this question.",
        "query": "朱元璋是怎样取得天下的？", "mode": "simple", "status": status, "citations": [citation] if shown else [],
        "metadata": {**base, **metadata},
    }  # fmt: skip


def shown(capsys, found, *, text="", full=False):
    with AnswerView(found["query"], full=full) as view:
        view.show("token", {"text": text})
        view.show("generation_complete", found)
    return " ".join(capsys.readouterr().out.split())


def test_passages_that_are_only_the_closest_are_said_to_be_unsure_before_they_are_shown(capsys):
    out = shown(capsys, answer("closest"))
    unsure = "以下是最接近的原文，一字未改。"
    assert out.index(unsure) < out.index("[1] tang.epub") < out.index("朱全忠篡唐。")
    assert out.count(unsure) == 1


@pytest.mark.parametrize("status", ["closest", "not_found"])
def test_a_name_that_stands_nowhere_is_told_with_the_nearest_ones(capsys, status):
    absent = [{"term": "朱元璋", "near": ["朱全忠", "朱玫"]}, {"term": "Nurhaci", "near": []}]
    out = shown(capsys, answer(status, absent=absent))
    assert "“朱元璋” does not occur in your library. Names that do: 朱全忠, 朱玫." in out
    assert "“Nurhaci” does not occur in your library. simple" in out
    out = shown(capsys, answer(status, absent=absent, language="zh", waiting=1204))
    assert "你的书库中没有“朱元璋”。相近的有：朱全忠、朱玫。" in out
    assert "你的书库中没有“Nurhaci”。 书库还在建立索引：尚有1,204段不能按意义检索。请稍后再问。 simple" in out


@pytest.mark.parametrize(("status", "told"), [("closest", True), ("not_found", True), ("quoted", False)])
def test_a_library_that_is_still_being_read_is_told_where_the_answer_is_unsure(capsys, status, told):
    out = shown(capsys, answer(status, waiting=1204))
    assert ("The library is still being indexed: 1,204 passages cannot be searched by meaning yet." in out) is told
    assert "still being indexed" not in shown(capsys, answer(status, waiting=0))


LONG = "The gate was locked. " + "Nobody came that night, and the lamps burnt low in the hall. " * 8
WINDOW = f"{LONG}Yang Yan proposed the reform in 780. It was harsh. {LONG}"


def cited(number, quote=WINDOW, **place):
    start = quote.index("Yang") if "Yang" in quote else 0
    return {
        "number": number, "source": f"{number}.epub", "title": None, "section": [], "anchor": {}, "parent_id": f"p{number}",
        "start": 0, "quote": quote, "sentence": [start, start + 36], "words": [], "verdict": "quoted", "confidence": 0.9,
        **place,
    }  # fmt: skip


def test_two_places_of_one_passage_stand_apart(capsys):
    quotes = [cited(1, "Yang Yan proposed the reform in 780."), cited(1, "The old tax was gone.", sentence=[0, 21])]
    with AnswerView("Who?") as opened:
        opened.show("generation_complete", answer("quoted") | {"citations": quotes})
    out = capsys.readouterr().out
    assert out.count("[1] 1.epub") == 1
    assert "in 780.**\n\n      **The old tax" in out


def test_a_misspelt_name_is_corrected_once(capsys):
    note = "No passage has “Quequeg”. Did you mean “Queequeg”?"
    absent = [{"term": "Quequeg", "near": ["Queequeg"]}, {"term": "Nurhaci", "near": []}]
    out = shown(capsys, answer("closest", absent=absent, warnings=[note]))
    assert out.count("Queequeg") == 1
    assert "“Nurhaci” does not occur in your library." in out


def test_a_chinese_sentence_is_shown_with_all_its_parts(capsys):
    rules = "归纳起来有三条：节度使由父子相承；赋税留在本镇；将吏自行任命。"
    quote = f"当时人称之为河朔故事。{rules}朝廷照准。"
    at = quote.index("赋税")
    citation = cited(1, quote, sentence=[at, at + 7])
    out = "".join(view(capsys, [citation]).split())
    assert "归纳起来有三条：节度使由父子相承；**赋税留在本镇；**将吏自行任命。" in out


def view(capsys, citations, *, status="quoted", text="", full=False, documents=(), **metadata):
    found = answer(status, **metadata) | {"query": "Who?", "citations": citations, "documents": list(documents)}
    return shown(capsys, found, text=text, full=full)


def test_a_quotation_is_its_marked_sentence_with_short_neighbours(capsys):
    out = view(capsys, [cited(4)])
    before = "… Nobody came that night, and the lamps burnt low in the hall. "
    assert f"{before}**Yang Yan proposed the reform in 780.** It was harsh. …" in out
    assert len(out) < 500
    for sentence, shown in (("安禄山反。", "…**安禄山反。**…"), ("Chang'an 陷落。", "… **Chang'an 陷落。**…")):
        quote = f"{'人' * 800}。{sentence}{'河北' * 300}。"
        assert shown in view(capsys, [cited(4, quote, sentence=[801, 801 + len(sentence)])])


@pytest.mark.parametrize(
    ("before", "after", "alone"),
    [
        ("It rained. [Note: Annals, 12.] ", "It was harsh.", "… **Yang Yan proposed the reform in 780.** It was harsh."),
        ("It rained. ", "It fell, [Note: Of 780. Or 781.] so he said.", "It rained. **Yang Yan proposed the reform in 780.** …"),
        ("It rained. ", "[Note: Annals, 12.] It was harsh.", "It rained. **Yang Yan proposed the reform in 780.** [Note: Annals, 12.] …"),
    ],
)  # fmt: skip
def test_no_note_is_shown_in_part_or_without_the_sentence_that_it_belongs_to(capsys, before, after, alone):
    assert alone in view(capsys, [cited(4, f"{before}Yang Yan proposed the reform in 780. {after}")])


def test_whole_passages_are_shown_where_they_are_asked_for(capsys):
    whole = f"Before it. {WINDOW} After it."
    out = view(capsys, [cited(4, start=11)], full=True, documents=[{"id": "p4", "content": whole}])
    assert "Before it. The gate was locked." in out
    assert "After it." in out
    assert "…" not in out


def test_passages_are_numbered_as_they_are_shown_and_named_once_by_their_title(capsys):
    first = cited(7, title="The Reform", section=["The Reform", "Taxes"])
    out = view(capsys, [first, cited(3), cited(7, "Yang Yan proposed the reform in 780.")])
    assert out.index("[1] The Reform · Taxes") < out.index("[2] 3.epub")
    assert out.count("[1]") == 1
    assert "[7]" not in out


def test_the_marks_of_an_answer_begin_at_one(capsys):
    place = cited(9, "In 780 it was so.", verdict="supported")
    out = view(capsys, [place, place], status="answered", text="It was in 780 [9]. It was harsh [12].")
    assert "It was in 780 [1]. It was harsh [2]." in out
    assert out.count("In 780 it was so.") == 1


def test_a_sentence_shows_the_passage_that_contradicts_it(capsys):
    place = cited(5, "He was seen in 757.", start=100, words=[[115, 118]])
    for verdict, label in (("contradicted", "Contradicted"), ("supported", "Another source disagrees")):
        claim = {"text": "He was seen in 759.", "verdict": verdict, "against": place}
        out = view(capsys, [], status="answered", text="He was seen in 759.", claims=[claim])
        assert f"{label}: He was seen in 759. [1] 5.epub He was seen in **757**." in out


def test_a_sentence_that_is_supported_in_part_has_its_reason(capsys):
    place = {**cited(5, "He was seen in 757.", verdict="partial"), "claim": {"start": 0, "end": 13}}
    claim = {"text": "He was there.", "verdict": "partial", "start": 0, "reason": "the same words, not checked further"}
    out = view(capsys, [place], status="answered", text="He was there [5].", claims=[claim])
    assert "He was seen in 757. partial 0.90: the same words, not checked further" in " ".join(out.split())


def test_an_unanswered_question_ends_with_1(shiguan):
    assert shiguan("ask", QUESTION, "--confidence-threshold", "1")[0] == 1
    assert shiguan("ask", QUESTION)[0] == 0


def test_of_a_place_the_innermost_heading_is_read_and_not_the_title_twice():
    title = 'A.5 What are some examples of "Anarchy in Action"? | A Handbook'
    place = {"source": "a5.html", "title": title, "section": [title.partition(" | ")[0], "A.5.2 The Haymarket Martyrs"]}
    assert place_line(place) == 'A.5 What are some examples of "Anarchy in Actio… · A.5.2 The Haymarket Martyrs'
    assert place_line({**place, "section": []}) == title
    outer = "SECTION IV FAIRY STORIES—MODERN FANTASTIC TALES"
    assert place_line({"source": "c.epub", "title": "Tales", "section": [outer, "I The Visit"]}) == (
        "Tales · SECTION IV FAIRY STORIES—MODERN… › I The Visit"
    )
    assert place_line({"source": "c.epub", "title": "I, Claudius", "section": ["I"]}) == "I, Claudius · I"


@pytest.fixture
def refusing(endpoint):
    """A configured model that answers every call with 401."""
    endpoint.next(times=99, status=401)
    return endpoint


def test_a_text_is_checked_to_its_end(shiguan, refusing, tmp_path):
    draft = tmp_path / "draft.md"
    draft.write_text("The wall of the capital was eight metres high. Yang Yan proposed the two-tax reform in 790.")
    code, out, _ = shiguan("verify", draft, "--json")
    found = json.loads(out)
    assert (code, [item["verdict"] for item in found["items"]]) == (0, ["supported", "contradicted"])
    assert refusing.calls == 0


def test_passages_are_found(shiguan, refusing):
    code, out, _ = shiguan("search", QUESTION, "--json")
    assert (code, json.loads(out)["results"][0]["source"], refusing.calls) == (0, "tax.txt", 0)
