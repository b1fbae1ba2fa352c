"""Answers without a model: what is quoted, and where it stands."""

from dataclasses import replace

import pytest
from haystack import Document
from tests.doubles.found_passage import FIRST, QUERY, passage

from shiguan.answer.answerability_gate import NEITHER
from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.answer.question_names import absent_names
from shiguan.answer.quotations import judged_quotations
from shiguan.errors import ModelMissingError
from shiguan.llm.calls import Outcome
from shiguan.models.judge import Reading
from shiguan.reading.text import read_text
from shiguan.tenants import TermStore
from shiguan.text.terms import terms


@pytest.fixture(autouse=True)
def judge_reads(monkeypatch):
    """Set what the judge reads; until then what the retrieval found decides alone."""

    def reads(read):
        monkeypatch.setattr("shiguan.answer.quotations._read", read)

    reads(lambda question, _: Reading(NEITHER[read_text(question).language]))
    return reads


SENTENCE = "In 757 Guo Ziyi took Chang'an back."
TENANT = {"field": "meta.tenant_id", "operator": "==", "value": "a"}


def run(documents, query=QUERY, *, confidence=0.9, **more):
    (answer,) = CitationExtractor(mode="precise", **more).run([], documents, query, confidence=confidence)["answers"]
    return answer


@pytest.mark.parametrize(
    ("confidence", "status"),
    [(0.33, "quoted"), (0.32, "closest"), (0.03, "closest"), (0.029, "not_found"), (None, "quoted")],
)
def test_passages_that_hardly_answer_are_the_closest_ones_and_those_that_do_not_are_not_shown(confidence, status):
    answer = run([passage()], confidence=confidence)
    assert (answer.meta["status"], answer.meta["confidence"]) == (status, confidence)
    assert (answer.data == "The sources do not say this.") is (status == "not_found")


def test_the_probability_rises_with_what_the_judge_reads_in_the_best_quotation(judge_reads):
    def told(odds, confidence=0.5):
        judge_reads(lambda *_: Reading(odds))
        return run([passage()], confidence=confidence).meta["confidence"]

    assert told(-9.0) < told(-3.0) < told(0.0) < told(3.0) < 1.0
    assert told(NEITHER["en"]) == 0.5
    # The retrieval's even odds, and .75 times 2 more: e to the 1.5 against 1.
    assert told(NEITHER["en"] + 2) == pytest.approx(0.8176, abs=1e-4)
    assert (told(9.0, 0.0), told(-9.0, 1.0), told(9.0, None)) == (0.0, 1.0, None)


def test_the_judge_does_not_lift_what_a_rule_forbids(judge_reads):
    judge_reads(lambda *_: Reading(9.0))
    answer = run([passage()], "What did taking Chang'an back cost in modern dollars?", confidence=0.02)
    assert (answer.meta["status"], answer.meta["confidence"]) == ("not_found", 0.0)


def test_what_counts_as_doubtful_can_be_set():
    assert run([passage()], confidence=0.0, closest_below=0).meta["status"] == "quoted"
    assert run([passage()], confidence=0.99, closest_below=1).meta["status"] == "closest"


def test_what_was_found_for_this_question_is_quoted_best_first():
    """Passages that only earlier messages of a conversation show have no score, and are not quoted."""
    earlier = passage(number=1)
    worse = replace(passage("In 757 Guo Ziyi took Chang'an back. So an old book says.", number=2), score=0.2)
    best = replace(
        passage("Nobody saw it. In 757 Guo Ziyi took Chang'an back. It rained for days.", number=3), score=0.9
    )
    answer = run([earlier, worse, best])
    assert [one.meta["number"] for one in answer.documents] == [3, 2]
    assert [citation["number"] for citation in answer.meta["citations"]] == [3, 2]
    assert [citation["number"] for citation in run([earlier]).meta["citations"]] == [1]


@pytest.fixture
def quoted(monkeypatch, judge_reads):
    """Quote three passages in this order whose texts the judge gives these odds."""
    monkeypatch.setattr("shiguan.answer.quotations._says_the_same", lambda *_: False)
    said = ["The sea was calm.", "Rain fell in Acre.", "Corn was dear."]

    def quote(odds, query=QUERY, **more):
        judge_reads(lambda _, text: next(Reading(one) for one, end in zip(odds, said, strict=True) if end in text))
        found = [passage(f"{SENTENCE} {end}", number=at, **more) for at, end in enumerate(said, start=1)]
        return [(one.document.meta["number"], odds) for one, odds in judged_quotations(found, query)]

    return quote


def test_what_the_judge_finds_likelier_is_quoted_before_its_rank(quoted):
    # .75 of the odds less the logarithm of the rank: 0, .6 - .69 and 2.25 - 1.1.
    assert quoted([0.0, 0.8, 3.0]) == [(3, 3.0), (1, 0.0), (2, 0.8)]


@pytest.mark.parametrize(
    ("odds", "likely", "marked"),
    [(2.0, 0.5, "It rained in June."), (2.0, 0.3, SENTENCE), (NEITHER["en"] - 1, 0.5, SENTENCE)],
)
def test_the_sentence_is_marked_in_which_the_judge_is_much_surer_of_the_answer(judge_reads, odds, likely, marked):
    """Of the one with the question's words it says .1, and .3 more decides; nothing does where it finds no answer."""
    text = f"{SENTENCE} It rained in June."
    places = ((0, len(SENTENCE), 0.1), (len(SENTENCE) + 1, len(text), likely))
    judge_reads(lambda *_: Reading(odds, places))
    assert f"**{marked}**" in run([passage(text)]).data


@pytest.mark.parametrize(("query", "likely", "marked"), [
    ("Who was Guo Ziyi?", "An old enemy was hanged.", SENTENCE),  # before the sentence with the name
    ("Who was Guo Ziyi?", "Nobody else came.", SENTENCE),  # of somebody else
    ("Who was Guo Ziyi?", "He governed Shuofang.", "He governed Shuofang."),
    ("Who was Guo Ziyi?", "Guo died old.", "Guo died old."),
    ("When did Guo Ziyi win?", "Nobody else came.", "Nobody else came."),  # does not ask who he was
    ("guo ziyi took Chang’an", "Nobody else came.", SENTENCE),  # what was typed stands there
])  # fmt: skip
def test_who_somebody_was_is_told_by_a_sentence_about_him(judge_reads, query, likely, marked):
    follows = likely if likely.startswith("He") else f"{likely} He wept."
    text = f"An old enemy was hanged. {SENTENCE} {'' if likely.startswith('An') else follows}".strip()
    places = ((text.index(likely), text.index(likely) + len(likely), 0.9),)
    judge_reads(lambda *_: Reading(9.0, places))
    assert f"**{marked}**" in run([passage(text)], query).data


@pytest.mark.parametrize(("query", "marked"), [
    ("What did Ida Lowe keep?", "Ida Lowe | 1856 | 1879"),  # the next row is another keeper's
    ("Which keeper was the last?", "Peter Voss | 1879 | 1901"),  # a row that heads the others answers nothing
])  # fmt: skip
def test_of_two_rows_that_with_the_words_of_the_question_stays_marked(judge_reads, query, marked):
    text = "The lamp.\n\nKeeper | From | To\nJohn Marsh | 1841 | 1856\nIda Lowe | 1856 | 1879\nPeter Voss | 1879 | 1901"
    places = ((text.index("Peter"), len(text), 0.9),)
    judge_reads(lambda *_: Reading(9.0, places))
    found = "Ida Lowe | 1856" if "Ida" in query else "Keeper | From"
    assert f"**{marked}**" in run([passage(text, sentence=found)], query).data


def test_in_a_language_that_the_judge_has_not_learned_the_order_stays(quoted):
    arabic = "من استعاد تشانغآن؟"
    assert quoted([0.0, 1.0, 3.0], arabic) == [(1, None), (2, None), (3, None)]
    assert quoted([0.0, 1.0, 3.0], language="ar") == [(1, None), (2, None), (3, None)]


def test_without_the_weights_the_order_stays(judge_reads):
    def missing(*_):
        raise ModelMissingError("no weights")

    judge_reads(missing)
    assert [odds for _, odds in judged_quotations([passage()], QUERY)] == [None]


def test_a_quotation_is_a_block_with_its_closest_sentence_in_bold():
    answer = run([passage("Some say <b>a year</b>. In 757 Guo Ziyi took Chang'an back.")])
    written = "> Some say <b>a year</b>. **In 757 Guo Ziyi took Chang'an back.**"
    (citation,) = answer.meta["citations"]
    assert answer.data[citation["claim"]["start"] : citation["claim"]["end"]] == written
    assert answer.data.endswith(f"\n\n{written}")


@pytest.mark.parametrize("apart", [
    "[Image: In 757 Guo Ziyi took Chang'an back]", "《Guo Ziyi took Chang'an back》元和七年十月",
    "How Guo Ziyi took Chang'an back", "Back\nGuo Ziyi takes Chang'an\nNext",
    "→ https://example.org/when-guo-ziyi-took-chang'an-back",
])  # fmt: skip
def test_what_is_no_sentence_is_not_the_closest_one(apart):
    text = f"He took it back.\n\n{apart}"
    answer = run([passage(text, sentence=text)])
    (citation,) = answer.meta["citations"]
    start, end = citation["sentence"]
    assert text[start:end].strip() == "He took it back."


def marked_in(one, query):
    (citation,) = run([one], query).meta["citations"]
    return one.content[slice(*citation["sentence"])].strip()


def test_a_heading_is_quoted_only_where_there_is_nothing_else():
    heading = passage("Guo Ziyi takes Chang'an back", sentence="Guo Ziyi takes Chang'an back", number=1)
    assert [one["number"] for one in run([heading, passage(number=2)]).meta["citations"]] == [2]
    assert [one["number"] for one in run([heading]).meta["citations"]] == [1]


def test_a_word_of_the_headings_tells_little_about_a_sentence_below_them():
    query = "Who threw the bomb at Haymarket?"
    text = "No one knows who threw the bomb. It was dark. The Haymarket trial was savage."
    headed = passage(text, sentence=text, section=["The Haymarket martyrs"])
    assert [marked_in(one, query) for one in (passage(text, sentence=text), headed)] == [
        "The Haymarket trial was savage.",
        "No one knows who threw the bomb.",
    ]


@pytest.mark.parametrize(("query", "marked"), [
    ("What was the title of his book?", "His book is called Beacons."),
    ("How did he die?", "Zhang Xun held Suiyang against Yin Ziqi."),
])  # fmt: skip
def test_a_question_that_leans_on_its_turns_is_answered_behind_whom_it_is_about(query, marked):
    found = "Many could be mentioned. Zhang Xun held Suiyang against Yin Ziqi."
    text = f"Books are read by few. {found} It had walls. His book is called Beacons."
    assert marked_in(passage(text, sentence=found), query) == marked


def test_a_quotation_says_where_it_stands_and_what_in_it_is_closest():
    pages = {"pages": [[0, "63"], [37, "64"]], "cfi": [[0, "/6/4!/4/2/1", 0]]}
    (citation,) = run([passage(section=["3", "Suiyang"], **pages)]).meta["citations"]
    assert FIRST[citation["start"] : citation["end"]] == citation["quote"] == FIRST
    assert citation["page"] == "64"  # of the sentence
    assert FIRST[slice(*citation["sentence"])] == SENTENCE
    assert [FIRST[slice(*span)] for span in citation["words"]] == ["Guo", "Ziyi", "Chang'an", "back"]
    assert (citation["number"], citation["section"], citation["verdict"]) == (1, ["3", "Suiyang"], "quoted")


def test_places_of_a_cut_passage_are_places_in_the_stored_one():
    stored = "Nobody had expected it. " * 3 + FIRST
    document = passage(FIRST, cut=[72, 72 + len(FIRST)])
    match = {**document.meta["matches"][0], "start": 72 + 37, "end": 72 + 72}
    document = Document(id="p1", content=FIRST, meta={**document.meta, "matches": [match]})
    (citation,) = run([document]).meta["citations"]
    assert stored[citation["start"] : citation["end"]] == citation["quote"]
    assert stored[slice(*citation["sentence"])] == "In 757 Guo Ziyi took Chang'an back."


def test_what_matched_much_worse_than_the_best_is_left_out():
    text = "It was dark. Nobody knows on what day Guo Ziyi went back to Chang'an."
    good, worse = passage(number=1), passage(text, sentence="It was dark.", number=2)
    worse.meta["matches"][0]["score"] = 0.79
    answer = run([good, worse])
    assert [citation["number"] for citation in answer.meta["citations"]] == [1]
    worse.meta["matches"][0]["score"] = 0.8
    answer = run([good, worse])
    assert [citation["number"] for citation in answer.meta["citations"]] == [1, 2]


def test_a_match_that_a_quotation_only_touches_is_quoted_too():
    names = "ABCDEFGHIJKLMNOPQRST"
    sentences = [f"Company {name} went on down the river with its horses, carts, boats and baggage. " for name in names]
    starts = [len(sentences[0]) * at for at in range(len(names))]
    document = passage("".join(sentences).strip(), sentence=sentences[0])
    (first,) = document.meta["matches"]
    second = {"start": starts[11] - 30, "end": starts[14], "score": 1.5}

    def quoted(*matches):
        document.meta["matches"] = list(matches)
        citations = run([document], "Describe the companies.").meta["citations"]
        return [(citation["start"], citation["end"]) for citation in citations]

    assert quoted(first) == [(0, starts[11] - 1)]
    assert quoted(first, second) == [(0, starts[11] - 1), (starts[11], len(document.content))]
    assert quoted(first, second | {"end": starts[11] + 20}) == [(0, starts[11] - 1)]


def test_a_pronoun_has_whom_it_means_and_a_note_what_it_hangs_on():
    text = "Guo Ziyi was old. He took Chang'an back in 757. " + "It was a long and hard war for all of them. " * 30
    (citation,) = run([passage(text, sentence="He took Chang'an back in 757.")]).meta["citations"]
    assert citation["quote"].startswith("Guo Ziyi was old.")
    note = "[Note: two figures stand there. One of them is a slip. Both are of 755. Nobody knows which is right.]"
    noted = f"The registers of all prefectures counted 52 million. {note} " + "War came soon to the capital. " * 60
    (citation,) = run([passage(noted, sentence="Nobody knows which is right.]")]).meta["citations"]
    assert citation["quote"].startswith(f"The registers of all prefectures counted 52 million. {note}")
    took = "Guo Ziyi took Chang'an back."
    for count, kept in ((1, True), (90, False)):  # what the note hangs on is quoted, or too long
        noted = f"The registers counted {'millions and ' * count}more. [Note: of 755. Or of 754.] {took} "
        (citation,) = run([passage(f"Before it was peace. {noted}", sentence=took)]).meta["citations"]
        assert ("Or of 754.]" in citation["quote"], citation["quote"].startswith(took)) == (kept, not kept)


def test_a_quotation_does_not_end_within_a_note_that_is_short():
    took = "Guo Ziyi took Chang'an back [Note: in 757. Others say 758.] after"
    long = f"Guo Ziyi took Chang'an back [Note: in 757. {'It is disputed. ' * 40}]"
    for noted, sentence in (
        (f"{took} a siege.", f"{took} a siege."),
        (long, "Guo Ziyi took Chang'an back [Note: in 757."),
    ):
        text = f"{noted} {'War came soon to the capital. ' * 40}"
        for query in ("Who took Chang'an?", "What is chapter 3 about?"):
            documents = [passage(text, sentence="Guo Ziyi took Chang'an back", section=["Chapter 3"])]
            (citation,) = run(documents, query).meta["citations"]
            start, end = citation["sentence"]
            assert (text[start:end], citation["quote"].startswith(sentence)) == (sentence, True)


@pytest.mark.parametrize(("query", "opening"), [
    ("What is chapter 3 about?", "Several chapters may be meant; name the book or part to see one alone. "),
    ("第三章讲什么？", "所问的可能不止一章，写明书名或部类即可只看其一。"),
])  # fmt: skip
def test_of_several_chapters_that_may_be_meant_each_has_its_share_and_the_reader_is_told(query, opening):
    def chapter(book, count):
        sections = [["Chapter 3", f"3.{at}"] for at in range(count)]
        more = [{"source_id": book, "title": book, "position": at, "section": one} for at, one in enumerate(sections)]
        return [replace(passage(f"{book} was written by hand.", sentence="written", **one), id=f"{book}{at}")
                for at, one in enumerate(more)]  # fmt: skip

    answer = run([*chapter("Annals", 15), *chapter("Songs", 2)], query)
    assert [one["title"] for one in answer.meta["citations"]] == ["Annals"] * 6 + ["Songs"] * 2
    assert answer.data.startswith(opening)
    parts = [passage("Text.", sentence="Text.", source_id="a", section=[part, "卷三"]) for part in ("本纪", "志")]
    assert run(parts, query.replace("chapter", "book").replace("章", "卷")).data.startswith(opening)
    alone = run(chapter("Annals", 15), query)
    assert len(alone.meta["citations"]) == 12
    assert opening not in alone.data


def test_a_quotation_neither_begins_nor_ends_within_a_chinese_sentence():
    part = "节度使由父子相承，军中推立，朝廷照准，赋税留在本镇，将吏自行任命；"
    around = "河北的惯例，当时人称之为河朔故事，朝廷无可奈何，只得事后追认。"
    for text in (f"{around * 6}{part * 8}{around}", f"{around}{part * 8}完了。{around * 6}"):
        at = text.index("河朔故事", 100)
        sentence = text[at - 15 : text.index("。", at) + 1]
        (citation,) = run([passage(text, sentence=sentence, language="zh")], "河朔故事是什么？").meta["citations"]
        before = text[: citation["start"]]
        assert (before[-1:] in ("", "。"), citation["quote"][-1]) == (True, "。")
    endless = passage(part * 40, sentence=part, language="zh")
    (citation,) = run([endless], "节度使由谁相承？").meta["citations"]
    assert 0 < len(citation["quote"]) <= 300


def test_of_a_chapter_the_beginning_is_quoted_and_of_what_goes_on_a_sentence_that_stands_alone():
    chapter = {"section": ["Chapter 3"], "source_id": "a"}
    first = "The mill was old. It had been built by the monks of Saint Lô before the great plague of the century."
    alone = "The brewer had the wheel taken down and the race filled with the stones of the northern wall."
    second = (
        f"*Only in port. They sold it in the spring to the owner of the brewery beside the bridge. {alone} He died."
    )
    endless = f"And {'on and on the river ran beside the walls of the town, ' * 20}to the sea."
    parts = (first, second, endless)
    found = [
        replace(passage(text, sentence="the", **chapter, position=at), id=str(at)) for at, text in enumerate(parts)
    ]
    quotes = [citation["quote"] for citation in run(found, "What is chapter 3 about?").meta["citations"]]
    assert quotes == [first, alone]


def test_what_points_back_to_two_has_them_before_it():
    for who, begins in (("men", "Cole wrote to Ward."), ("Cole and Ward", "Both Cole and Ward")):
        said = f"Cole wrote to Ward. Both {who} saw in the landscape a work of God that no city could equal. "
        found = passage(said + "It rained. " * 90, sentence=f"Both {who} saw")
        (citation,) = run([found], "What did the men see in the landscape?").meta["citations"]
        assert citation["quote"].startswith(begins)


def test_a_window_goes_on_until_it_has_the_kind_of_thing_that_is_asked_for():
    bridge = "The stone bridge over the river was built by Li Chun of the Sui for the merchants of the northern town. "
    told = (
        bridge
        + "Boats went below it and carts above it, and it stood every great flood that ever came down the river. " * 3
    )
    text = f"{told}Work on it ended in 605. Nobody has counted its stones. {'The river is wide. ' * 40}"
    windows = {
        query: run([passage(text, sentence=bridge.strip())], query).meta["citations"][0]
        for query in ("Who built the stone bridge?", "When was the stone bridge built?", "Tell of the stone bridge.")
    }
    who, when, whatever = (one["quote"] for one in windows.values())
    assert who == told.strip()
    assert when == f"{told}Work on it ended in 605."
    assert len(when) < 800 < len(whatever) <= 900


@pytest.mark.parametrize(
    ("text", "query", "answering"),
    [
        (
            "A census was taken in 755. It counted 52,919,309 people. Nobody has believed it since.",
            "How many people did the census of 755 count?",
            "It counted 52,919,309 people.",
        ),
        ("长安有大寺。天宝十四载清点僧人。凡一千二百人。寺后有塔。", "天宝十四载清点出僧人多少？", "凡一千二百人。"),
        (
            "Guo Ziyi was old. The war had reasons. Guo Ziyi liked horses.",
            "What did Guo Ziyi like?",
            "Guo Ziyi liked horses.",
        ),
        (
            "Guo Ziyi had slandered nobody. Two doctors embalmed him. It was autumn.",
            "Who embalmed the great Guo Ziyi?",
            "Two doctors embalmed him.",
        ),
        ("He took it back.\n\n- Guo Ziyi took Chang'an back", QUERY, "- Guo Ziyi took Chang'an back"),
        ("He took it back.\n\n757 | Guo Ziyi took Chang'an back", QUERY, "757 | Guo Ziyi took Chang'an back"),
        # In translation, and by the classical word for one of the question.
        ("安禄山反于范阳。南海有大鲸。其年大雪。", "Where are there whales?", "南海有大鲸。"),
        (
            "眾呼曰：楊國忠連蕃人謀逆！及誅楊國忠一族，兵猶未解。上聞楊國忠死。",
            "谁杀了杨国忠？",
            "及誅楊國忠一族，兵猶未解。",
        ),
    ],
)
def test_the_sentence_that_is_marked_is_the_one_that_answers(text, query, answering):
    assert marked_in(passage(text, sentence=text, language=read_text(text).language), query) == answering


EAST = "Luoyang was the eastern capital and was taken back."


@pytest.mark.parametrize(("text", "found", "query", "answering"), [
    (f"{SENTENCE} {{0}}Luoyang followed on 3 December. {{1}}", SENTENCE, "When did he take Luoyang back?",
     "Luoyang followed on 3 December."),  # past another date
    (f"Luoyang fell on 3 December. {{0}}{EAST} {{1}}", EAST, "When did Luoyang fall?", "Luoyang fell on 3 December."),
])  # fmt: skip
def test_a_window_goes_on_or_back_to_the_sentence_that_answers(text, found, query, answering):
    filler = "The road from the pass to the two capitals was long and the harvest had been burnt on both sides of it. "
    text = text.format(filler * 4, filler * 9)
    (citation,) = run([passage(text, sentence=found)], query).meta["citations"]
    assert answering in (citation["quote"][: len(answering)], citation["quote"][-len(answering) :])
    assert text[slice(*citation["sentence"])] == answering


def test_beside_a_sentence_with_most_of_the_words_another_needs_most_of_them_too():
    other = passage("Chang'an has warm springs. They are old.", sentence="Chang'an has warm springs.", number=2)
    assert [one["number"] for one in run([passage(), other]).meta["citations"]] == [1]
    # The first sentence has few of the words itself: perhaps the other one answers.
    asked = "When did the marshal Guo Ziyi whom the emperor trusted lead his soldiers from Lingwu to Chang'an?"
    assert [one["number"] for one in run([passage(), other], asked).meta["citations"]] == [1, 2]


def test_the_same_words_from_two_editions_are_quoted_once_and_another_number_as_well():
    text, sentence = (one.replace("757", "758") for one in (FIRST, SENTENCE))
    for other, number in (
        (passage(f"{FIRST}  So it is told.", number=2), []),
        (passage(text, sentence=sentence, number=2), [2]),
    ):
        waited = passage(
            "Guo Ziyi waited before Chang'an. They were ten thousand.", sentence="Guo Ziyi waited", number=3
        )
        answer = run([passage(number=1), other, waited])
        assert [citation["number"] for citation in answer.meta["citations"]] == [1, *number, 3]


@pytest.mark.parametrize("query", ["郭子仪是谁？", "Who was Guo Ziyi?", "Who was Kuo Tzu-i?"])
def test_who_somebody_is_is_told_first_by_the_passage_that_introduces_him_whatever_the_judge_says(judge_reads, query):
    texts = ["安祿山反，郭子儀討之。", "郭子儀，華州鄭縣人也。父敬之。"]
    for odds in ((9.0, -9.0), (NEITHER["zh"], NEITHER["zh"])):
        read = dict(zip(texts, map(Reading, odds), strict=True))
        judge_reads(lambda _, text, read=read: read[text])
        other, own = (passage(text, sentence=text, number=at, language="zh") for at, text in enumerate(texts, start=1))
        answer = run([other, own], query)
        assert [citation["number"] for citation in answer.meta["citations"]] == [2, 1]
        assert "**郭子儀，華州鄭縣人也。**" in answer.data


@pytest.mark.parametrize(
    ("query", "text", "status"),
    [
        ("郭子仪是哪里人？", "安祿山反，郭子儀討之，斬數萬人。", "closest"),
        ("郭子仪是哪里人？", "郭子儀，華州鄭縣人也。以武舉異等。", "quoted"),
        ("郭子仪的籍贯是哪里？", "白孝德，安西胡人也，事郭子儀。", "closest"),
        ("郭子仪出生在哪里？", "郭子儀是唐代名將，生於華州。", "quoted"),
        ("郭子仪是哪国人？", "郭子儀是唐代名將。", "quoted"),  # told in many ways
        ("他是哪里人？", "安祿山反，郭子儀討之。", "quoted"),
    ],
)
def test_passages_that_do_not_tell_where_somebody_comes_from_are_only_the_closest(query, text, status):
    answer = run([passage(text, sentence=text, language="zh")], query)
    assert answer.meta["status"] == status


class Store(TermStore):
    """A library that has the words of one passage, in which two passages wait for their vectors."""

    def known_terms(self, asked, language, filters):
        return {term for term in asked if term in set(terms(FIRST))}

    def count_without_vector(self, filters):
        return 2


def unsure(query, confidence=0.2):
    extractor = CitationExtractor(document_store=Store())
    return extractor.run([], [passage()], query, filters=TENANT, confidence=confidence)["answers"][0].meta


@pytest.mark.parametrize(("query", "status", "absent"), [
    ("When did Guo Ziyi take Chang'an back?", "closest", []),
    ("When did Zhu Yuanzhang take Chang'an back?", "not_found", [{"term": "Zhu Yuanzhang", "near": []}]),
    ("When was Zhu Yuanzhang's city taken back?", "not_found", [{"term": "Zhu Yuanzhang", "near": []}]),
    (
        "When did Zhu Yuanzhang's Red Turbans come?",
        "not_found",
        [
            {"term": "Zhu Yuanzhang", "near": []},
            {"term": "Red Turbans", "near": []},
        ],
    ),
    ("When did Guo Ziyi meet the Uigur?", "closest", [{"term": "Uigur", "near": ["Uighur"]}]),
])  # fmt: skip
def test_a_name_that_stands_nowhere_in_the_library_is_told_and_one_that_was_misspelt_is_offered(query, status, absent):
    found = unsure(query)
    assert (found["status"], [one for one in found["absent"] if one["term"] != "Chang'an"]) == (status, absent)


def test_what_is_near_does_not_answer_for_a_name_that_stands_nowhere():
    found = unsure("When did Zhu Yuanzhang take Chang'an back?", confidence=0.9)
    assert found["status"] == "closest"
    assert {"term": "Zhu Yuanzhang", "near": []} in found["absent"]
    assert unsure("When did Guo Ziyi meet the Uigur?", confidence=0.9)["status"] == "quoted"


@pytest.mark.parametrize(
    ("query", "known", "absent"),
    [
        ("朱元璋是怎样取得天下的？", [], ["朱元璋"]),
        ("朱元璋是怎样取得天下的？", ["元璋"], []),
        ("朱元璋是怎样取得天下的？", ["yuanzhang"], []),  # by an English passage
        ("朱元璋是怎样取得天下的？", ["zhu"], ["朱元璋"]),  # somebody of the same surname
        ("武则天何时即位？", ["则天"], []),  # her annals call her 则天
        ("秦朝是怎样灭亡的？", [], []),  # its annals call it 秦
        ("郭子儀何時收長安？", [], []),  # in the passage
    ],
)
def test_a_name_in_han_characters_that_stands_nowhere_is_named(query, known, absent):
    class Books(Store):
        def known_terms(self, asked, language, filters):
            return {*known} & {*asked}

    passages = [passage("郭子仪收复长安。", sentence="郭子仪", language=language) for language in ("zh", "ja", "en")]
    assert [one["term"] for one in absent_names(query, passages, Books(), TENANT)] == absent
    assert [one["term"] for one in absent_names(query, [*passages, passage(language="ar")], Books(), TENANT)] == absent
    assert absent_names(query, [passage(language="ar"), *passages], Books(), TENANT) == []


def test_an_unsure_answer_says_how_many_passages_wait_for_their_vectors_and_a_sure_one_does_not():
    assert unsure(QUERY)["waiting"] == 2
    assert unsure(QUERY, confidence=0.9)["waiting"] == 0


def test_without_a_tenants_filters_the_library_is_not_read():
    (answer,) = CitationExtractor(document_store=Store()).run([], [passage()], "Who was Nobody?", confidence=0.2)[
        "answers"
    ]
    assert (answer.meta["absent"], answer.meta["waiting"]) == ([], 0)


def test_what_ends_a_question_first_is_answered_with_what_the_library_lacks():
    extractor = CitationExtractor(mode="precise", document_store=Store())
    ended = Outcome("not_found", "nothing_found")
    (answer,) = extractor.run([ended], query="Who was Zhu Yuanzhang?", filters=TENANT, confidence=0.0)["answers"]
    assert (answer.data, answer.meta["status"]) == ("The sources do not say this.", "not_found")
    assert (answer.meta["reason"], answer.meta["waiting"]) == ("nothing_found", 2)
    assert [one["term"] for one in answer.meta["absent"]] == ["Zhu Yuanzhang"]


def test_a_library_in_another_language_may_have_the_name_in_another_form():
    chinese = passage("郭子仪收复长安。", sentence="郭子仪收复长安。", language="zh")
    extractor = CitationExtractor(document_store=Store())
    (answer,) = extractor.run([], [chinese], "Who was Zhu Yuanzhang?", filters=TENANT, confidence=0.2)["answers"]
    assert (answer.meta["status"], answer.meta["absent"]) == ("closest", [])
