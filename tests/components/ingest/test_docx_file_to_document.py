"""Every word that a reader sees in a Word file is read, in order; what is not is counted."""

import pytest
from haystack.dataclasses import ByteStream
from tests.doubles.docx_builder import STRICT, TRANSITIONAL, DocxBuilder, paragraph, run, table
from tests.doubles.epub_builder import zip_bytes
from tests.doubles.processor_time import assert_grows_with_length

from shiguan.ingest.docx_file_to_document import DocxFileToDocument
from shiguan.ingest.source_inspector import SourceInspector

RAISED = '<w:vertAlign w:val="superscript"/>'
BOX = "<w:txbxContent>" + paragraph("The toll is nine coins.") + "</w:txbxContent>"
MODERN_BOX = f"<w:drawing><wps:wsp><wps:txbx>{BOX}</wps:txbx></wps:wsp></w:drawing>"
OLD_BOX = f"<w:pict><v:shape><v:textbox>{BOX}</v:textbox></v:shape></w:pict>"
FIELD = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
INSTRUCTION = '<w:r><w:instrText xml:space="preserve">{}</w:instrText></w:r>'
BEGIN, SEPARATE, END = map(FIELD.format, ("begin", "separate", "end"))
MARK = '<w:footnoteReference w:customMarkFollows="1" w:id="2"/><w:t>*</w:t>'
MOVED = '<w:moveFrom w:id="1">{}</w:moveFrom>'
EQUATION = (
    "<m:oMath><m:r><m:t>A=</m:t></m:r><m:sSup><m:e><m:r><m:t>πr</m:t></m:r></m:e>"
    "<m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup></m:oMath>"
)


def field(*instructions, result=()):
    return "".join(
        [BEGIN, *map(INSTRUCTION.format, instructions), *([SEPARATE, *map(run, result)] if result else ()), END]
    )


# Of each construct: what a paragraph begins with, the construct, what it ends with; and the words that a reader sees.
CONSTRUCTS = {
    "initial": (paragraph("A", properties='<w:framePr w:dropCap="drop" w:lines="3"/>') + paragraph("n Lushan rose."), "An Lushan rose."),
    "plain runs": (paragraph("The wall ", run("was", "<w:b/>"), " high."), "The wall was high."),
    "split word": (paragraph("The gar", "rison stood."), "The garrison stood."),
    "insertion": (paragraph("Signed by ", f"<w:ins>{run('two envoys')}</w:ins>", "."), "Signed by two envoys."),
    "deletion": (paragraph("Signed", "<w:del><w:r><w:delText>alone</w:delText></w:r></w:del>", "."), "Signed."),
    "move": (paragraph(MOVED.format(run("Gone.")), f"<w:moveTo>{run('The seal.')}</w:moveTo>"), "The seal."),
    "inserted paragraph": (f"<w:ins>{paragraph('A whole paragraph.')}</w:ins>", "A whole paragraph."),
    "joined paragraphs": (paragraph("The first", properties="<w:rPr><w:del/></w:rPr>") + paragraph(" and the second."),
        "The first and the second."),
    "block control": (f"<w:sdt><w:sdtContent>{paragraph('A deep well.')}</w:sdtContent></w:sdt>", "A deep well."),
    "inline control": (paragraph("The clerk ", f"<w:sdt><w:sdtContent>{run('Asma')}</w:sdtContent></w:sdt>", " wrote."),
        "The clerk Asma wrote."),
    "smart tag": (paragraph("In ", f"<w:smartTag>{run('Aksu')}</w:smartTag>", " then."), "In Aksu then."),
    "custom XML": (paragraph(f"<w:customXml>{run('Paid in silk.')}</w:customXml>"), "Paid in silk."),
    "simple field": (paragraph("Page ", f'<w:fldSimple w:instr="PAGE">{run("12")}</w:fldSimple>'), "Page 12"),
    "complex field": (paragraph(field(" REF x ", result=["the result"]), " stands."), "the result stands."),
    "field within an instruction": (
        paragraph(
            BEGIN, INSTRUCTION.format(" IF "), field(" SEX ", result=["male"]), INSTRUCTION.format('="male" "Sir" "Madam"'), SEPARATE,
            "Sir", END, " came.",
        ),
        "Sir came.",
    ),
    "instruction without an end": (paragraph(BEGIN, "Lost.") + paragraph("Kept."), "Kept."),
    "reading above a character": (paragraph("他在", field(' EQ \\* jc2 \\* "Font:宋体" \\* hps10 \\o\\ad(\\s\\up 9(qiū),', "龟)"), "兹。"),
        "他在龟兹。"),
    "fraction of a field": (paragraph("约", field(" eq \\f(1,3)"), "的马。"), "约1/3的马。"),
    "letters of the font Symbol": (paragraph("An ", '<w:r><w:sym w:font="Symbol" w:char="F061"/></w:r>', "."), "An α."),
    "field of a symbol": (paragraph(field(' SYMBOL 97 \\f "Symbol" \\s 11 '), " is small."), "α is small."),
    "words in an instruction": (
        paragraph(*(field(words) + run(" ") for words in (' QUOTE "An Lushan" ', " MACROBUTTON Next rose here ", ' XE "rebels" '))),
        "An Lushan rose here",
    ),
    "fields without a result": (
        paragraph(*(f'<w:fldSimple w:instr="{words}"/>' for words in (" SYMBOL 0x2022 \\u", "SYMBOL 151", "EQ \\f(1,3)"))), "•—1/3",
    ),
    "text in the font Symbol": (paragraph(run("a\uf0a3b ", '<w:rFonts w:ascii="Symbol"/>'), run("ab", '<w:rFonts w:ascii="Arial"/>')), "α≤β ab"),
    "chosen entry of a form": (
        paragraph("Paid: ", FIELD.format('begin"><w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="yes"/><w:listEntry w:val="no"/>'
                  '</w:ddList></w:ffData></w:fldChar><w:fldChar w:fldCharType="end')), "Paid: no",
    ),
    "hyperlink": (paragraph("See ", f'<w:hyperlink r:id="rId9">{run("the ledger")}</w:hyperlink>', "."), "See the ledger."),
    "two directions": (paragraph("One ", f'<w:dir w:val="rtl">{run("אחת")}</w:dir>', "."), "One אחת."),
    "text box": (paragraph(f"<w:r>{MODERN_BOX}</w:r>"), "The toll is nine coins."),
    "old text box": (paragraph(f"<w:r>{OLD_BOX}</w:r>"), "The toll is nine coins."),
    "text box twice": (
        paragraph(
            f"<w:r><mc:AlternateContent><mc:Choice Requires='wps'>{MODERN_BOX}</mc:Choice>"
            f"<mc:Fallback>{OLD_BOX}</mc:Fallback></mc:AlternateContent></w:r>"
        ),
        "The toll is nine coins.",
    ),
    "shape": (paragraph("<w:r><w:drawing><a:t>Drawn words</a:t></w:drawing></w:r>"), "Drawn words"),
    "shape in two ways": (
        paragraph("<w:r><w:drawing><mc:AlternateContent><mc:Choice><a:t>Drawn words</a:t></mc:Choice><mc:Fallback><a:t>Drawn words</a:t>"
                  "</mc:Fallback></mc:AlternateContent></w:drawing></w:r>"), "Drawn words",
    ),
    "letters drawn": (paragraph('<w:r><w:pict><v:shape><v:textpath string="Kucha"/></v:shape></w:pict></w:r>'), "Kucha"),
    "picture": (paragraph('<w:r><w:drawing><wp:docPr descr="A map of the oasis"/></w:drawing></w:r>'),
        "[Image: A map of the oasis]"),
    "picture with a title": (paragraph('<w:r><w:drawing><wp:docPr descr="" title="A map of the oasis"/></w:drawing></w:r>'),
        "[Image: A map of the oasis]"),
    "old picture": (paragraph('<w:r><w:pict><v:shape alt="A map of it"/></w:pict></w:r>'), "[Image: A map of it]"),
    "picture of a field": (
        paragraph('<w:fldSimple><w:r><w:drawing><wp:docPr descr="A map of it"/></w:drawing></w:r></w:fldSimple>'), "[Image: A map of it]",
    ),
    "changed equation": (
        paragraph('<m:oMath><m:r><w:sym w:font="Symbol" w:char="0061"/></m:r><w:ins><m:r><m:t>+1</m:t></m:r></w:ins><w:del><m:t>2</m:t></w:del></m:oMath>'),
        "α+1",
    ),
    "equation": (paragraph("The area is ", EQUATION, " in feet."), "The area is A=πr^2 in feet."),
    "equation alone": (f"<m:oMathPara>{EQUATION}</m:oMathPara>", "A=πr^2"),
    "table": (table(*[[paragraph("Kucha"), paragraph("nine")]] * 2), "Kucha | nine Kucha | nine"),
    "nested table": (table([paragraph("Outer"), table([paragraph("inner"), paragraph("cell")]) + paragraph("after")]),
        "Outer inner | cell after"),
    "rows in controls": (
        "<w:tbl><w:sdt><w:sdtContent><w:tr><w:sdt><w:sdtContent><w:tc>" + paragraph("Cell") + "</w:tc></w:sdtContent>"
        "</w:sdt></w:tr></w:sdtContent></w:sdt></w:tbl>",
        "Cell",
    ),
    "deleted row": (
        "<w:tbl><w:tr><w:tc>" + paragraph("Kept") + "</w:tc></w:tr><w:tr><w:trPr><w:del/></w:trPr><w:tc>"
        + paragraph("Gone") + "</w:tc></w:tr></w:tbl>",
        "Kept",
    ),
    "special characters": (
        paragraph('<w:r><w:t>well</w:t><w:noBreakHyphen/><w:t>known</w:t><w:tab/><w:t>a</w:t><w:br/><w:t>b</w:t>'
                  '<w:sym w:font="x" w:char="2014"/></w:r>'),
        "well-known a b—",
    ),
    "ruby": (
        paragraph("<w:r><w:ruby><w:rt>" + run("わがはい") + "</w:rt><w:rubyBase>" + run("吾輩") + "</w:rubyBase></w:ruby></w:r>", "は猫"),
        "吾輩は猫",
    ),
    "hidden": (paragraph("Seen", run(" hidden", "<w:vanish/>"), run(" too.", '<w:vanish w:val="0"/>')), "Seen too."),
    "footnote": (paragraph("The wall", '<w:r><w:footnoteReference w:id="2"/></w:r>', " stands."),
        "The wall [Note: It fell in the flood.] stands."),
    "endnote": (paragraph("The pay", '<w:r><w:endnoteReference w:id="2"/></w:r>', "."), "The pay [Note: One bolt a month.]."),
    "own mark of a note": (paragraph("A tower", f"<w:r>{MARK.replace('2', '4')}</w:r>", "."),
        "A tower [Note: Of clay.]."),
    "hidden by a style": (
        paragraph(run("Seen"), run(" not", '<w:rStyle w:val="Below"/>'), run(" too.", '<w:rStyle w:val="Below"/><w:vanish w:val="0"/>')), "Seen too.",
    ),
    "raised word": (paragraph("the 19", run("th", RAISED), " day"), "the 19th day"),
    "raised by its position": (paragraph("In 755", run("1", '<w:position w:val="8"/><w:sz w:val="14"/>'), " then."),
        "In 755 then."),
    "lowered": (paragraph("H", run("2", '<w:vertAlign w:val="subscript"/>'), "O"), "H2O"),
}  # fmt: skip
NOTES = {
    "footnotes": {2: paragraph("<w:r><w:footnoteRef/></w:r>", " It fell in the flood."), 4: paragraph("Of clay.")},
    "endnotes": {2: paragraph("One bolt a month.")},
    "styles": '<w:style w:type="character" w:styleId="Unseen"><w:rPr><w:vanish/></w:rPr></w:style>'
    '<w:style w:type="character" w:styleId="Below"><w:basedOn w:val="Unseen"/></w:style>',
}
BEFORE, AFTER = "The caravan came before dawn.", "It left after dusk."


def convert(data):
    data = data.build() if isinstance(data, DocxBuilder) else data
    return DocxFileToDocument().run([ByteStream(data, meta={"file_path": "a.docx"})])


def words(result):
    return "\n".join(document.content for document in result["documents"]).split()


INSIDE = {
    "body": "{}",
    "control": "<w:sdt><w:sdtContent>{}</w:sdtContent></w:sdt>",
    "cell": "<w:tbl><w:tr><w:tc>{}</w:tc></w:tr></w:tbl>",
}


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("namespaces", [TRANSITIONAL, STRICT], ids=["transitional", "strict"])
@pytest.mark.parametrize("name", CONSTRUCTS)
def test_every_construct_is_read_where_it_stands(name, namespaces, inside):
    markup, seen = CONSTRUCTS[name]
    body = paragraph(BEFORE) + INSIDE[inside].replace("{}", markup) + paragraph(AFTER)
    found = words(convert(DocxBuilder(body, namespaces=namespaces, **NOTES)))
    assert found == f"{BEFORE} {seen} {AFTER}".split()


def test_all_constructs_of_one_file_are_read_in_their_order():
    body = "".join(markup for markup, _ in CONSTRUCTS.values())
    found = " ".join(words(convert(DocxBuilder(body, **NOTES))))
    at = 0
    for name, (_, seen) in CONSTRUCTS.items():
        at = found.find(seen, at)
        assert at >= 0, name


STYLES = "".join(
    f'<w:style w:type="paragraph" w:styleId="{key}"><w:name w:val="{name}"/>{more}</w:style>'
    for key, name, more in (
        ("1", "heading 1", ""), ("2", "heading 2", ""), ("T", "Title", ""), ("mine", "My chapter", '<w:basedOn w:val="1"/>'),
        ("x", "Circle", '<w:basedOn w:val="y"/>'), ("y", "Circle too", '<w:basedOn w:val="x"/>'),
        ("o", "Part", '<w:pPr><w:outlineLvl w:val="1"/></w:pPr>'), ("q", "Quote", ""), ("c", "caption", ""), ("toc1", "toc 1", ""),
    )
)  # fmt: skip


def test_headings_quotations_captions_and_contents_are_known_by_their_styles():
    body = (
        paragraph("Tang", style="T") + paragraph("War", style="mine") + paragraph("In 755.") + paragraph(" ", style="1")
        + paragraph("North", style="o") + paragraph("They fled.", style="q") + paragraph("Figure 1. A map.", style="c")
        + paragraph("Late", properties='<w:outlineLvl w:val="0"/>') + paragraph("Around.", style="x")
    )  # fmt: skip
    documents = convert(DocxBuilder(body, styles=STYLES))["documents"]
    assert [(d.meta["section"], d.meta["kind"], d.content) for d in documents] == [
        (["Tang", "War"], "text", "In 755."),
        (["Tang", "War", "North"], "quote", "They fled."),
        (["Tang", "War", "North"], "caption", "Figure 1. A map."),
        (["Tang", "Late"], "text", "Around."),
    ]


def test_a_cell_that_is_merged_with_those_below_it_is_in_each_row():
    start, below = '<w:tcPr><w:vMerge w:val="restart"/></w:tcPr>', "<w:tcPr><w:vMerge/></w:tcPr><w:p/>"
    wide = '<w:tcPr><w:gridSpan w:val="2"/></w:tcPr>'
    rows = (
        f"<w:tc>{wide}{paragraph('Rising')}</w:tc><w:tc>{start}{paragraph('East')}</w:tc>",
        f"<w:tc>{start}{paragraph('755')}</w:tc><w:tc>{paragraph('Fanyang')}</w:tc><w:tc>{below}</w:tc>",
        f"<w:tc>{below}</w:tc><w:tc>{paragraph('Luoyang')}</w:tc><w:tc>{below}</w:tc>",
        f"<w:tc>{below}</w:tc><w:tc>{paragraph('Tong Pass')}</w:tc><w:tc>{paragraph('West')}</w:tc>",
    )
    result = convert(DocxBuilder(f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>").build())
    assert [document.content for document in result["documents"]] == [
        "Rising | East\n755 | Fanyang | East\n755 | Luoyang | East\n755 | Tong Pass | West"
    ]


NUMBERING = """<w:numbering xmlns:w="{w}"><w:abstractNum w:abstractNumId="7">
<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="chineseCountingThousand"/><w:lvlText w:val="第%1章"/></w:lvl>
<w:lvl w:ilvl="1"><w:start w:val="9"/><w:numFmt w:val="decimal"/><w:pStyle w:val="Article"/><w:lvlText w:val="Article %2"/></w:lvl>
<w:lvl w:ilvl="2"><w:start w:val="1"/><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%2-%3."/></w:lvl>
<w:lvl w:ilvl="3"><w:numFmt w:val="lowerRoman"/><w:lvlText w:val="Rule %2(%4)"/></w:lvl></w:abstractNum>
<w:num w:numId="2"><w:abstractNumId w:val="7"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="7"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="20"/></w:lvlOverride></w:num>
</w:numbering>"""


def test_labels_that_word_counts_are_read_where_they_are_words():
    def numbered(text, level, number=2):
        return paragraph(text, properties=f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')

    styles = '<w:style w:styleId="Article"><w:pPr><w:numPr><w:numId w:val="2"/></w:numPr></w:pPr></w:style>'
    body = [
        numbered("围城", 0), paragraph("It fell.", style="Article"), numbered("Alone.", 2), numbered("In it.", 3),
        paragraph("Again.", style="Article"), numbered("再围", 0), paragraph("Anew.", style="Article"),
        numbered("末章", 0, 3), numbered("后记", 0, 3), numbered("No list.", 0, 0),
    ]  # fmt: skip
    parts = {"word/numbering.xml": NUMBERING.format(**TRANSITIONAL)}
    result = convert(DocxBuilder("".join(body), styles=styles, parts=parts).build())
    assert [document.content for document in result["documents"]] == [
        "第一章 围城", "Article 9 It fell.", "Alone.", "Rule 9(i) In it.", "Article 10 Again.", "第二章 再围",
        "Article 9 Anew.", "第二十章 末章", "第二十一章 后记", "No list.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "text", "label"),
    [("bullet", "o", ""), ("bullet", "ü", ""), ("bullet", "Note:", "Note: "), ("none", "A", "A ")],
)
def test_a_letter_that_is_drawn_as_a_bullet_is_no_label(form, text, label):
    level = f'<w:lvl w:ilvl="0"><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/></w:lvl>'
    lists = f'<w:abstractNum w:abstractNumId="1">{level}</w:abstractNum><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>'
    numbering = '<w:numbering xmlns:w="{w}">'.format(**TRANSITIONAL) + lists + "</w:numbering>"
    body = paragraph("It fell.", properties='<w:numPr><w:numId w:val="2"/></w:numPr>')
    [document] = convert(DocxBuilder(body, parts={"word/numbering.xml": numbering}))["documents"]
    assert document.content == f"{label}It fell."


def test_a_table_of_contents_is_a_list():
    lines = [
        paragraph(f'<w:hyperlink w:anchor="_Toc{n}">{run(f"The siege of the {n}th gate")}{run(str(n * 10))}</w:hyperlink>', style="toc1")
        for n in range(1, 9)
    ]  # fmt: skip
    documents = convert(DocxBuilder("".join(lines) + paragraph("The text."), styles=STYLES))["documents"]
    assert [document.meta["kind"] for document in documents] == ["list", "text"]


def test_notes_have_their_places_and_one_that_is_missing_is_told():
    marks = ['<w:r><w:footnoteReference w:id="2"/></w:r>', '<w:r><w:footnoteReference w:id="9"/></w:r>']
    body = paragraph("碎叶城", marks[0], "十二门", marks[1])
    result = convert(DocxBuilder(body, footnotes={2: paragraph("筑城在调露元年。")}))
    [document] = result["documents"]
    assert document.content == "碎叶城[脚注：筑城在调露元年。]十二门"
    assert document.meta["notes"] == [{"start": 3, "end": 16}]
    assert result["warnings"] == ["a.docx: 1 note marks lead to no note; they were left out."]


WEBDINGS, WINGDINGS = (f'<w:rFonts w:ascii="{name}"/>' for name in ("Webdings", "Wingdings"))
SYMBOLS = (
    run("\uf0fc \uf0b7 \uf0e0 ") + run("\uf0a7 ü \uf0fb 城\uf020", WINGDINGS) + run("P", WINGDINGS.replace('s"', 's 2"'))
    + '<w:r><w:sym w:font="Wingdings" w:char="F04A"/></w:r>' + run("ü \ue000", WINGDINGS.replace("Wing", "Sans Wing"))
)  # fmt: skip
UNKNOWN = (
    '<w:r><w:sym w:font="Wingdings" w:char="0031"/></w:r>' + run("\uf031\uf0b0") + run("aä", WEBDINGS)
    + '<w:fldSimple w:instr="SYMBOL 49 \\f Wingdings"/>' + field("SYMBOL 61489")
)  # fmt: skip
LEFT_OUT = paragraph(
    "Seen.", run("hidden", "<w:vanish/>"), '<w:r><w:sym w:char="F031"/></w:r>', "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>",
)  # fmt: skip
PART = DocxBuilder("").part
HEADER = PART("hdr", paragraph("The Kucha Papers"))
SECOND = PART("document", DocxBuilder(paragraph("The second.")).body_element())


def links(kind, target):
    return f'<Relationships><Relationship Type="x/{kind}" Target="{target}"/></Relationships>'


RELATED, MASTER = "word/_rels/document.xml.rels", paragraph("First.") + '<w:subDoc r:id="rId9"/>'
SKIPPED = "skipped (not body text): "
# The body, the other parts of the file, what is read, and what is told of the rest.
TOLD = {
    "several kinds": (
        LEFT_OUT, {"word/header1.xml": HEADER, "word/a.mht": "<p>12345</p>", RELATED: links("relationships/aFChunk", "/word/a.mht")}, "Seen.",
        f"{SKIPPED}hidden text (6 characters), symbols of fonts (1 characters), deleted text (4 characters), "
        "headers and footers (16 characters), inserted files (12 characters).",
    ),
    "the second text is that of the file": (
        paragraph("First."), {"word/document2.xml": SECOND, "_rels/.rels": links("officeDocument", "/word/document2.xml")}, "The second.",
        f"{SKIPPED}other texts (6 characters).",
    ),
    "the first text is that of the file": (
        paragraph("First."), {"word/document2.xml": SECOND, "_rels/.rels": links("officeDocument", "/word/document.xml")}, "First.",
        f"{SKIPPED}other texts (11 characters).",
    ),
    "a linked part of a master document": (
        MASTER, {"word/part2.docx": "12345", RELATED: links("subDocument", "file:///C:/part2.docx")}, "First.",
        "its text goes on in 1 linked documents, which were not read.",
    ),
    "a part of a master document": (
        MASTER, {"word/part2.docx": "12345", RELATED: links("subDocument", "part2.docx")}, "First.", f"{SKIPPED}inserted files (5 characters).",
    ),
    "symbols that only their font knows": (paragraph("Seen", UNKNOWN, "."), {}, "Seen.", f"{SKIPPED}symbols of fonts (7 characters)."),
    "marks and arrows of symbol fonts": (paragraph(SYMBOLS), {}, "✓ • → ▪ ✓ ✗ 城 ✓☺ü \ue000", ""),
}  # fmt: skip


@pytest.mark.parametrize(("body", "parts", "content", "told"), TOLD.values(), ids=TOLD)
def test_what_is_left_out_is_told_with_its_kind_and_number(body, parts, content, told):
    result = convert(DocxBuilder(body, parts=parts))
    assert [document.content for document in result["documents"]] == [content]
    assert result["warnings"] == [f"a.docx: {told}"] * bool(told)


def test_title_and_author_come_from_the_properties():
    core = (
        '<p:coreProperties xmlns:p="x" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Notes</dc:title>'
        "<dc:creator>Ann Author</dc:creator></p:coreProperties>"
    )
    [document] = convert(DocxBuilder(paragraph("x"), parts={"docProps/core.xml": core}))["documents"]
    assert document.meta["title"] == "Notes"
    assert document.meta["work"] == {"title": "Notes", "author": ["Ann Author"]}
    assert "anchor" not in document.meta


MATH = {
    "<m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f>": "(a+b)/2",
    "<m:rad><m:radPr><m:degHide m:val='1'/></m:radPr><m:deg/><m:e><m:r><m:t>x+1</m:t></m:r></m:e></m:rad>": "√(x+1)",
    "<m:rad><m:deg><m:r><m:t>3</m:t></m:r></m:deg><m:e><m:r><m:t>x</m:t></m:r></m:e></m:rad>": "∛x",
    "<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub><m:r><m:t>i=1</m:t></m:r></m:sub><m:sup><m:r><m:t>n</m:t></m:r>"
    "</m:sup><m:e><m:r><m:t>x</m:t></m:r></m:e></m:nary>": "∑_{i=1}^n x",
    "<m:d><m:dPr><m:begChr m:val='['/><m:endChr m:val=']'/></m:dPr><m:e><m:m><m:mr><m:e><m:r><m:t>1</m:t></m:r></m:e><m:e><m:r>"
    "<m:t>0</m:t></m:r></m:e></m:mr><m:mr><m:e><m:r><m:t>0</m:t></m:r></m:e><m:e><m:r><m:t>1</m:t></m:r></m:e></m:mr></m:m>"
    "</m:e></m:d>": "[1, 0; 0, 1]",
    "<m:func><m:fName><m:r><m:t>sin</m:t></m:r></m:fName><m:e><m:r><m:t>x</m:t></m:r></m:e></m:func>": "sin x",
    "<m:sSubSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sub><m:r><m:t>i</m:t></m:r></m:sub><m:sup><m:r><m:t>10</m:t></m:r></m:sup>"
    "</m:sSubSup>": "x_i^{10}",
    "<m:acc><m:accPr><m:chr m:val='̂'/></m:accPr><m:e><m:r><m:t>x</m:t></m:r></m:e></m:acc>": "x",
}  # fmt: skip


@pytest.mark.parametrize("markup", MATH)
def test_equations_are_written_in_one_readable_line(markup):
    assert words(convert(DocxBuilder(paragraph(f"<m:oMath>{markup}</m:oMath>")))) == MATH[markup].split()


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"PK\x03\x04 broken", "the zip archive is cut off"),
        (zip_bytes({"a": "b"}), "it is a zip archive, but not a DOCX"),
        (DocxBuilder("<w:p><w:r>").build(), "its part `word/document.xml` is damaged"),
        (DocxBuilder(paragraph("")).build(), "no text was found in it"),
        (DocxBuilder(f"{'<w:sdt>' * 2000}{paragraph('x')}{'</w:sdt>' * 2000}").build(), "nested hundreds of levels"),
    ],
    ids=["cut off", "another zip", "not well-formed", "empty", "nested"],
)
def test_a_file_that_cannot_be_read_is_named_and_the_others_go_on(data, cause):
    fine = ByteStream(DocxBuilder(paragraph("Fine.")).build(), meta={"file_path": "b.docx"})
    result = DocxFileToDocument().run([ByteStream(data, meta={"file_path": "a.docx"}), fine])
    assert [document.content for document in result["documents"]] == ["Fine."]
    assert [entry["source"] for entry in result["skipped"]] == ["a.docx"]
    assert cause in result["skipped"][0]["cause"]


def test_entities_of_a_file_are_not_expanded():
    data = DocxBuilder(paragraph("Plain. &b;")).part("document", f"<w:body>{paragraph('Plain. &b;')}</w:body>")
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    data = data.replace("<w:document", f"{bomb}<w:document", 1)
    assert words(convert(DocxBuilder("", parts={"word/document.xml": data}))) == ["Plain.", "&b;"]


def test_the_main_part_may_have_a_number():
    data = DocxBuilder("").part("document", f"<w:body>{paragraph('Numbered.')}</w:body>")
    file = DocxBuilder("", parts={"word/document.xml": "", "word/document2.xml": data}).build()
    file = file.replace(b"word/document.xml", b"word/documenx.xml")
    stream = ByteStream(file, meta={"file_name": "a.docx"})
    assert SourceInspector().run([stream])["skipped"] == []
    assert words(convert(file)) == ["Numbered."]


def test_time_grows_with_the_number_of_notes():
    def file(count):
        marks = "".join(paragraph(f"Line {n}", f'<w:r><w:footnoteReference w:id="{n}"/></w:r>') for n in range(count))
        return DocxBuilder(marks, footnotes={n: paragraph(f"Note {n}.") for n in range(count)}).build()

    documents = convert(file(1_600))["documents"]
    assert (len(documents), documents[-1].content) == (1_600, "Line 1599 [Note: Note 1599.]")
    assert_grows_with_length(convert, file, 1_600)


@pytest.mark.parametrize(
    "repeated",
    [MARK, '<w:bookmarkStart w:name="b"/>' * 6, (run("x") + run("1", RAISED)) * 6],
    ids=["own marks", "bookmarks", "raised"],
)
def test_time_grows_with_the_size_of_a_paragraph(repeated):
    def file(count):
        return DocxBuilder(f"<w:p>{run('x')}<w:r>{repeated * count}</w:r></w:p>", **NOTES).build()

    assert convert(file(1))["documents"]
    assert_grows_with_length(convert, file, 1_500)
