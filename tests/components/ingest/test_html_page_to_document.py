import pytest
from haystack.dataclasses import ByteStream

from shiguan.ingest.html_page_to_document import HtmlPageToDocument


def read(page):
    return HtmlPageToDocument().run([ByteStream(page.encode(), meta={"file_path": "a.html"})])


PAGE = """<!DOCTYPE html><html lang="zh"><head><title> 旧唐书 &amp; 注 </title><meta charset="gb2312"><style>p {}</style></head>
<body><nav><a href="#a">目录</a></nav><h1>旧唐书</h1><p>刘昫<b>等</b>撰。</p><script>var x = "脚本";</script>
<h2>卷二百</h2><p>安禄山，营州柳城杂种胡人也。<br>母阿史德氏。</p><blockquote>史臣曰：治乱有数。</blockquote></body></html>"""


def test_headings_quotes_and_bold_words_are_kept_and_menus_left_out():
    result = read(PAGE)
    assert [(d.content, d.meta["section"], d.meta["kind"]) for d in result["documents"]] == [
        ("刘昫等撰。", ["旧唐书"], "text"),
        ("安禄山，营州柳城杂种胡人也。\n母阿史德氏。", ["旧唐书", "卷二百"], "text"),
        ("史臣曰：治乱有数。", ["旧唐书", "卷二百"], "quote"),
    ]
    assert (result["skipped"], result["documents"][0].meta["title"]) == ([], "旧唐书 & 注")
    assert result["documents"][0].meta["anchor"]["path"].startswith("/html/body/p")
    assert result["documents"][0].meta["file_path"] == "a.html"


def test_the_words_below_more_levels_than_a_parser_reads_are_kept_and_told_of():
    deep = "<div>" * 3_000 + "<p>deep</p>" + "</div>" * 3_000
    result = read(f"<html><body><p>first</p>{deep}<p>last</p></body></html>")
    assert [document.content for document in result["documents"]] == ["first", "deep", "last"]
    (warning,) = result["warnings"]
    assert "nested too deeply" in warning


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("He said <q>go</q> and <q>“stay”</q>.", "He said “go” and “stay”."),
        ("<label>Name</label><button>Send</button><select><option>One</option></select>", "Name"),
        ('It fell<span class="mw-editsection">[<a href="/e">edit</a>]</span>.', "It fell."),
    ],
)
def test_a_page_is_read_as_it_is_shown(body, text):
    assert [document.content for document in read(f"<html><body><p>{body}</p></body></html>")["documents"]] == [text]


@pytest.mark.parametrize("page", ["<html><body> </body></html>", "<script>x</script>", "<html>"])
def test_a_page_without_text_is_named(page):
    (entry,) = read(page)["skipped"]
    assert (entry["source"], entry["cause"]) == ("a.html", "no text was found in it")
