import pytest
from haystack.dataclasses import ByteStream
from tests.doubles.epub_builder import zip_bytes

from shiguan.ingest import source_inspector
from shiguan.ingest.source_inspector import SourceInspector

CHINESE = "天宝十四载，安禄山反于范阳。玄宗幸蜀，太子即位于灵武，改元至德。郭子仪、李光弼将兵讨之，收复两京。" * 3
TRADITIONAL = "天寶十四載，安祿山反於范陽。玄宗幸蜀，太子即位於靈武，改元至德。郭子儀、李光弼將兵討之，收復兩京。" * 3


def inspect(*sources):
    return SourceInspector().run(list(sources))


def inspect_data(data, name="a.txt"):
    return inspect(ByteStream(data, meta={"file_name": name}))


def read(data):
    [source] = inspect_data(data)["sources"]
    return source.data.decode()


REFUSED = {
    "empty text": ("a.txt", b"", "the file is empty", "download"),
    "only white space": ("a.md", b" \n\t\n", "no characters", "download"),
    "only zero bytes": ("a.txt", b"\0" * 100, "no characters", "download"),
    "empty epub": ("a.epub", b"", "the file is empty", "download"),
    "epub that is a pdf": ("a.epub", b"%PDF-1.7\n...", "its name says EPUB, but its content is a PDF", "ending"),
    "pdf that is html": ("a.pdf", b"<!DOCTYPE html><html></html>", "its content is an HTML page", "ending"),
    "pdf that is text": ("a.pdf", b"just words", "its content is something else", "ending"),
    "docx that is an old doc": ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1...", "password-protected Office", "ending"),
    "text that is a zip": ("a.txt", zip_bytes({"a": "b"}), "its content is a zip archive", "ending"),
    "text that is a picture": ("a.txt", b"\x89PNG\r\n\x1a\n....", "a PNG picture", "ending"),
    "markdown that is a program": ("a.md", b"\x7fELF\x02\x01....", "a program", "ending"),
    "jsonl that is gzip": ("a.jsonl", b"\x1f\x8b\x08....", "a gzip archive", "ending"),
    "jsonl.gz that is plain": ("a.jsonl.gz", b'{"text": "x"}', "something else", "ending"),
    "html that is a kindle book": ("a.html", b"x" * 60 + b"BOOKMOBI", "a Kindle book", "ending"),
    "text with zero bytes": ("a.txt", b"abc\0def\0\0ghi" * 20, "NUL bytes", "UTF-8"),
    "text in no encoding": ("a.txt", bytes(range(128, 256)) * 4, "not certain", "UTF-8"),
    "old word file": ("a.doc", b"x", "the kind `.doc`", "DOCX"),
    "kindle file": ("a.mobi", b"x", "the kind `.mobi`", "EPUB"),
    "json file": ("a.json", b"{}", "the kind `.json`", "JSONL"),
    "zip file": ("a.zip", b"PK", "the kind `.zip`", "Unpack"),
    "picture": ("a.png", b"x", "the kind `.png` cannot be read", "Convert it to one of .epub, "),
    "no ending": ("README", b"x", "no known ending", "Convert"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("name", "data", "cause", "step"), REFUSED.values(), ids=REFUSED.keys())
def test_a_bad_file_is_named_with_cause_and_next_step_and_the_others_go_on(tmp_path, name, data, cause, step):
    bad = tmp_path / name
    bad.write_bytes(data)
    good = tmp_path / "good.txt"
    good.write_text("In 755 he rebelled.")
    result = inspect(str(bad), str(good))
    (entry,) = result["skipped"]
    assert entry["source"] == name
    assert cause in entry["cause"]
    assert step in entry["next_step"]
    assert f"{entry['cause']}. {entry['next_step']}.".count(".docx, ") <= 1
    assert not entry["cause"].endswith(".")
    assert [source.meta["file_path"] for source in result["sources"]] == [str(good)]


def test_missing_files_and_folders_are_named(tmp_path):
    result = inspect(tmp_path / "gone.epub", tmp_path, tmp_path / ("long" * 100 + ".txt"), "a\0b.txt")
    assert [entry["cause"].split(" (")[0] for entry in result["skipped"]] == [
        "there is no such file", "it is a folder", "it cannot be opened", "there is no such file",
    ]  # fmt: skip
    assert all(entry["next_step"] for entry in result["skipped"])
    assert result["sources"] == []


def test_a_file_above_the_limit_is_not_even_read(tmp_path, monkeypatch):
    monkeypatch.setattr(source_inspector, "MAX_BYTES", 10)
    big = tmp_path / "big.txt"
    big.write_text("x" * 11)
    (entry,) = inspect(big)["skipped"]
    assert "11 bytes, the limit is 10" in entry["cause"]
    assert "Split it" in entry["next_step"]


@pytest.mark.parametrize(
    ("text", "encoding", "named"),
    [
        (CHINESE, "gb18030", "gb18030"), (CHINESE, "gbk", "gb18030"), (TRADITIONAL, "big5", "big5hkscs"),
        (TRADITIONAL, "gb18030", "gb18030"), (CHINESE, "utf-16", "utf-16"), (CHINESE, "utf-16-le", "utf-16-le"),
        (CHINESE, "utf-16-be", "utf-16-be"), ("In 755 he rebelled.", "utf-16-le", "utf-16-le"),
        ("Le général s'était révolté à Fanyang, où l'été fut très chaud. " * 4, "cp1252", "iso8859-15"),
        ("Der Präfekt wurde über die Brücke geführt – „große Höhe“. " * 4, "cp1252", "Windows-1252"),
        ("Prefekt został zabity na drodze nad rzeką; źdźbło żółte. " * 4, "cp1250", "Windows-1250"),
        ("Vali nehir kıyısındaki yolda öldürüldü; yaz çok kurak geçti. " * 4, "cp1254", "Windows-1254"),
        ("Генерал восстал в Фаньяне, и никто не знал, что будет дальше. " * 4, "cp1251", "Windows-1251"),
        *(("Привет, мир. Как дела?", name, name) for name in ("Windows-1251", "ISO-8859-5", "KOI8-U", "IBM866")),
        ("Все счастливые семьи похожи друг на друга. " * 9, "iso8859_5", "ISO-8859-5"),
        ("КАК ДЕЛА? Приїхали ми до міста вночі.", "koi8_u", "KOI8-U"),
        *(("مرحبا بالعالم. كيف حالك اليوم؟", name, name) for name in ("ISO-8859-6", "Windows-1256")),
        ("שלום עולם, מה שלומך?", "iso8859_8", "Windows-1255"),
        ("Καλημέρα κόσμε, τι κάνεις;", "iso8859_7", "Windows-1253"),
        ("吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 3, "shift_jis", "cp932"),
        ("髙橋さんと﨑山さんは㈱ナカニシの①番である。名前はまだ無い。" * 3, "cp932", "cp932"),
        ("吾輩は猫である。名前はまだ無い。" * 3, "iso2022_jp", "iso2022-jp-ext"),
        ("고선지는 군사를 이끌고 총령을 넘었다. " * 2, "iso2022_kr", "iso2022-kr"),
        ("安禄山，营州柳城杂种胡人也。", "hz", "hz"),
    ],
)  # fmt: skip
def test_text_in_another_encoding_is_recoded_with_a_warning(tmp_path, text, encoding, named):
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode(encoding))
    result = inspect(path)
    assert result["sources"][0].data.decode() == text
    (warning,) = result["warnings"]
    assert warning.startswith(f"a.txt: read as {named}")


def test_utf8_passes_byte_by_byte_and_without_its_mark(tmp_path):
    for name, data in {"a": "史\r\n官".encode(), "b": b"\xef\xbb\xbf" + "史官".encode(), "c": halves("𠀀")}.items():
        (tmp_path / f"{name}.txt").write_bytes(data)
    result = inspect(*(tmp_path / f"{name}.txt" for name in "abc"))
    assert [source.data.decode() for source in result["sources"]] == ["史\r\n官", "史官", "𠀀"]
    assert result["warnings"] == []


def test_a_page_that_states_its_encoding_is_believed(tmp_path):
    for charset, encoding, words in (
        ("gb2312", "gb2312", "史官"),
        ("ISO-8859-1", "cp1252", "He rose – “at once” – in the café."),
        ("latin1", "latin1", "A café \x81 \x8d."),
        ("iso_8859-9", "cp1254", "“Şehir” düştü"),
        ("tis-620", "cp874", "“ม้า”"),
        ("Shift_JIS", "cp932", "髙橋①"),
        ("euc-kr", "cp949", "똠방"),
    ):
        page = f'<html><head><meta charset="{charset}"></head><body>{words}</body></html>'
        (tmp_path / "a.html").write_bytes(page.encode(encoding))
        assert inspect(tmp_path / "a.html")["sources"][0].data.decode() == page


def test_sources_carry_type_path_and_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("# A")
    (source,) = inspect("a.md")["sources"]
    assert source.mime_type == "text/markdown"
    assert source.meta == {"file_path": "a.md", "source_key": str((tmp_path / "a.md").resolve())}


def test_a_byte_stream_is_known_by_its_name_or_type():
    named = ByteStream(b"words", meta={"file_name": "a.txt", "shelf": 3})
    typed = ByteStream(b"words", meta={"file_name": "note"}, mime_type="text/plain")
    result = inspect(named, typed, ByteStream(b"words"))
    assert [s.meta for s in result["sources"]] == [
        {"file_path": "a.txt", "source_key": "a.txt", "shelf": 3},
        {"file_path": "note", "source_key": "note"},
    ]
    assert "has no name" in result["skipped"][0]["cause"]


def test_a_file_that_is_named_twice_is_read_once(tmp_path):
    (tmp_path / "a.txt").write_text("words")
    result = inspect(tmp_path / "a.txt", f"{tmp_path}/../{tmp_path.name}/a.txt")
    assert len(result["sources"]) == 1
    assert result["warnings"] == ["a.txt: listed twice; read once."]


NOVEL = "第一章 安西都护府\r\n\r\n节度使高仙芝引兵过葱岭，军行百余日，至连云堡。其夜大雪，士卒冻者三百人。\r\n" * 20


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-16"])
def test_a_damaged_place_costs_one_character_and_is_named_with_its_line(encoding):
    lines = NOVEL.encode(encoding)
    damage = b"\x00\xdc" if encoding == "utf-16" else b"\xff"
    data = lines + damage + "末句：印信藏在铁匣里。".encode(encoding).removeprefix(b"\xff\xfe")
    result = inspect_data(data)
    [source] = result["sources"]
    assert source.data.decode().replace("\ufffd", "") == NOVEL + "末句：印信藏在铁匣里。"
    assert f"a.txt: 1 places are not {encoding} and are shown as \ufffd, the first in line 61." in result["warnings"]


CAT = "吾輩は猫である。名前はまだ無い。\n" * 30
PREFECT = "Le préfet a été tué à côté de la rivière; l'été fut très sec. " * 20
CAFE = "The café by the gate was small. " * 40
HAN = "安禄山者营州柳城胡也本姓康母阿史德为觋居突厥中祷子于轧荦山虏所谓斗战神者"
RULE = "-" * 55


def halves(text):
    """Each character beyond the first plane as two, of three bytes each."""
    units = text.encode("utf-16-be")
    pairs = (units[at : at + 2].decode("utf-16-be", "surrogatepass") for at in range(0, len(units), 2))
    return "".join(pairs).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    ("data", "right"),
    [
        # As a copy, a disk or an old system ended it.
        (NOVEL.encode()[:-3], NOVEL[:-3] + "\ufffd"), (NOVEL.encode("utf-16-le")[:-1], NOVEL[:-1] + "\ufffd"),
        (CHINESE.encode("gbk") + b"\x1a", CHINESE), (NOVEL.encode() + b"\0" * 512, NOVEL),
        # A damaged place costs one character, and other accents nothing.
        *((CAT.encode("cp932") + damage + b"\n" + CAT.encode("cp932"), f"{CAT}\ufffd\n{CAT}") for damage in (b"\xff", b"\xfe", b"\xa0", b"\x80")),
        (CAFE.encode("cp1252"), CAFE),
        (PREFECT.encode("cp1252").replace(b"tr\xe8s", b"tr\x81s", 1), PREFECT.replace("très", "tr\ufffds", 1)),
        (halves("He wrote 𠀀 and 😀."), "He wrote 𠀀 and 😀."),
        # Lines of an old Macintosh, codes of terminals, wide characters without a mark.
        (b"One.\r\rTwo,\rthree.\r", "One.\n\nTwo,\nthree.\n"), (b"One.\r\nTwo.\r\r\n", "One.\r\nTwo.\r\r\n"),
        (b"\x1b[1mHe rose\x1b[0m in 755.\x1b[2K", "He rose in 755."),
        (b"H\x08He\x08e _\x08r_\x08o_\x08s_\x08e in 755.", "He rose in 755."), (b"s~{ab}~{cd~}; ~~x~~", "s~{ab}~{cd~}; ~~x~~"),
        (HAN.encode("utf-16-le"), HAN),
        # What Aozora says of its notation is left out.
        (f"吾輩は猫である\n夏目漱石\n\n{RULE}\n【テキスト中に現れる記号について】\n\n《》：ルビ\n{RULE}\n\n　吾輩《わがはい》は猫である。".encode(),
         "吾輩は猫である\n夏目漱石\n\n\n　吾輩は猫である。"),
    ],
)  # fmt: skip
def test_a_text_is_read_as_it_was_meant(data, right):
    assert read(data) == right


def test_one_zero_byte_costs_nothing_else():
    data = NOVEL.encode().replace(b"\r\n", b"\0\r\n", 1)
    result = inspect_data(data)
    assert result["sources"][0].data.decode() == NOVEL
    assert result["warnings"] == ["a.txt: 1 NUL characters were removed."]


@pytest.mark.parametrize(
    "data",
    [
        NOVEL.encode()[:900] + b"\xff" * 12,
        NOVEL.encode()[:900] + b"\xff \xfe" * 8,
        halves("史官作𪚥") + b"\xff\xfe" * 9,
    ],
    ids=["in a row", "apart", "behind halves"],
)
def test_a_text_with_more_damage_is_refused(data):
    [entry] = inspect_data(data)["skipped"]
    assert entry["cause"] == "its encoding is not UTF-8 and not certain"


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("吾輩《わがはい》は猫である。", "吾輩は猫である。"),
        ("見る｜薄暗い所《ところ》で", "見る薄暗い所で"),
        ("見る|薄暗い所《ところ》で", "見る薄暗い所で"),
        ("ニャーニャー泣いた。［＃「ニャー」に傍点］", "ニャーニャー泣いた。"),
        ("見《旧唐书》与《西域记》。", "見《旧唐书》与《西域记》。"),
        ("《わがはい》と云う", "《わがはい》と云う"),
        ("a｜b", "a｜b"),
    ],
)
def test_the_notation_of_japanese_texts_stands_between_no_words(written, left):
    result = inspect_data(f"{written}\n名前はまだ無い。".encode())
    assert result["sources"][0].data.decode() == f"{left}\n名前はまだ無い。"
    assert bool(result["warnings"]) == (written != left)


@pytest.mark.parametrize(
    ("remark", "character"),
    [
        ("「火＋華」、第3水準1-87-62", "燁"),
        ("「にんべん」の上部、第4水準2-1-1", "\U00020089"),
        ("「くさかんむり／意」、第3水準1-91-30", "薏"),
        ("「口＋世」、U+546D、12-3", "呭"),
        ("「龜＋火」、第4水準2-94-86", "\U0002a6b2"),
        ("二の字点、1-2-22", "〻"),
        ("始め二重山括弧、1-1-52", "《"),
        # No place of a character.
        ("「火＋華」、12-3", "※"), ("不明、1-99-99", "※"), ("不明、U+D800", "※"), ("不明、U+FFFF", "※"),
    ],
)  # fmt: skip
def test_a_character_that_aozora_names_is_read(remark, character):
    reading = "《わ》" * (character > "\u3400")
    assert read(f"彼は※［＃{remark}］{reading}と云う。".encode()) == f"彼は{character}と云う。"


ARCHIVE = (
    "From: <Saved by Blink>\nSnapshot-Content-Location: https://example.org/\nMIME-Version: 1.0\n"
    'Content-Type: multipart/related; type="text/html"; boundary="b"\n\n--b\nContent-Type: text/html; charset="utf-8"\n'
    "Content-Transfer-Encoding: quoted-printable\n\n<html><body><p>=E5=AE=89=E7=A6=84=E5=B1=B1 rose at =\nFanyang.</p>"
    "</body></html>\n--b\nContent-Type: text/css\n\np {}\n--b--\n"
)


WRITTEN = {
    "with its encoding": ARCHIVE,
    "as Chrome writes it": ARCHIVE.replace('; charset="utf-8"', ""),
    "mixed": ARCHIVE.replace("multipart/related", "multipart/mixed"),
    "alternative": ARCHIVE.replace("multipart/related", "multipart/alternative"),
    "a page alone": ARCHIVE.partition("Content-Type")[0] + ARCHIVE.split("--b\n")[1],
}


@pytest.mark.parametrize("name", ["a.html", "a.mhtml"])
@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_a_web_archive_or_a_saved_letter_is_read_as_a_page(written, name):
    [source] = inspect_data(written.encode(), name)["sources"]
    assert "<p>安禄山 rose at Fanyang.</p>" in source.data.decode()
    assert "Content-Type" not in source.data.decode()


@pytest.mark.parametrize("stated", ["gb2312", "us-ascii", "unicode"])
def test_a_web_archive_in_a_larger_encoding_than_it_states_is_read_whole(stated):
    head = ARCHIVE.partition("\n\n<html>")[0].replace("utf-8", stated).replace("quoted-printable", "8bit")
    page = '<html><meta charset="gb2312"><p>朱镕基说，这是好的。</p></html>\n--b--\n'
    result = inspect_data(f"{head}\n\n{page}".encode("gbk"), "a.mht")
    assert "<p>朱镕基说，这是好的。</p>" in result["sources"][0].data.decode()


def test_the_frames_of_a_web_archive_are_told():
    frame = ARCHIVE.replace(
        "--b\nContent-Type: text/css", "--b\nContent-Type: text/html\n\n<p>Ad</p>\n--b\nContent-Type: text/css"
    )
    for written, warnings in ((ARCHIVE, []), (frame, ["a.mht: 1 frames of the page were not read."])):
        assert inspect_data(written.encode(), "a.mht")["warnings"] == warnings


def test_a_web_archive_without_a_page_is_refused():
    empty = ARCHIVE.replace("text/html; ", "text/other; ")
    [entry] = inspect_data(empty.encode(), "a.html")["skipped"]
    assert entry["cause"] == "the web archive holds no page"
