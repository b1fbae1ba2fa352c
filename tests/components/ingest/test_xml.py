"""Markup of unknown origin becomes a tree with local names, or nothing, and never more than it holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from shiguan.ingest.epub.trees import decode_markup, local_name, parse_xhtml, parse_xml, tokens


def flat(data):
    root, problems = parse_xhtml(data)
    return etree.tostring(root, encoding="unicode"), problems


def test_well_formed_xhtml_keeps_its_tree_under_local_names():
    root, problems = parse_xhtml(
        b'<h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:Body><h:p>a</h:p></h:Body></h:html>'
    )
    assert [node.tag for node in root.iter()] == ["html", "body", "p"]
    assert problems == []


def test_comments_and_instructions_do_not_split_text():
    root, _ = parse_xhtml(b"<html><body><p>a<!-- x -->b<?y z?>c</p></body></html>")
    assert root[0][0].text == "abc"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbf<a>\xe5\xad\x97</a>", "<a>字</a>"),
        ("\ufeff<a>字</a>".encode("utf-16-be"), "<a>字</a>"),
        ("<abcd>字</abcd>".encode("utf-16-le"), "<abcd>字</abcd>"),
        (
            '<?xml version="1.0" encoding="Big5"?><a>國</a>'.encode("big5"),
            '<?xml version="1.0" encoding="Big5"?><a>國</a>',
        ),
        ("<meta charset=gbk><a>国</a>".encode("gbk"), "<meta charset=gbk><a>国</a>"),
        (b"", ""),
    ],
)
def test_encoding_is_found(data, text):
    assert decode_markup(data) == (text, [])


def test_forbidden_characters_are_taken_out_and_counted():
    assert decode_markup(b"a\x00b\x0bc\td\n") == ("abc\td\n", ["2 control characters were removed"])


def test_doctype_is_cut_with_its_entities():
    text, problems = flat(b"<!DOCTYPE html [<!ENTITY a \"]>\"><!ENTITY b 'x'>]><html><p>&a;&b;&eacute;</p></html>")
    assert text == "<html><p>&amp;a;&amp;b;é</p></html>"
    assert problems == ["it declares entities of its own, which are not expanded"]


def test_public_doctype_is_no_problem():
    doctype = b'<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">'
    assert flat(doctype + b"<html><p>a&nbsp;b</p></html>") == ("<html><p>a\u00a0b</p></html>", [])


def test_unfinished_doctype_does_not_swallow_the_document():
    text, _ = flat(b'<!DOCTYPE html [<!ENTITY a "b <html><body><p>here</p></body></html>')
    assert "<p>here</p>" in text


def test_markup_characters_from_entities_stay_text():
    assert flat(b"<html><p>&LT;b&GT; &AMP;</p></html>") == ("<html><p>&lt;b&gt; &amp;</p></html>", [])


def test_package_files_are_recovered():
    root = parse_xml(b"<package><manifest><item id='a'></manifest><spine/>")
    assert [node.tag for node in root.iter()][:3] == ["package", "manifest", "item"]
    assert parse_xml(b"") is None


def test_names_and_tokens_ignore_prefixes():
    assert [local_name(n) for n in ("{urn:x}Type", "epub:type", "type")] == ["Type", "type", "type"]
    node = etree.fromstring('<p xmlns:e="urn:x" e:type="A b" role="C" class="d"/>')
    assert tokens(node, "type", "role") == {"a", "b", "c"}


@given(st.binary(max_size=200))
def test_no_bytes_raise(data):
    parse_xml(data)
    root, problems = parse_xhtml(data)
    assert root is not None or problems


@given(st.text(st.sampled_from("<>&;!/='\"[]?-ab DOCTYPEhtml#0x"), max_size=120))
def test_no_tag_soup_raises(text):
    parse_xhtml(text.encode())
    parse_xml(text.encode())
