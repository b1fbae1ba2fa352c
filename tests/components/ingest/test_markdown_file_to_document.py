import re

import pytest
from haystack.dataclasses import ByteStream
from tests.doubles.processor_time import assert_grows_with_length

from shiguan.ingest.markdown_file_to_document import MarkdownFileToDocument


def read(text, **meta):
    return MarkdownFileToDocument().run([ByteStream(text.encode(), meta={"file_path": "a.md", **meta})])["documents"]


def sections(text):
    return [(d.meta["section"], d.content) for d in read(text)]


def test_headings_become_the_sections_path_and_leave_the_text():
    text = "Preface.\n\n# Tang\n\nIntro.\n\n## Rebellion\nIn 755.\n\n### North\nFanyang.\n\n## After\nGovernors.\n\n# Song\nLater.\n"
    assert sections(text) == [
        ([], "Preface."), (["Tang"], "Intro."), (["Tang", "Rebellion"], "In 755."),
        (["Tang", "Rebellion", "North"], "Fanyang."), (["Tang", "After"], "Governors."), (["Song"], "Later."),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# Title #", "Title"), ("   ## *Old* **Tang** `x`", "Old Tang x"), ("# [Link](http://a.b) end", "Link end"),
        ("# 卷一", "卷一"), ("# Set up {#setup .unnumbered}", "Set up"), ("Set up {#setup}\n---", "Set up"),
    ],
)  # fmt: skip
def test_heading_lines_are_reduced_to_their_words(line, title):
    assert sections(f"{line}\nText.") == [([title], "Text.")]


@pytest.mark.parametrize("line", ["#hashtag", "a # b", "Two lines\nof text"])
def test_lines_that_are_no_headings_stay_text(line):
    assert sections(f"{line}\n\nText.\n\nOf two\nlines.\n---") == [([], line), ([], "Text."), ([], "Of two\nlines.")]


def test_code_stays_as_it_is():
    text = "# A\n```python\n# comment\n~~~\n<!-- code -->\n[r]: x {#a}\n    b\n```\nText.\n\n    # indented"
    assert sections(text) == [
        (["A"], "# comment\n~~~\n<!-- code -->\n[r]: x {#a}\n    b"), (["A"], "Text."), (["A"], "# indented"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ("| Kucha | 9 | 747 | lost |", "Kucha | 9 | 747 | lost"), ("Kucha | 9 | *747*", "Kucha | 9 | 747"),
        ("| Kucha | 9 | | lost |", "Kucha | 9 | | lost"), ("| Kucha | 9 |", "Kucha | 9"),
        ("| Kucha | a \\| b |", "Kucha | a | b"), ("| Kucha | | 747 |", "Kucha | | 747"), ("| Kucha |", "Kucha"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", ["", "> "])
def test_a_row_of_more_cells_than_the_header_has_keeps_them(row, text, before):
    lines = ("| City | Miles |", "|---|---|", row, "| Aksu | 8 |")
    [document] = read("".join(f"{before}{line}\n" for line in lines))
    assert document.content == f"City | Miles\n{text}\nAksu | 8"


def test_quotations_lists_tables_and_lines_are_known():
    text = "> He *fled*.\n\n- one\n- two\n\n| City | Miles |\n|---|--:|\n| Kucha | 9 |\n\n白日登山\n黄昏饮马"
    found = [(d.meta["kind"], d.content) for d in read(text)]
    assert found == [
        ("quote", "He fled."), ("text", "one\ntwo"), ("table", "City | Miles\nKucha | 9"), ("text", "白日登山\n黄昏饮马"),
    ]  # fmt: skip


def test_the_title_is_stated_or_the_first_heading():
    assert read("# Tang\nText.")[0].meta["title"] == "Tang"
    assert read("# Tang\nText.", title="Given")[0].meta["title"] == "Given"


NOTED = """---
title: Journey
author: [Ann Author, {name: Bo Writer}]
date: 2026-09-18
...
# West

He left[^a], they say[^long], and `x[^a]` stays.[^a] So^[Own *note*.] it is[^none].

[^a]: A manuscript.

[^long]: First part
of it.

    Second part.

[^unused]: Nobody asks.
"""


def test_notes_stand_at_their_first_marks_and_front_matter_names_the_work():
    west, unused = read(NOTED)
    text = (
        "He left [Note: A manuscript.], they say [Note: First part of it. Second part.], and x[^a] stays. "
        "So [Note: Own note.] it is[^none]."
    )
    assert west.content == text
    assert [text[note["start"] : note["end"]] for note in west.meta["notes"]] == [
        "[Note: A manuscript.]", "[Note: First part of it. Second part.]", "[Note: Own note.]",
    ]  # fmt: skip
    assert (west.meta["title"], west.meta["section"]) == ("Journey", ["West"])
    assert west.meta["work"] == {"title": "Journey", "author": ["Ann Author", "Bo Writer"], "year": "2026"}
    assert (unused.content, unused.meta["kind"]) == ("Nobody asks.", "footnote")


@pytest.mark.parametrize(
    ("written", "title", "text"),
    [
        ("+++\ntitle = 'A'\nauthor = 'B'\n+++\nText.", "A", "Text."), ("---\ntitle: A\n---\nText.", "A", "Text."),
        ("---\ntitle: [A\n---\nText.", "", "Text."), ("---\na: &a [x, x]\ntitle: [*a, *a]\n---\nText.", "", "Text."),
        ("---\n" + "title: " + "[" * 5000 + "\n---\nText.", "", "Text."),
        ("---\nBetween\nrules.\n\n---\nText.", "", "Between\nrules.\nText."),
        ("---\nNever closed.", "", "Never closed."),
        ("---\n\n# A\n\nHe said: no.\n\n---\nText.", "A", "He said: no.\nText."),
        ("---\nHe said: no: never.\n\n---\nText.", "", "He said: no: never.\nText."),
        ("---\n- One.\n- Two.\n\n---\nText.", "", "One.\nTwo.\nText."),
        ("---\n" + "long" * 5000 + "\n\n---\nText.", "", "long" * 5000 + "\nText."),
        ("---\ntitle: A: B\n---\nText.", "", "Text."), ("% A\n% B; C\n\nText.", "A", "Text."),
        ("% A\nText.", "", "% A\nText."),
    ],
)  # fmt: skip
def test_front_matter_is_no_text_and_harmless(written, title, text):
    documents = read(written)
    assert "\n".join(document.content for document in documents) == text
    assert documents[0].meta.get("title", "") == title


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("Seen. <!-- hidden --> Seen too.", ["Seen. Seen too."]),
        ("Seen.\n\n<!-- hidden\n# no heading\n-->\n\nToo.", ["Seen.", "Too."]),
        ("Seen. <!-- never closed\n\n<!-- nor this\n\n# A", ["Seen. <!-- never closed", "<!-- nor this", "A"]),
        ("A [link][r].\n\n[r]: http://example.org 'Ref'", ["A link."]),
        ("[Aside]: this is text.", ["[Aside]: this is text."]),
        ("See [it](a.md){.external}, `x`{.py} and {this} set.", ["See it, x and {this} set."]),
        ("A <b>bold</b> word\n\n<details><summary>More</summary>\n\nInside.\n</details>", ["A bold word", "More", "Inside."]),
        ("5 < 6 & 7 <p", ["5 < 6 & 7 <p"]),
        ("See [[A b|the war]] of [[Tang]], ==which== ended.%% check %%![[map.png]]", ["See the war of Tang, which ended."]),
        ("`[[a]]` if a == b or b == c, [[a] b], 5 %% 3", ["[[a]] if a == b or b == c, [[a] b], 5 %% 3"]),
        ("> [!NOTE] Mind\n> the gap", ["Mind\nthe gap"]), ("::: {.warning}\nInside.\n:::", ["Inside."]),
        ("Fanzhen\n: A command.", ["Fanzhen\nA command."]),
        ("这是==重点==。**“其事”**不详，**城陷。**后来。", ["这是重点。“其事”不详，城陷。后来。"]),
        ("Tag 2**3 and **b** here", ["Tag 2**3 and b here"]),
        ("Seen. ^id-1\n\n%%\nhidden\n%%\n\nToo.", ["Seen.", "Too."]),
        ("A [marked]{.mark} word, [a]{b} [x][r]{.c}.\n\n[r]: b.md", ["A marked word, [a]{b} x."]),
        ("| 白日登山\n| 黄昏饮马", ["白日登山\n黄昏饮马"]), ("| 白日登山 |\n\n|a|", ["| 白日登山 |", "|a|"]),
        ("+---+---+\n| a | b |\n+===+===+", ["| a | b |"]),
        ('!!! note "Mind"\n    the gap\n\n=== "C"\n\nText.\n\n??? tip\n\nMore.', ["Mind\nthe gap", "C", "Text.", "More."]),
        ( "::: tip 提示\n内容\n:::\n\n[TOC]\n\n{% include a.md %}{{< fig src='a' >}}See {{ x }}.", ["提示\n内容", "See {{ x }}."], ),
        # Of Pandoc and Quarto, MyST and Sphinx, MkDocs, Jekyll, Hugo, Docusaurus, Logseq, Japanese writers.
        ("In `\\noindent`{=latex} 755 he rose.\n\n```{=html}\n<b>Hear</b>\n```", ["In 755 he rose.", "Hear"]),
        ("| A | B |\n|---|---|\n| 1 | 2 |\n\n: What fell {#tbl-a}", ["A | B\n1 | 2", "What fell"]),
        ("H~2~O, 10^6^ men, the 3^rd^; 5~10~20, x^2+y^2, `a^2^`", ["H2O, 10^6 men, the 3rd; 5~10~20, x^2+y^2, a^2^"]),
        ("See {ref}`the siege <siege>`, {term}`fanzhen`.\n\n(siege)=\n\n% unseen\n\n+++", ["See the siege, fanzhen."]),
        ("```{note}\n:class: tip\nMind.\n```\n\n:::{tip} Hear\n:class: a\nme\n:::", ["Mind.", "Hear\nme"]),
        ('The TLD.\n\n*[TLD]: Tang Liudian\n\n--8<-- "inc.md"\n\n50\n% of them', ["The TLD.", "50\n% of them"]),
        ("- TOC\n{:toc}\n\nA.\n{: .lead}\n\n{::comment}\nunseen\n{:/comment}\n\nB.", ["TOC", "A.", "B."]),
        ('{\n  "title": "T"\n}\n\nText.', ["Text."]), ("{\nno front matter\n}", ["{\nno front matter\n}"]),
        ("import A from '@a/b';\n\n{/* unseen */}\n\nText.", ["Text."]),
        ("- It fell.\n  id:: 64af-12\n  collapsed:: true\n- [x] Read\n- [ ] Cite", ["It fell.\nRead\nCite"]),
        ("これは{漢字|かんじ}です。{a|b}", ["これは漢字です。{a|b}"]),
        ("<div class='a' markdown='1'>\nThe **wall**.\n</div>\n<div>\n**Not** here.\n</div>", ["The wall.", "**Not** here."]),
        ("<details markdown>\n<summary>More</summary>\n\nThe *wall*.\n</details>", ["More", "The wall."]),
        # Changes that wait for approval.
        ("The {++old ++}city {--never --}fell in {~~754~>755~~}.{>>Check!<<}", ["The old city fell in 755."]),
        ("{==All==}{>>who?<<} fled. {~~*him*~>**her**~~}, `{++a++}`, {++b", ["All fled. her, {++a++}, {++b"]),
        ("- {--gone--}\n- 城{++已++}陷\n\n{--all gone--}", ["城已陷"]),
        ("x^n+1^ + (a)^b^, a~ij~, x~n+1~; a^b^c, ab~cd~, 2^10", ["x^(n+1) + (a)^b, aij, x_(n+1); a^b^c, ab~cd~, 2^10"]),
        # Words that a program shows although they stand in what it is told.
        ('::: {.callout-note title="Mind"}\nthe gap\n:::\n\n::: {.a}\nText.\n:::', ["Mind\nthe gap", "Text."]),
        ("/// note | Mind\nthe gap\n///\n\n/// tip\nText.\n///\n\n// no", ["Mind\nthe gap", "Text.", "// no"]),
        ('{{< figure src="a.png" caption="The siege" >}}\n\n{{< toc >}}Text.', ["The siege", "Text."]),
        ("---\ntitle: T\nabstract: |\n  It *fell*.\n\n  Twice.\n---\n\nText.", ["It fell.", "Twice.", "Text."]),
        ("---\ntitle: T\nabstract: [It fell.]\n---\n\nText.", ["Text."]),
        ("```{admonition} The gap\n:class: tip\nMind.\n```\n\n```{note} Hear me\n```", ["The gap\nMind.", "Hear me"]),
        ("```{code-block} python\nx = 1\n```\n\n```{figure} a/b.png\nThe siege.\n```", ["x = 1", "The siege."]),
        ("```{toctree} 2\na\n```\n\n```{card} ./a.md\nb\n```", ["a", "b"]),
        ("A (1)\n{ .annotate }\n\n==[[a|The wall]]== {.b}", ["A (1)", "The wall"]),
        ('See [it]({{< ref "a.md" >}}), [b]({% link b.md %}), [c]({{ site.url }}/c).', ["See it, b, c."]),
        ('{% tab title="In English" %}\nThe wall.\n{% endtab %}', ["In English\nThe wall."]),
        ("A[^Note] b[^NOTE].\n\n[^note]: One.\n\n[^NOTE]: Two.", ["A [Note: One.] b [Note: Two.]."]),
        # A year that begins an item is read, and its number is not.
        ("755. He rose.\n757. *He* fell.\n\n763) Peace.", ["755. He rose.\n757. He fell.", "763. Peace."]),
        ("1. He rose.\n2. He fell.\n\n12. Peace.", ["He rose.\nHe fell.\nPeace."]),
        ("755. > He rose.", ["755.", "He rose."]),
        # Dollars around formulas are markup, and dollars of money are not.
        (r"Let $x_1^2$ and $y_1$ be $\text{even}$.", ["Let x_1^2 and y_1 be even."]),
        ("So $a < b$ in `$x$`.", ["So a < b in $x$."]), ("$$\nE = mc^2\n$$", ["E = mc^2"]),
        ("It cost $5 and $6, or $20,000 and $30,000.", ["It cost $5 and $6, or $20,000 and $30,000."]),
        ("See $5-$6, `echo $HOME` and $PATH.", ["See $5-$6, echo $HOME and $PATH."]),
        ("In 755.\n\n---\nThe end: he fled.\n\n---\n", ["In 755.", "The end: he fled."]),
    ],
)  # fmt: skip
def test_what_a_reader_does_not_see_is_left_out(written, seen):
    assert [document.content for document in read(written)] == seen


def test_the_words_of_any_depth_are_read():
    nested = "".join(f"{'  ' * depth}- item{depth}\n" for depth in range(80))
    for text in (
        f"a\n\n{'>' * 125} deep\n> text\n\nb",
        f"{nested}\n  - deep\n\nb",
        "> " * 40 + "- " * 40 + "deep\n\nb",
    ):
        words = " ".join(document.content for document in read(text)).split()
        assert words == re.findall(r"\w+", text)


PIECES = [
    "[^a]", "`", "``x", "<!--", "{#a ", "[a", "^[", "[^a]: ", "  ", "[^a]: x\n\n", "*a", "a\n", "<a", "![", "> ", "- ",
    "%%\n", " ^abc", "[x]{.a ", "**“", "!!! a ", "| a\n", "{++a", "{~~a~>", "{>>", "`{--", "{::comment}\n", "{ref}`a<",
    "% a\n", ":::a\n:b: c\n", "{漢|", "a $b", "$a ", "\n\n$$\na", "\n\n---\na: b", "a\n=\n",
    "{{< a ", "](({{a ", "{% a ", "x^a", "x~a", "\n/// a | ", "\n{ .a ", "```{a} b ", "<a markdown ",
]  # fmt: skip


OPENED = [("{{<", ' title="a"'), ("{%", ' title="a"'), ("::: {", ' title="a"'), ("```{a} ", "./:a")]


@pytest.mark.parametrize(("opened", "piece"), [*OPENED, *(("", piece) for piece in PIECES)])
def test_time_grows_with_the_length_of_the_text_and_of_what_is_never_closed(opened, piece):
    assert_grows_with_length(read, lambda count: opened + piece * count, 2_000 if opened else 1_000)


@pytest.mark.parametrize("end", ["---", "..."])
def test_a_block_of_names_at_the_end_is_no_text(end):
    (found,) = read(f"In 755.\n\n---\ntitle: Tang\nauthor: Du You\n{end}\n")
    assert (found.content, found.meta["work"]) == ("In 755.", {"title": "Tang", "author": ["Du You"]})
    (found,) = read("---\ntitle: Song\n---\nIn 755.\n\n---\ntitle: Tang\n---\n")
    assert (found.content, found.meta["title"]) == ("In 755.", "Song")
