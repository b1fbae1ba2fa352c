"""Writes small PDFs of text: each line where it is wanted, in whatever encoding its font has."""

from collections.abc import Iterable, Sequence

HELVETICA = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"


def simple_font(encoding: str) -> bytes:
    """A font of one byte a character; `encoding` is a name or a dictionary, and without it the font's own."""
    entry = f"/Encoding {encoding}" if encoding else ""
    return f"<</Type/Font/Subtype/Type1/BaseFont/Helvetica{entry}>>".encode()


def cid_font(cmap: str, ordering: str, to_unicode: bytes = b"") -> bytes:
    """A composite font with one of the encodings that every reader of PDF knows by name."""
    return (
        f"<</Type/Font/Subtype/Type0/BaseFont/Song/Encoding/{cmap}/DescendantFonts[<</Type/Font/Subtype/CIDFontType0"
        f"/BaseFont/Song/CIDSystemInfo<</Registry(Adobe)/Ordering({ordering})/Supplement 2>>/DW 1000/FontDescriptor<<"
        "/Type/FontDescriptor/FontName/Song/Flags 4/FontBBox[0 -120 1000 880]/Ascent 880/Descent -120>>>>]"
    ).encode() + (b"/ToUnicode 3 0 R>>" if to_unicode else b">>")


def to_unicode_map(characters: dict[int, str], width: int) -> bytes:
    """The table of a font that says which characters its codes are; `width` is the number of bytes of a code."""
    rows = "\n".join(f"<{code:0{2 * width}x}> <{text.encode('utf-16-be').hex()}>" for code, text in characters.items())
    return (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Own def /CMapType 2 def\n"
        f"1 begincodespacerange <{'00' * width}> <{'ff' * width}> endcodespacerange\n"
        f"{len(characters)} beginbfchar\n{rows}\nendbfchar endcmap end end"
    ).encode()


def place(
    text: str | bytes, x: float, y: float, *, size: float = 11, font: str = "F", encoding: str = "cp1252"
) -> bytes:
    """Operators that write a line at a point of the page."""
    data = text.encode(encoding) if isinstance(text, str) else text
    return b"BT /%s %g Tf %g %g Td <%s> Tj ET\n" % (font.encode(), size, x, y, data.hex().encode())


def build_pdf(
    pages: Iterable[bytes],
    *,
    fonts: dict[str, bytes] | None = None,
    to_unicode: bytes = b"",
    catalog: bytes = b"",
    size: tuple[int, int] = (595, 842),
    page: bytes = b"",
) -> bytes:
    """A PDF of these pages' operators; object 3 is `to_unicode`, `catalog` and `page` are further entries of these."""
    contents = list(pages)
    named = b"".join(b"/%s %s" % (name.encode(), font) for name, font in (fonts or {"F": HELVETICA}).items())
    kids = b" ".join(b"%d 0 R" % (6 + 2 * number) for number in range(len(contents)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R%s>>" % catalog, b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, len(contents)),
        _stream(to_unicode), b"<</Font<<%s>>>>" % named,
    ]  # fmt: skip
    for number, content in enumerate(contents):
        objects += [
            _stream(content),
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]/Resources 4 0 R/Contents %d 0 R%s>>"
            % (*size, 5 + 2 * number, page),
        ]
    return _written(objects)


def _stream(data: bytes) -> bytes:
    return b"<</Length %d>>\nstream\n%s\nendstream" % (len(data), data)


def _written(objects: Sequence[bytes]) -> bytes:
    parts, table, length = [b"%PDF-1.7\n"], [b"0000000000 65535 f \n"], 9
    for number, body in enumerate(objects, start=1):
        table.append(b"%010d 00000 n \n" % length)
        parts.append(b"%d 0 obj\n%s\nendobj\n" % (number, body))
        length += len(parts[-1])
    trailer = b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(table), length)
    return b"".join([*parts, b"xref\n0 %d\n" % len(table), *table, trailer])
