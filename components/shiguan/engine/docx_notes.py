"""Writes a DOCX with real footnotes, which python-docx reads and keeps but cannot create."""

import io
import re
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_RAISED = '<w:rPr><w:vertAlign w:val="superscript"/></w:rPr>'
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
_MARK = re.compile(r"\[(\d{1,9})\]")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# The lines between a page's text and its footnotes are footnotes, too.
_LINES = "".join(
    f'<w:footnote w:type="{kind}" w:id="{number}"><w:p><w:r><w:{kind}/></w:r></w:p></w:footnote>'
    for number, kind in ((-1, "separator"), (0, "continuationSeparator"))
)


def docx_with_footnotes(
    title: str, paragraphs: Sequence[tuple[str, int | None]], notes: Mapping[int, str], signed: str
) -> bytes:
    """Write paragraphs; one with a number is a quotation, whose mark ends it. A note's first mark is a footnote."""
    import docx  # noqa: PLC0415  # takes half a second, which no question should wait for
    from docx.opc.constants import RELATIONSHIP_TYPE  # noqa: PLC0415
    from docx.opc.packuri import PackURI  # noqa: PLC0415
    from docx.opc.part import Part  # noqa: PLC0415
    from docx.oxml import parse_xml  # noqa: PLC0415

    title, signed = _NOT_XML.sub("\ufffd", title), _NOT_XML.sub("\ufffd", signed)
    notes = {number: _NOT_XML.sub("\ufffd", note) for number, note in notes.items()}
    document = docx.Document()
    document.core_properties.title = title[:255]
    document.core_properties.author = document.core_properties.comments = ""
    document.add_heading(title, 1)
    placed: dict[int, int] = {}

    def add(pieces: Sequence[str], style: str | None = None) -> None:
        paragraph = document.add_paragraph(style=style)
        for at, piece in enumerate(pieces):
            if at % 2 == 0:
                paragraph.add_run(piece)
            elif (number := int(piece)) not in notes:
                paragraph.add_run(f"[{piece}]")
            elif number in placed:
                paragraph.add_run(str(placed[number])).font.superscript = True
            else:
                placed[number] = len(placed) + 1
                reference = f'<w:r {_W}>{_RAISED}<w:footnoteReference w:id="{placed[number]}"/></w:r>'
                paragraph._p.append(parse_xml(reference))

    for text, mark in paragraphs:
        whole = _NOT_XML.sub("\ufffd", text)
        if mark is None:
            add(_MARK.split(whole))
        else:
            *lines, last = whole.split("\n")
            for pieces in (*([line] for line in lines), [last, str(mark)]):
                add(pieces, "Quote")
    for number in notes.keys() - placed.keys():
        add(["", str(number)])
    document.add_paragraph(signed)
    feet = "".join(
        f'<w:footnote w:id="{at}"><w:p><w:r>{_RAISED}<w:footnoteRef/></w:r><w:r><w:t xml:space="preserve"> '
        f"{escape(notes[number])}</w:t></w:r></w:p></w:footnote>"
        for number, at in placed.items()
    )
    xml = f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?><w:footnotes {_W}>{_LINES}{feet}</w:footnotes>'
    part = Part(PackURI("/word/footnotes.xml"), _TYPE, xml.encode(), document.part.package)
    document.part.relate_to(part, RELATIONSHIP_TYPE.FOOTNOTES)
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()
