"""PDFs of every encoding and layout, read to text; what cannot be read is reported."""

import io
import random
import re
import textwrap

import pypdf
import pytest
from haystack.dataclasses import ByteStream
from rapidfuzz.distance import Levenshtein
from tests.doubles.pdf_builder import HELVETICA, build_pdf, cid_font, place, simple_font, to_unicode_map
from tests.doubles.processor_time import assert_grows_with_length

from shiguan.claims.citations import cited_place
from shiguan.engine.answer_object import reference_list
from shiguan.ingest.parent_child_splitter import ParentChildSplitter
from shiguan.ingest.pdf_to_document import PDFToDocument
from shiguan.ingest.source_stamper import SourceStamper

ENGLISH = (
    "The caravan left the western gate at dawn and by noon had reached the second well, where the guide told them that "
    "the river could not be crossed before the month of thaw. The ferry had been burned in 748 by raiders of the "
    "northern tribes, and nobody had dared to rebuild it since the prefect was murdered on the road to Kucha. They "
    "therefore turned south and followed the dry bed of a stream for eleven days, buying water from shepherds. "
)
FRENCH = ENGLISH.replace("prefect", "préfet").replace("second", "séparé").replace("guide", "hôtelier")
CHINESE = (
    "天宝六载，安西都护府在龟兹，节度使高仙芝引兵过葱岭。军行百余日，至连云堡，其夜大雪，冻者三百人。驿站每日换马两次，烽燧每夜举火三次。"
    "城中粮尽，将士掘鼠而食，犹不肯降。使者自长安来，赐绢五千匹，众皆呼万岁。"
)
TAIWANESE = (
    "天寶六載，安西都護府在龜茲，節度使高仙芝引兵過蔥嶺。軍行百餘日，至連雲堡，其夜大雪，凍者三百人。驛站每日換馬兩次，烽燧每夜舉火三次。"
    "城中糧盡，將士掘鼠而食，猶不肯降。使者自長安來，賜絹五千匹，眾皆呼萬歲。"
)
JAPANESE = (
    "安禄山は范陽で兵を挙げた。その年の冬、洛陽は落ち、皇帝は都を捨てて蜀へ向かった。道中の宿場では馬も食糧も尽きていた。"
    "郭子儀は北の兵を集め、翌年の秋に都を取り戻した。戦いは八年続き、多くの村が失われた。"
)
KOREAN = (
    "고선지는 군사를 이끌고 총령을 넘었다. 그날 밤 큰 눈이 내려 삼백 명이 얼었다. 사신은 장안에서 와서 비단 오천 필을 내렸다. "
    "성 안의 양식이 떨어졌으나 장수들은 끝내 항복하지 않았다. "
)
COURIER = HELVETICA.replace(b"Helvetica", b"Courier")
NAMES = "space comma period quoteright zero one two three four five six seven eight nine fi fl ffi".split()
_LATIN = [*" ,.’0123456789", "fi", "fl", "ffi"]
DIFFERENCES = "<</Differences[1" + "".join(f"/{name}" for name in NAMES) + "]>>"
CODES = {text: bytes([code]) for code, text in enumerate(_LATIN, start=1)}
OWN = {character: code for code, character in enumerate(dict.fromkeys(CHINESE + "𠮷"), start=1)}
TABLE = to_unicode_map({code: character for character, code in OWN.items()}, 2)


def varied(text):
    """A longer text of the same words, none of which comes back at the same place of a page."""
    parts, dice = text.split() if " " in text else re.findall("[^，。]*[，。]", text), random.Random(7)
    return (" " if " " in text else "").join(part for _ in range(12) for part in dice.sample(parts, len(parts)))


def own_codes(text):
    return b"".join(OWN[character].to_bytes(2, "big") for character in text)


def named_glyphs(text):
    """Codes of the font of differences, with ligatures where a typesetter has them."""
    for ligature in ("ffi", "fi", "fl"):
        text = text.replace(ligature, f"\0{ligature}\0")
    return b"".join(
        CODES[part] if part in ("ffi", "fi", "fl") else b"".join(CODES.get(c, c.encode()) for c in part)
        for part in text.split("\0")
    )


def coded(encoding):
    return lambda text: text.encode(encoding)


# A text, the font that draws it, its bytes in that font, the width of a character as a share of the font's size.
ENCODINGS = {
    "WinAnsi": (FRENCH, HELVETICA, coded("cp1252"), 0.5),
    "MacRoman": (FRENCH, simple_font("/MacRomanEncoding"), coded("mac_roman"), 0.5),
    "Standard": (ENGLISH, simple_font("/StandardEncoding"), coded("ascii"), 0.5),
    "names of glyphs and ligatures": (ENGLISH.replace("river", "official flow"), simple_font(DIFFERENCES), named_glyphs, 0.5),
    "own codes with a table": (CHINESE, cid_font("Identity-H", "Identity", TABLE), own_codes, 1),
    "GBK-EUC-H": (CHINESE, cid_font("GBK-EUC-H", "GB1"), coded("gbk"), 1),
    "UniGB-UTF16-H": (CHINESE, cid_font("UniGB-UTF16-H", "GB1"), coded("utf-16-be"), 1),
    "ETen-B5-H": (TAIWANESE, cid_font("ETen-B5-H", "CNS1"), coded("big5"), 1),
    "UniCNS-UTF16-H": (TAIWANESE, cid_font("UniCNS-UTF16-H", "CNS1"), coded("utf-16-be"), 1),
    "90ms-RKSJ-H": (JAPANESE, cid_font("90ms-RKSJ-H", "Japan1"), coded("cp932"), 1),
    "KSCms-UHC-H": (KOREAN, cid_font("KSCms-UHC-H", "Korea1"), coded("cp949"), 1),
    "GBK in a Latin font": (CHINESE, COURIER, coded("gbk"), 1.2),
}  # fmt: skip


def set_in(layout, encoding):
    """A text of an encoding and its pages in a layout: line by line over the page, or one column after the other."""
    text, _, code, wide = ENCODINGS[encoding]
    text, size, height, columns = varied(text), 10, 24, layout.get("columns", 1)
    width = (480 - 24 * (columns - 1)) / columns
    most = int(width / (wide * size))
    lines = textwrap.wrap(text, most) if " " in text else re.findall(f".{{1,{most}}}", text)
    pages = []
    for first in range(0, len(lines), height * columns):
        places = [(60 + at * (width + 24), 740 - 15 * row) for at in range(columns) for row in range(height)]
        cells = list(zip(lines[first : first + height * columns], places, strict=False))
        if layout.get("by_row"):
            cells.sort(key=lambda cell: (-cell[1][1], cell[1][0]))
        if layout.get("heads"):
            cells = [(text[:8], (60, 800)), *cells]
        parts = [
            (code(part[0]), x + part.start() * (0.62 if wide == 0.5 else wide) * size, y)
            for line, (x, y) in cells
            for part in re.finditer(r"\S+" if layout.get("words") else ".+", line)
        ]
        page = b"".join(place(data, x, y, size=size) for data, x, y in parts)
        page += place(str(len(pages) + 7), 300, 40, font="N") if layout.get("heads") else b""
        pages.append(b"q 0 1 -1 0 842 0 cm " + page + b"Q\n" if layout.get("turned") else page)
    return text, pages


LAYOUTS = {
    "one column": {}, "every word placed by itself": {"words": True},
    "two columns, one after the other": {"columns": 2}, "two columns, row by row": {"columns": 2, "by_row": True},
    "running heads and page numbers": {"heads": True}, "three columns, row by row": {"columns": 3, "by_row": True},
    "turned by a quarter": {"turned": True},
}  # fmt: skip


def read(data, **meta):
    result = PDFToDocument().run([ByteStream(data, meta={"file_path": "a.pdf", **meta})])
    return result["documents"], result["skipped"], result["warnings"]


def text_of(data):
    [document], skipped, _ = read(data)
    assert skipped == []
    return document.content


def squeezed(text):
    return "".join(text.split())


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_is_read_in_every_layout(encoding, layout):
    text, pages = set_in(LAYOUTS[layout], encoding)
    data = build_pdf(pages, fonts={"F": ENCODINGS[encoding][1], "N": HELVETICA}, to_unicode=TABLE)
    found, right = squeezed(text_of(data)), squeezed(text)
    assert 1 - Levenshtein.distance(found, right) / len(right) >= 0.99


def pages_of(*texts, encoding="cp1252", font="F"):
    """Pages of one line each."""
    return [place(text, 60, 700, encoding=encoding, font=font) for text in texts]


# What a page may have that no table explains: its bytes, the font that draws them.
SHIFTED = "".join(chr(ord(character) - 29) for character in ENGLISH).encode("utf-16-be")
UNREADABLE = {
    "names of glyphs": (bytes(range(97, 123)),
        simple_font("<</Differences[97" + "".join(f"/g{130 + code}" for code in range(26)) + "]>>")),
    "names of glyphs that are no letters": (bytes(range(1, 31)),
        simple_font("<</Differences[1" + "".join(f"/g{130 + code}" for code in range(30)) + "]>>")),
    "own codes without a table": (own_codes(CHINESE), cid_font("Identity-H", "Identity")),
    "own codes that are letters moved along": (SHIFTED, cid_font("Identity-H", "Identity")),
    "a table of private characters": (own_codes(CHINESE), cid_font("Identity-H", "Identity", TABLE)),
    "bytes that no encoding explains": (bytes(range(0xC0, 0xFF)) * 2, HELVETICA),
    "Japanese bytes of which a Latin font lacks some": (JAPANESE.encode("cp932"), HELVETICA),
    "Chinese bytes in a font with Adobe's own encoding": (CHINESE.encode("gbk"), simple_font("/StandardEncoding")),
}  # fmt: skip


@pytest.mark.parametrize("kind", UNREADABLE)
def test_every_page_that_cannot_be_decoded_is_reported_and_not_read(kind):
    data, font = UNREADABLE[kind]
    private = to_unicode_map({code: chr(0xE000 + code) for code in OWN.values()}, 2)
    pages = [place(ENGLISH[:90], 60, 700, font="N"), place(data, 60, 700), place(ENGLISH[90:180], 60, 700, font="N")]
    built = build_pdf([*pages, place(data, 60, 700)], fonts={"F": font, "N": HELVETICA}, to_unicode=private)
    [document], skipped, warnings = read(built)
    assert (squeezed(document.content), skipped) == (squeezed(ENGLISH[:180]), [])
    undecoded = "pages have text that cannot be decoded"
    assert warnings == [f"a.pdf: 2 of 4 {undecoded} (2, 4); run text recognition (OCR) on the file."]
    documents, [refused], _ = read(build_pdf([place(data, 60, 700)], fonts={"F": font}, to_unicode=private))
    assert (documents, refused["cause"]) == ([], f"1 of 1 {undecoded} (1)")


@pytest.mark.parametrize(("text", "encoding"), [(TAIWANESE, "big5"), (JAPANESE, "euc_jp"), (KOREAN, "cp949")])
def test_bytes_of_an_asian_encoding_in_a_latin_font_are_decoded(text, encoding):
    lines = [text[at : at + 20] for at in range(0, len(text), 20)]
    page = b"".join(place(line, 60, 700 - 15 * row, encoding=encoding) for row, line in enumerate(lines))
    [document], _, [warning] = read(build_pdf([page], fonts={"F": COURIER}))
    assert squeezed(document.content) == squeezed(text)
    assert "which was guessed" in warning


def test_half_a_character_costs_nothing_but_itself():
    table = to_unicode_map({1: "a", 2: "b", 3: "c", 4: "𠮷"}, 1).replace(b"<0062>", b"<d92e>")
    font = HELVETICA.replace(b"/Encoding", b"/ToUnicode 3 0 R/Encoding")
    many = b"\1\3" * 10
    [document], _, warnings = read(build_pdf([place(many + b"\2\3\4", 60, 700)], fonts={"F": font}, to_unicode=table))
    assert document.content == "ac" * 10 + "\ufffdc𠮷"
    assert warnings == ["a.pdf: 1 characters cannot be decoded and are written as \ufffd."]


def locked(data, **passwords):
    writer, buffer = pypdf.PdfWriter(clone_from=io.BytesIO(data)), io.BytesIO()
    writer.encrypt(**passwords)
    writer.write(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("algorithm", ["RC4-40", "RC4-128", "AES-128", "AES-256"])
def test_a_file_that_opens_without_a_password_is_read_and_another_refused(algorithm):
    data = build_pdf(pages_of("The ferry had been burned."))
    owned = locked(data, user_password="", owner_password="owner", algorithm=algorithm)
    assert text_of(owned) == "The ferry had been burned."
    documents, [refused], _ = read(locked(data, user_password="secret", algorithm=algorithm))
    assert (documents, refused["source"], refused["cause"]) == ([], "a.pdf", "the PDF is locked by a password")
    assert refused["next_step"] == "Remove the password and ingest it again"


@pytest.mark.parametrize("data", [b"%PDF-1.4\ngarbage", build_pdf([])])
def test_a_file_that_is_damaged_or_empty_says_so(data):
    documents, [refused], _ = read(data)
    assert (documents, refused["cause"]) == ([], "the PDF is damaged or has no pages")


def raised(*parts, y=700):
    """A line in which every second part is a superscript."""
    content = b"BT 60 %d Td " % y
    for number, part in enumerate(parts):
        content += (b"/F 6 Tf 5 Ts" if number % 2 else b"/F 11 Tf 0 Ts") + b" (%s) Tj " % part.encode()
    return content + b"ET\n"


def spread(text, step, **more):
    return b"".join(place(letter, 60 + step * at, 700, **more) for at, letter in enumerate(text))


def in_columns(height):
    """Vertical writing, in pieces of some characters."""
    return b"".join(
        place(VERTICAL[at : at + height], 500 - 20 * (at // 8), 700 - 12 * (at % 8), encoding="gbk")
        for at in range(0, len(VERTICAL), height)
    )


UTF16, SPACED = {"F": cid_font("UniGB-UTF16-H", "GB1")}, "THEROADSOFTHEWEST"
VERTICAL = "安西都护府在龟兹节度使高仙芝引兵过葱岭军行百余日至连云堡其夜大雪冻者三百人"
BROKEN = [
    "The well-known prefect was mur-", "dered on the road, and the well-", "known ferry of the Anglo-",
    "Saxon guide was burned in 747-", "748 by a soft\u00ad", "ly spoken man with a re-", "markable beard.",
]  # fmt: skip
TABLE_ROWS = ["Town|Prefect in 747|Horses", "Kucha|Gao Xianzhi|2,400", "Khotan|Feng Changqing|900"]
LETTERS = simple_font(f"<</Differences[32{''.join(f'/c{code}' for code in range(32, 127))}]>>")
# What a page draws, what else its file has, and the text that is read.
SEEN = {
    "raised numbers": (
        raised("An Lushan rose in 755", "1", " with 150,000", "2", " men; the city had 48", "13", " gates.", "4")
        + raised("The plain had 40 km", "2", " and 10", "6", " people, the 2", "nd", " of them a king.", y=680), {},
        "An Lushan rose in 755[1] with 150,000[2] men; the city had 48[13] gates.[4] "
        "The plain had 40 km² and 10⁶ people, the 2nd of them a king.",
    ),
    "lowered letters of several terms": (
        raised("Let x", "n+1", " be H", "2", "O and T", "max", ".").replace(b"5 Ts", b"-3 Ts"), {}, "Let x_(n+1) be H2O and Tmax.",
    ),
    "words broken at the end of a line": (
        b"".join(place(line, 60, 700 - 15 * row) for row, line in enumerate(BROKEN)), {},
        "The well-known prefect was murdered on the road, and the well-known ferry of the Anglo-Saxon guide was burned "
        "in 747-748 by a softly spoken man with a remarkable beard.",
    ),
    "lines that the file has upwards": (
        place("It was taken,", 60, 700) + place("and then burned.", 60, 686), {"page": b"/Rotate 90"}, "It was taken, and then burned.",
    ),
    "glyphs that are numbered like letters": (place(ENGLISH[:100], 60, 700), {"fonts": {"F": LETTERS}}, ENGLISH[:100].strip()),
    "letters that are spaced out": (spread(SPACED, 30), {}, " ".join(SPACED)),
    "Han characters that are spread": (spread("天宝十四载，安禄山反。", 14, encoding="utf-16-be"), {"fonts": UTF16}, "天宝十四载，安禄山反。"),
    "words between Han characters": (spread("安西 都护", 14, encoding="utf-16-be"), {"fonts": UTF16}, "安西 都护"),
    "Korean that is spread": (spread("안서도호", 14, encoding="utf-16-be"), {"fonts": UTF16}, "안 서 도 호"),
    "Han characters far apart": (spread("安西都护", 28, encoding="utf-16-be"), {"fonts": UTF16}, "安 西 都 护"),
    "radicals for whole characters": (
        b"BT /F 11 Tf 72 700 Td <00010002000300040005> Tj ET", {
            "fonts": {"F": cid_font("Identity-H", "Identity", b"x")}, "to_unicode": to_unicode_map(dict(enumerate("⼈⻄⻢⺠ﬁ", start=1)), 2)
        }, "人西马民fi",
    ),
    "rows of a table": (
        b"".join(place(cell, 60 + 140 * at, 700 - 14 * row) for row, own in enumerate(TABLE_ROWS) for at, cell in enumerate(own.split("|"))),
        {}, "\n".join(TABLE_ROWS).replace("|", " "),
    ),
    "columns of vertical writing": (in_columns(8), {"fonts": {"F": cid_font("GBK-EUC-V", "GB1")}}, VERTICAL),
    "columns letter by letter": (in_columns(1), {"fonts": {"F": cid_font("GBK-EUC-H", "GB1")}}, VERTICAL),
}  # fmt: skip


@pytest.mark.parametrize(("page", "more", "text"), SEEN.values(), ids=SEEN)
def test_a_page_is_read_as_it_is_seen(page, more, text):
    assert text_of(build_pdf([page], **more)) == text


def test_a_page_that_has_nothing_but_a_line_keeps_it():
    text = text_of(build_pdf(place(f"Potato {number}", 60, 700) + place(str(number), 300, 40) for number in range(5)))
    assert text.split() == "Potato 0 Potato 1 Potato 2 Potato 3 Potato 4".split()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_book_is_read_word_for_word_over_its_page_breaks(language):
    """Running heads and page numbers change sides, and English lines end within words, on and between pages."""
    if language == "zh":
        text, encoding, font, heads = varied(CHINESE), "gbk", cid_font("GBK-EUC-H", "GB1"), ("安西行纪", "卷三　军粮")
        lines = re.findall(".{1,36}", text)
    else:
        text, encoding, font = varied(ENGLISH), "cp1252", HELVETICA
        heads = ("ROADS OF THE WEST", "Chapter Three: The Price of Horses")
        lines = textwrap.wrap(text, 72)
        for at, line in enumerate(lines[1:]):
            word = line.split()[0]
            if word.isalpha() and len(word) > 5:
                lines[at] += f" {word[:3]}-"
                lines[at + 1] = lines[at + 1][3:]
    pages = [
        place(heads[number % 2], 60 + 200 * (number % 2), 800, size=9, encoding=encoding)
        + b"".join(place(line, 60, 760 - 16 * row, encoding=encoding) for row, line in enumerate(lines[at : at + 6]))
        + place(f"- {41 + number} -", 60 + 400 * (number % 2), 40, size=9, font="N")
        for number, at in enumerate(range(0, len(lines), 6))
    ]
    [document], _, warnings = read(build_pdf(pages, fonts={"F": font, "N": HELVETICA}))
    assert (" ".join(document.content.split()), warnings) == (text, [])
    assert [label for _, label in document.meta["pages"]] == [str(41 + number) for number in range(len(pages))]
    assert len(pages) > 4


def test_the_labels_of_pages_come_from_the_file_else_from_what_is_printed():
    texts = ["Preface of a book.", "It goes on here.", "The first chapter.", "It ends in Kucha."]
    feet = [place(number, 300, 40, font="F") for number in ("vii", "viii", "9", "10")]
    printed = build_pdf(place(text, 60, 700) + foot for text, foot in zip(texts, feet, strict=True))
    labels = b"/PageLabels<</Nums[0<</S/r/St 3>>2<</S/D/St 63>>]>>"
    own = build_pdf((place(text, 60, 700) for text in texts), catalog=labels)
    for data, expected in ((printed, ["vii", "viii", "9", "10"]), (own, ["iii", "iv", "63", "64"])):
        [document], _, warnings = read(data, source="a.pdf")
        assert (document.content.split(), warnings) == (" ".join(texts).split(), [])
        [parent] = ParentChildSplitter().run(SourceStamper().run([document], tenant_id="t")["documents"])["parents"]
        starts = [parent.content.index(text) for text in texts]
        places = [cited_place(parent, (at, at + 5)) for at in starts]
        assert [one["page"] for one in places] == expected
        assert [one["anchor"]["page"] for one in places] == [1, 2, 3, 4]
        assert all("paragraph" not in one for one in places)
    assert reference_list([{"number": 1, **places[3]}]).endswith(", p. 64 (a.pdf)")


def test_title_and_author_come_from_the_file():
    writer, buffer = pypdf.PdfWriter(clone_from=io.BytesIO(build_pdf(pages_of("Text.")))), io.BytesIO()
    writer.add_metadata({"/Title": "An \u202eatlas", "/Author": "Ann Author; Bo Writer"})
    writer.write(buffer)
    [document], _, _ = read(buffer.getvalue())
    assert document.meta["work"] == {"title": "An atlas", "author": ["Ann Author", "Bo Writer"]}
    # What cannot be decoded of it costs nothing else.
    half = b"<feffd92e0020>"
    data = build_pdf(pages_of("Text."), catalog=b"/PageLabels<</Nums[0<</P%s>>]>>" % half)
    [document], skipped, _ = read(data.replace(b"/Root", b"/Info<</Title%s>>/Root" % half))
    assert (document.content, skipped) == ("Text.", [])


def test_pages_without_text_are_reported():
    [document], _, warnings = read(build_pdf([place("One.", 60, 700), b"", place("Three.", 60, 700), b""]))
    assert document.content == "One. Three."
    assert warnings == ["a.pdf: 2 of 4 pages have no text; run text recognition on the file if they are pictures."]
    assert document.meta["pages"] == [[0, "1"], [5, "2"], [5, "3"], [11, "4"]]


TYPED = b"/Annots[<</Type/Annot/Subtype/%s/Rect[60 60 300 90]/Contents(Burned in 757.)%s>>]"
FILES = b"/Names<</EmbeddedFiles<</Names[(a)<</Type/Filespec/F(a)/EF<</F 3 0 R>>>>]>>>>"


@pytest.mark.parametrize(
    ("entries", "warning"),
    [
        ({"page": TYPED % (b"Text", b"")}, "a.pdf: skipped (not body text): comments (14 characters)."),
        ({"page": TYPED % (b"Highlight", b"")}, "a.pdf: skipped (not body text): comments (14 characters)."),
        ({"page": TYPED % (b"FreeText", b"")}, "a.pdf: skipped (not body text): comments (14 characters)."),
        ({"page": TYPED % (b"FreeText", b"/AP<</N 3 0 R>>")}, None),
        ({"page": TYPED % (b"Link", b"")}, None),
        ({"page": TYPED % (b"Widget", b"")}, None),
        ({"catalog": FILES}, "a.pdf: 1 attached files were not read."),
        ({"catalog": b"/NeedsRendering true/AcroForm<</Fields[]/XFA 3 0 R>>"},
         "a.pdf: its form (XFA) was not read; print it to a new PDF."),
        ({"catalog": b"/AcroForm<</Fields[]>>"}, None),
    ],
)  # fmt: skip
def test_comments_and_files_that_are_not_read_are_told(entries, warning):
    [document], _, warnings = read(build_pdf([place("It stood.", 60, 700)], **entries))
    assert (document.content, warnings) == ("It stood.", [warning] if warning else [])
    assert document.meta.get("left_out") == ({"comments": 14} if "comments" in str(warning) else None)


def test_time_grows_with_the_number_of_pages():
    page = b"".join(place(f"The {row}th caravan left the western gate.", 60, 760 - 14 * row) for row in range(8))

    def pages(count):
        return build_pdf(page + place(str(number), 300, 40) for number in range(count))

    [document], _, _ = read(pages(240))
    assert len(document.meta["pages"]) == 240
    assert_grows_with_length(read, pages, 120)


def test_a_title_over_columns_and_a_number_between_them_belong_to_neither():
    title = "Minutes of the Council of the Western Garrison at Kucha"
    left = "The committee reviewed the|annual report and approved|the budget of nine hundred|silver bars.".split("|")
    right = "In the second matter it was|decided that the old bridge|be taken down.".split("|")
    cells = [(line, x, row) for x, column in ((60, left), (330, right)) for row, line in enumerate(column)]
    rows = [place(line, x, 700 - 16 * row) for line, x, row in sorted(cells, key=lambda cell: (cell[2], cell[1]))]
    page = place(title, 150, 740, size=14) + b"".join(rows) + place("- 12 -", 300, 40)
    assert squeezed(text_of(build_pdf([page]))) == squeezed(" ".join([title, *left, *right, "- 12 -"]))


HIDDEN = place("Printed 9 May", 72, 820)
WHITE = b"1 1 1 rg " + place("Printed 9 May", 72, 600) + b"0 0 0 rg "
BOX = b"60 590 200 40 re f "
OUTSIDE, IN_WHITE = "text outside the page (13 characters)", "white text (13 characters)"


@pytest.mark.parametrize(
    ("operators", "page", "told"),
    [
        (HIDDEN, b"/CropBox[50 50 545 792]", OUTSIDE), (HIDDEN, b"/CropBox[50 50 545 792]/Rotate 90", OUTSIDE),
        (HIDDEN, b"/CropBox[0 0 595 842]", ""),
        (place("Printed 9 May", 20, 600), b"/CropBox[50 50 545 792]", ""),
        (place("Printed 9 May", 600, 600), b"/CropBox[0 0 595 842]", ""),
        (place("Printed 9 May", 72, 900), b"", ""), (b"3 Tr " + place("Printed 9 May", 72, 600), b"", ""),
        (WHITE, b"", IN_WHITE), (b"1 g " + BOX + WHITE, b"", IN_WHITE),
        (BOX.replace(b"590", b"100") + WHITE, b"", IN_WHITE), (BOX + WHITE, b"", ""),
        (WHITE + BOX, b"", ""),  # under a picture of it
        (WHITE.replace(b"1 1 1", b"1 1 0"), b"", ""), (b"3 Tr " + WHITE, b"", ""),
        (b"q 60 590 200 40 re W n " + place("Printed 9 May", 72, 400) + b"Q ", b"", OUTSIDE),
        (b"q 60 390 200 40 re W n 0 0 595 842 re W n " + place("Printed 9 May", 72, 500) + b"Q ", b"", OUTSIDE),
        (b"q 60 390 20 40 re W n " + place("Printed 9 May", 72, 400) + b"Q ", b"", ""),
        (b"q 60 390 20 40 re W n Q " + place("Printed 9 May", 72, 500), b"", ""),
    ],
)  # fmt: skip
def test_text_that_nobody_sees_is_told_and_not_read(operators, page, told):
    assert_read_but(build_pdf([place("The siege of Kucha began.", 72, 700) + operators], page=page), told)


@pytest.mark.parametrize(("box", "told"), [(b"0 0 595 800", OUTSIDE), (b"0 0 595 842", "")])
def test_a_page_is_cropped_by_what_it_inherits(box, told):
    data = build_pdf([place("The siege of Kucha began.", 72, 700) + HIDDEN])
    assert_read_but(data.replace(b"/Type/Pages/Kids", b"/Type/Pages/CropBox[%s]/Kids" % box), told)


def assert_read_but(data, told):
    """The siege is read, and the line beside it is unless something of it is told."""
    [document], _, warnings = read(data)
    seen = {word for word in ("siege", "Printed") if word in document.content}
    assert seen == ({"siege"} if told else {"siege", "Printed"})
    assert warnings == [f"a.pdf: skipped (not body text): {told}."] * bool(told)


@pytest.mark.parametrize(
    "before",
    [
        lambda count: b"0 0 m " + b"600 900 l 0 900 l " * count + b"W n ",
        lambda count: b"0 0 600 900 re W n 0 0 m 0 900 l 600 900 l W n " * count,
        lambda count: b"1 0 0 rg " + b"0 0 1 1 re f " * count + b"1 g ",
    ],
    ids=["points", "shapes", "drawings"],
)
def test_time_grows_with_what_cuts_text_out(before):
    def make(count):
        return build_pdf([before(count) + b"".join(place(f"Line {at}", 72, 800 - at) for at in range(count))])

    assert_grows_with_length(read, make, 400)
