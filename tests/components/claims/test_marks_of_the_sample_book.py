"""Replies about the sample book, scripted with right, wrong and missing marks: what is shown is never better than its citations."""

import random
import re

import pytest
from examples.build_book import build_book
from haystack import Document

from shiguan.claims.checker import checker_of, numbered_passages
from shiguan.claims.citations import cite_claim
from shiguan.ingest.epub_to_document import EPUBToDocument
from shiguan.ingest.parent_child_splitter import ParentChildSplitter
from shiguan.ingest.source_stamper import SourceStamper
from shiguan.text.name_forms import names_of
from shiguan.text.sentences import sentence_spans

RANK = ("contradicted", "unsupported", "partial", "supported")
# Small changes of a true sentence, as a model makes them.
CHANGES = (
    lambda said, other: said,
    lambda said, other: re.sub(r"^(?:In|On|By) [\w ,]{1,30}? (?=[a-z]+ )", "", said),
    lambda said, other: re.sub(r",[^,]*,", "", said, count=1),
    lambda said, other: " ".join(said.split()[: len(said.split()) // 2]) + ".",
    lambda said, other: f"{said.rstrip('.。')}, and {other}" if said.isascii() else f"{said.rstrip('。')}，{other}",
    lambda said, other: re.sub(r"^(?:He|She|They|It)\b", (names_of(other) or ("The court",))[0], said),
)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    epub = build_book(tmp_path_factory.mktemp("book") / "an-lushan-rebellion.epub")
    read = EPUBToDocument().run(sources=[epub])["documents"]
    read = SourceStamper().run(read, tenant_id="acme")["documents"]
    parents = ParentChildSplitter().run(documents=read)["parents"]
    return [parent.content for parent in parents if len(sentence_spans(parent.content)) > 3]


def sentences(text):
    return [" ".join(text[start:end].split()) for start, end in sentence_spans(text) if 20 < end - start < 300]


@pytest.mark.parametrize("replies", [5, pytest.param(25, marks=pytest.mark.slow)])
def test_no_claim_is_better_than_its_citations(book, replies):
    chance, seen = random.Random(0), 0
    for _ in range(replies):
        texts = chance.sample(book, 6)
        numbered = numbered_passages([Document(content=text, meta={"number": at}) for at, text in enumerate(texts, 1)])
        told = [sentence for text in texts for sentence in sentences(text)]
        reply = " ".join(
            f"{chance.choice(CHANGES)(*chance.sample(told, 2))} [{chance.randint(1, 7)}]" for _ in range(3)
        )
        checker = checker_of(numbered)
        for claim in checker.split(reply).claims:
            cited = cite_claim(claim, checker, numbered)
            if cited.support is None:
                continue
            verdicts = [own.verdict for _, own in cited.found]
            assert not {"unsupported", "contradicted"} & set(verdicts)
            if cited.support.verdict in ("supported", "partial"):
                assert max(map(RANK.index, verdicts)) >= RANK.index(cited.support.verdict)
                assert cited.support.score <= max(own.score for _, own in cited.found)
                seen += 1
    assert seen > replies
