"""PDFs of every encoding and layout, read to text; what cannot be read is reported."""

import io
import random
import re
from pathlib import Path

import pypdf
import pytest
from haystack.dataclasses import ByteStream
from rapidfuzz.distance import Levenshtein
from tests.doubles.pdf_builder import HELVETICA, build_pdf, cid_font, place, simple_font, to_unicode_map

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
    return (" " if " " in text else "").join(part for _ in range(24) for part in dice.sample(parts, len(parts)))


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
    "names of glyphs and ligatures": (
        ENGLISH.replace("river", "official flow"), simple_font(DIFFERENCES), named_glyphs, 0.5,
    ),
    "own codes with a table": (CHINESE, cid_font("Identity-H", "Identity", TABLE), own_codes, 1),
    "GBK-EUC-H": (CHINESE, cid_font("GBK-EUC-H", "GB1"), coded("gbk"), 1),
    "UniGB-UTF16-H": (CHINESE, cid_font("UniGB-UTF16-H", "GB1"), coded("utf-16-be"), 1),
    "ETen-B5-H": (TAIWANESE, cid_font("ETen-B5-H", "CNS1"), coded("big5"), 1),
    "UniCNS-UTF16-H": (TAIWANESE, cid_font("UniCNS-UTF16-H", "CNS1"), coded("utf-16-be"), 1),
    "90ms-RKSJ-H": (JAPANESE, cid_font("90ms-RKSJ-H", "Japan1"), coded("cp932"), 1),
    "KSCms-UHC-H": (KOREAN, cid_font("KSCms-UHC-H", "Korea1"), coded("cp949"), 1),
    "GBK in a Latin font": (CHINESE, COURIER, coded("gbk"), 1.2),
}  # fmt: skip


class Setter:
    """Sets a text in columns: `columns` of them, line by line over the page or one column after the other."""

    def __init__(self, encoding, *, columns=1, by_row=False, words=False, heads=False, turned=False):
        self.text, self.font, self.code, self.wide = ENCODINGS[encoding]
        self.text = varied(self.text)
        self.columns, self.by_row, self.words, self.heads, self.turned = columns, by_row, words, heads, turned

    def pages(self):
        text, size = self.text, 10
        width = (480 - 24 * (self.columns - 1)) / self.columns
        lines = list(self._lines(text, int(width / (self.wide * size))))
        height = 24
        on_page = height * self.columns
        for number, start in enumerate(range(0, len(lines), on_page)):
            columns = [lines[start:][at * height : (at + 1) * height] for at in range(self.columns)]
            cells = [
                (60 + at * (width + 24), 740 - 15 * row, line)
                for at, column in enumerate(columns)
                for row, line in enumerate(column)
            ]
            if self.by_row:
                cells.sort(key=lambda cell: (-cell[1], cell[0]))
            if self.heads:
                cells = [(60, 800, self.text[:8]), *cells]
            content = b"".join(self._placed(line, x, y, size) for x, y, line in cells)
            yield content + (place(str(number + 7), 300, 40, font="N") if self.heads else b"")

    def _lines(self, text, characters):
        if " " not in text:
            yield from (text[at : at + characters] for at in range(0, len(text), characters))
            return
        line = ""
        for word in text.split():
            if line and len(line) + 1 + len(word) > characters:
                yield line
                line = word
            else:
                line = f"{line} {word}".strip()
        yield line

    def _placed(self, line, x, y, size):
        if not self.words:
            parts = [(0, line)]
        else:
            parts, at = [], 0
            for word in line.split(" "):
                parts.append((at, word))
                at += len(word) + 1
        spread = 0.62 if self.wide == 0.5 else self.wide
        placed = b"".join(place(self.code(part), x + at * spread * size, y, size=size) for at, part in parts)
        return b"q 0 1 -1 0 842 0 cm " + placed + b"Q\n" if self.turned else placed


LAYOUTS = {
    "one column": {},
    "every word placed by itself": {"words": True},
    "two columns, one after the other": {"columns": 2},
    "two columns, row by row": {"columns": 2, "by_row": True},
    "running heads and page numbers": {"heads": True},
    "three columns, row by row": {"columns": 3, "by_row": True},
    "turned by a quarter": {"turned": True},
}


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
    setter = Setter(encoding, **LAYOUTS[layout])
    data = build_pdf(setter.pages(), fonts={"F": setter.font, "N": HELVETICA}, to_unicode=TABLE)
    found, right = squeezed(text_of(data)), squeezed(setter.text)
    assert 1 - Levenshtein.distance(found, right) / len(right) >= 0.99
