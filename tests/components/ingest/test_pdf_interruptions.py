"""What stands between the pages of a PDF, or between its lines, does not interrupt the sentences that run over it."""

import math
import textwrap

import pytest
from haystack.dataclasses import ByteStream
from tests.doubles.pdf_builder import HELVETICA, build_pdf, cid_font, place, to_unicode_map
from tests.doubles.processor_time import assert_grows_with_length

from shiguan.ingest.pdf_to_document import PDFToDocument
from shiguan.reading.text import read_text

COURIER = HELVETICA.replace(b"Helvetica", b"Courier")
SONG = cid_font("GBK-EUC-H", "GB1")
MINCHO = cid_font("90ms-RKSJ-H", "Japan1")
STORY = " ".join(
    f"The {number}th caravan of the year left the western gate at dawn and by noon had reached the second well, where a "
    f"guide told them that {number + 40} camels had been lost in the month of thaw and that nobody would follow them."
    for number in range(4, 30)
)
NAMES = "Kucha Kashgar Khotan Merv Balkh Talas Suyab Gilgit Karashahr Tokmak Otrar Khiva".split()


def justified(line, y, *, x=60, width=60, size=10):
    """A line of Courier whose words are spread to its width, in characters."""
    words = line.split()
    extra = (width - len(line)) / max(len(words) - 1, 1)
    starts = [sum(map(len, words[:at])) + at * (1 + extra) for at in range(len(words))]
    return b"".join(place(word, x + 0.6 * size * at, y, size=size) for word, at in zip(words, starts, strict=True))


def pages(*furniture, text=STORY, on_page=13):
    """A text whose sentences run over the pages; `furniture` writes what else a page has, by its number."""
    lines = textwrap.wrap(text, 60)
    return [
        b"".join(justified(line, 700 - 14 * row) for row, line in enumerate(lines[start : start + on_page]))
        + b"".join(draw(number) for draw in furniture)
        for number, start in enumerate(range(0, len(lines), on_page))
    ]


def read(pages, **fonts):
    data = build_pdf(pages, fonts={"F": COURIER, "N": HELVETICA, **fonts})
    [document] = PDFToDocument().run([ByteStream(data, meta={"file_path": "a.pdf"})])["documents"]
    return document


def head(words, y=740, **more):
    return lambda page: place(words(page), 60, y, font="N", **more)


def in_margin(x, step, start=1, on_page=13):
    """Numbers of the lines of `pages`, every `step`th of which has one."""
    return lambda page: b"".join(
        place(str(number), x - 4 * len(str(number)), 700 - 14 * (number - first), size=7, font="N")
        for first in [page * on_page + start]
        for number in range(first, first + on_page)
        if number % step == 0
    )


CHAPTERS = ("The Price of Horses", "Roads and Wells", "Of the Granaries", "Letters Home")
HEADS = {
    "the title of the book left, of the chapter right, its number within": [
        head(lambda page: f"{page + 40} THE WEST" if page % 2 == 0 else f"{CHAPTERS[page // 4]} {page + 40}")
    ],
    "another on every page, with the number": [head(lambda page: f"Of {NAMES[page]} {page + 40}")],
    "the first and last word of the page": [head(lambda page: f"{NAMES[page]} – {NAMES[page - 1]}")],
    "two lines that differ": [
        head(lambda page: f"Of {NAMES[page]}", y=752), head(lambda page: f"The {NAMES[-page - 1]} road"),
        head(lambda page: str(page + 40), y=60),
    ],
    "in larger letters than the text": [head(lambda page: "The Roads of the West", size=15)],
    "misread by text recognition": [head(lambda page: ("THE R0ADS.", "TIIE ROADS", "THE ROAD5", "TEE ROADS")[page % 4])],
    "a stamp over the page": [lambda page: b"BT /N 60 Tf 0.7071 0.7071 -0.7071 0.7071 150 250 Tm (DRAFT COPY) Tj ET\n"],
    "a stamp in large letters": [lambda page: place("CONFIDENTIAL", 150, 480, size=40, font="N")],
    **{
        f"every {step}th line counted at {x}": [in_margin(x, step), head(lambda page: f"Roads {page}")]
        for x, step in ((45, 1), (45, 5), (455, 5), (450, 4), (40, 3))
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", HEADS)
def test_heads_of_any_words_and_counted_lines_do_not_interrupt_a_sentence(kind):
    document = read(pages(*HEADS[kind]))
    assert " ".join(document.content.split()) == STORY
    if "number" in kind:
        assert [label for _, label in document.meta["pages"][:3]] == ["40", "41", "42"]


VERSES = b"".join(place(f"And {name} saw the month of thaw", 60, 700 - 14 * row) for row, name in enumerate(NAMES))
KEPT = {
    "The song of": [place(f"The song of {name}", 60, 740, font="N") + VERSES for name in NAMES[:9]],
    "The walls of": pages(head(lambda page: f"Figure {page}. The walls of {NAMES[page]} in 747", y=720)),
}


@pytest.mark.parametrize("title", KEPT)
def test_what_stands_at_one_place_of_every_page_is_kept_where_it_is_no_head(title):
    found = read(KEPT[title]).content
    assert [found.count(f"{title} {name}") for name in NAMES[: len(KEPT[title])]] == [1] * len(KEPT[title])


def small(*lines):
    """Lines below the text of the first six pages, all but the last."""
    return lambda page: b"".join(
        place(line(page), 60, 500 - 9 * row, size=8, font="N") for row, line in enumerate(lines) if page < 6
    )


NOTES = {
    "one": small(lambda page: f"{3 * page} See the register of {NAMES[page]}."),
    "two, in brackets": small(lambda page: f"[1] {NAMES[page]} is lost", lambda page: f"[2] {NAMES[page + 1]} is not"),
    "a caption": small(lambda page: f"Figure {3 * page}. The walls of {NAMES[page]}"),
}


@pytest.mark.parametrize("kind", NOTES)
def test_notes_below_a_page_stand_in_the_sentence_that_runs_over_it_as_notes(kind):
    document = read(pages(NOTES[kind]))
    assert " ".join(read_text(document.content).without_notes().split()) == STORY
    assert document.content.count("[Note: ") == len(read_text(document.content).notes) == 6
    assert all(NAMES[page] in document.content for page in range(6))


def test_a_large_first_letter_belongs_to_its_word():
    for initial, rest, read_as in (
        ("T", "he caravan left", "The caravan left"),
        ("A", "t dawn the caravan, at noon the camels left", "At dawn the caravan, at noon the camels left"),
        ("A", "caravan left. The next caravan", "A caravan left. The next caravan"),
    ):
        page = place(initial, 60, 680, size=40, font="N") + place(rest, 92, 700)
        assert read([page]).content == read_as
    chinese = {"font": "S", "encoding": "gbk"}
    page = place("安", 60, 680, size=40, **chinese) + place("西都护府", 102, 700, **chinese)
    assert read([page], S=SONG).content == "安西都护府"


def test_readings_beside_han_characters_are_no_text():
    lines = ["安禄山は范陽で兵を挙げた。その年の冬、", "郭子儀は都を取り戻した。"]
    page = b"".join(
        place(line, 60, 700 - 24 * row, font="J", encoding="cp932", size=12)
        + place(kana, 60, 712 - 24 * row, font="J", encoding="cp932", size=5)
        for row, (line, kana) in enumerate(zip(lines, ("あんろくざん", "かくしぎ"), strict=True))
    )
    assert read([page], J=MINCHO).content == "".join(lines)
    caption = place("はじめに", 60, 760, font="J", encoding="cp932", size=5)
    assert read([caption + page], J=MINCHO).content.startswith("はじめに")


def test_a_number_that_is_broken_between_chinese_lines_is_one_number():
    lines = ["天宝六载高仙芝用布帛换来粮食89", "3石，又在城外用六匹马换来铜钱。"]
    page = b"".join(place(line, 60, 700 - 16 * row, font="S", encoding="gbk") for row, line in enumerate(lines))
    assert "换来粮食893石" in read([page], S=SONG).content
    english = b"".join(place(line, 60, 700 - 16 * row) for row, line in enumerate(["It fell in 747", "12 men came."]))
    assert read([english]).content == "It fell in 747 12 men came."


def test_numbers_of_lines_between_two_columns_are_no_text():
    lines = textwrap.wrap(STORY, 30)
    rows = [[lines[row], lines[row + 30], row + 1] for row in range(30)]
    page = b"".join(
        justified(left, 700 - 12 * row, width=30, size=9)
        + (place(str(number), 238, 700 - 12 * row, size=7, font="N") if number % 5 == 0 else b"")
        + justified(right, 700 - 12 * row, x=260, width=30, size=9)
        for row, (left, right, number) in enumerate(rows)
    )
    assert " ".join(read([page]).content.split()) == " ".join(lines[:60])


CELLS = {
    "rows of a table": [f"{number}|{name}|{number * 117}" for number, name in enumerate(NAMES, 1)],
    "contents": [f"{number}|The road to the well of {name} {'.' * 20} {number * 9}" for number, name in enumerate(NAMES)],
    "every fifth year": [
        f"{year}|In the winter a flood reached {name}." for year, name in zip(range(640, 700, 5), NAMES, strict=True)
    ],
    "items": [f"{number}|{name * number}, of which nothing is left" for number, name in enumerate(NAMES[:6], 1)],
}  # fmt: skip


@pytest.mark.parametrize("kind", CELLS)
def test_numbers_that_count_no_lines_are_kept(kind):
    page = b"".join(
        place(cell, (40, 70, 300)[column], 700 - 14 * row, font="N")
        for row, cells in enumerate(CELLS[kind])
        for column, cell in enumerate(cells.split("|"))
    )
    read_words = read([page]).content.split()
    assert read_words == " ".join(CELLS[kind]).replace("|", " ").split()


def test_what_is_filled_into_a_form_is_read():
    field = b"/Annots[<</Type/Annot/Subtype/Widget/FT/Tx/T(envoy)/V(Gao Xianzhi)/Rect[200 690 400 710]/DA(/Helv 10 Tf 0 g)>>]"
    form = b"/AcroForm<</Fields[]/NeedAppearances true/DA(/Helv 10 Tf 0 g)/DR<</Font<</Helv %s>>>>>>" % HELVETICA
    data = build_pdf([place("Name of the envoy:", 60, 700)], page=field, catalog=form)
    [document] = PDFToDocument().run([ByteStream(data, meta={"file_path": "a.pdf"})])["documents"]
    assert document.content.split() == "Name of the envoy: Gao Xianzhi".split()


def test_time_grows_with_what_stands_around_the_text():
    around = b"".join(place("x", 60 + at, 800 - at, font="N") for at in range(40))
    assert_grows_with_length(read, lambda count: [around + page for page in pages()] * (count // 10), 80)


def test_arabic_that_a_file_writes_from_right_to_left_is_read_so():
    words = ["كان", "الوالي", "هنا"]
    letters = dict(enumerate(dict.fromkeys("".join(words)), start=1))
    codes = {letter: code for code, letter in letters.items()}
    page, at = b"", 300
    for word in words:
        # Each letter stands to the left of the one before.
        page += b"BT /F 11 Tf %d 700 Td [%s] TJ ET\n" % (at, b"800".join(b"<%02x>" % codes[letter] for letter in word))
        at -= 6 * len(word) + 3
    font = HELVETICA.replace(b"/Encoding", b"/ToUnicode 3 0 R/Encoding")
    data = build_pdf([page], fonts={"F": font}, to_unicode=to_unicode_map(letters, 1))
    [document] = PDFToDocument().run([ByteStream(data, meta={"file_path": "a.pdf"})])["documents"]
    assert document.content == " ".join(words)


def slanted(content, degrees):
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return b"q %.5f %.5f %.5f %.5f 200 100 cm %sQ\n" % (cos, sin, -sin, cos, content)


@pytest.mark.parametrize(("degrees", "stamp"), [(2, 2), (9, 60), (45, 45), (80, 35), (135, 180), (0, 45), (0, 330)])
def test_text_that_slants_is_read_in_its_order_and_a_stamp_across_it_interrupts_nothing(degrees, stamp):
    stamped = [slanted(place("Confidential draft", 0, -300, size=60), stamp) for _ in pages()]
    for before in (b"", stamped[0]):
        content = read(
            [before + slanted(page, degrees) + (stamped[0] if not before else b"") for page in pages()]
        ).content
        assert " ".join(content.split()) == STORY


def test_a_line_that_slants_alone_is_read():
    heads = b"".join(slanted(place(words, 90 * at, 0), 45) for at, words in enumerate(("Year of loss", "Camels lost")))
    assert read([heads + place("748", 60, 60) + place("41", 200, 60)]).content.split() == (
        "Year of loss Camels lost 748 41".split()
    )
