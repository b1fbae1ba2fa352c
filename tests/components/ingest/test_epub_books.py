"""Real books of the public data: what a reader would check first, and that every anchor leads back to its text."""

import re
from copy import deepcopy

import pytest
from lxml import etree

from shiguan.ingest.archives import SafeArchive
from shiguan.ingest.epub.trees import parse_xhtml
from shiguan.ingest.epub_to_document import EPUBToDocument

BOOKS = [
    "childrens-literature", "cole-voyage-of-life", "epub30-test-0100", "epub30-test-0300", "jiutangshu_dev",
    "kusamakura-japanese-vertical-writing", "minimal-v2", "minimal-v3", "moby-dick", "regime-anticancer-arabic",
    "wasteland",
]  # fmt: skip

BLOCKS = "p div li br td th tr h1 h2 h3 dt dd blockquote text caption".split()


def own_text(element):
    """The element's text, computed without the code under test: no ruby readings, white space collapsed."""
    copy = deepcopy(element)
    copy.tail = None
    etree.strip_elements(
        copy, "rt", "rp", "script", "style", "audio", "video", "iframe", "annotation-xml", with_tail=False
    )
    for node in copy.iter():
        if node.tag in BLOCKS:
            node.text = " " + (node.text or "")
            node.tail = " " + (node.tail or "")
    return " ".join(re.sub("[\u00ad\u200b\ufeff\u2061-\u2064]", "", "".join(copy.itertext())).split())


@pytest.mark.parametrize("name", BOOKS)
def test_every_book_is_read_without_complaint_and_every_anchor_leads_back_to_its_text(public_data, name):
    path = public_data / "epub" / f"{name}.epub"
    result = EPUBToDocument().run(sources=[path])
    documents = result["documents"]
    assert documents
    assert result["skipped"] == []
    assert all("skipped (not body text)" in warning for warning in result["warnings"])
    order = [document.meta["anchor"]["spine"] for document in documents]
    assert order == sorted(order)
    trees, texts = {}, {}
    archive = SafeArchive(path.read_bytes(), source=name)
    for href in {d.meta["anchor"]["href"] for d in documents}:
        trees[href], _ = parse_xhtml(archive.read(href))
    for document in documents:
        anchor = document.meta["anchor"]
        found = trees[anchor["href"]].xpath(anchor["path"])
        assert len(found) == 1, anchor
        if document.content.startswith("[Image: "):
            assert document.content[8:-1] == " ".join(found[0].get("alt").split())
            continue
        if found[0] not in texts:
            texts[found[0]] = own_text(found[0])
        # Up to the first note, formula, cell border or number of the printed page the block is the book's text.
        start = re.split(r" ?\[(?:Note: |Image: )| \||\d|[\\&_{]", document.content)[0]
        # Formulas are written with other spaces.
        start = "".join(start.split())[:25]
        assert "".join(texts[found[0]][anchor["offset"] :].split()).startswith(start), (anchor, start)
        for note in document.meta.get("notes", []):
            assert len(trees[note["anchor"]["href"]].xpath(note["anchor"]["path"])) == 1


def test_wasteland_has_its_fifty_notes_in_the_poem(public_data):
    documents = EPUBToDocument().run(sources=[public_data / "epub" / "wasteland.epub"])["documents"]
    assert sum(len(d.meta.get("notes", [])) for d in documents) == 50
    assert sum(d.content.count("[Note: ") for d in documents) == 50
    (stanza,) = [d for d in documents if "What are the roots that clutch" in d.content]
    assert "Out of this stony rubbish? Son of man, [Note: Cf. Ezekiel 2:1.]\nYou cannot say" in stanza.content
    assert stanza.meta["section"] == ["I. THE BURIAL OF THE DEAD"]
    assert "Starnbergersee\nWith a shower" in documents[2].content
    assert "into the Hofgarten,\nAnd drank coffee" in documents[2].content, "the line number 10 stands in the margin"
    (german,) = [d for d in documents if d.content.startswith("Frisch weht der Wind")]
    assert (german.meta["kind"], german.meta["language"]) == ("quote", "de")
    assert documents[0].meta["kind"] == "quote", "the epigraph stands on the title page"
