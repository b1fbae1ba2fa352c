"""A whole text checked against a library: its parts in order, claims by the checker of answers, and what is refused."""

import re

import pytest
from haystack import Document
from tests.components.claims.test_sources_that_disagree import DISAGREE
from tests.doubles.small_library import TENANT, small_library

from shiguan.claims.checker import ClaimChecker, checker_of
from shiguan.engine.runner import Runner
from shiguan.engine.verification import MOST_CHARACTERS, check_claim, read_document
from shiguan.errors import RefusedError
from shiguan.stores.embedded.shards import close_all_shards

TEXT = """The book says that “the salt monopoly was set up by Diwu Qi in 758”. It also has "It paid a third of the \
state's income by 780".

Yang Yan proposed the two-tax reform in 780. Hello there! The wall of the capital was nine metres high.

> 安祿山在范陽起兵。次年六月，潼關失守
"""


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    data = small_library(tmp_path_factory.mktemp("verified"))
    with Runner(data_dir=data) as runner:
        yield runner
    close_all_shards()


def test_a_text_is_checked_part_by_part_in_its_order(runner):
    told = []
    found = runner.verify(TEXT, tenant_id=TENANT, on_item=lambda *one: told.append(one))
    assert [(item["kind"], item["verdict"]) for item in found["items"]] == [
        ("quotation", "found"), ("quotation", "altered"), ("claim", "supported"), ("claim", "nothing"),
        ("claim", "contradicted"), ("quotation", "found"),
    ]  # fmt: skip
    assert [(item, count) for item, _, count in told] == [(item, 6) for item in found["items"]]
    assert [number for _, number, _ in told] == [1, 2, 3, 4, 5, 6]
    assert found["counts"] == {
        "quotation": {"found": 2, "altered": 1},
        "claim": {"supported": 1, "nothing": 1, "contradicted": 1},
    }
    altered, claim = found["items"][1:3]
    assert altered["difference"] == [{"quoted": "a third", "stands": "half"}]
    assert (claim["source"], claim["quote"]) == ("tax.txt", "Yang Yan proposed the two-tax reform in 780.")
    for item in found["items"]:
        assert re.sub(r"\W", "", item["text"]) in re.sub(r"\W", "", TEXT[slice(*item["in_text"])])


def test_a_claim_has_the_verdict_of_the_checker_of_answers():
    passage = Document(id="p", content="Yang Yan proposed the two-tax reform in 780.", meta={"source": "tax.txt"})
    checker = checker_of({1: passage})
    assert isinstance(checker, ClaimChecker)
    for claim in (
        "Yang Yan proposed the two-tax reform in 780.",
        "Yang Yan proposed the two-tax reform in 790.",
        "Yang Yan was fond of cats and dogs.",
    ):
        [checked] = checker.check(checker.split(claim))
        found = check_claim(claim, lambda _: [passage])
        assert (found["verdict"], found["score"]) == (checked.support.verdict, round(checked.support.score, 4))


def test_a_reason_speaks_of_the_text_that_is_checked():
    revenue = "By the end of the 770s the salt revenue had grown from 400,000 to more than six million strings a year."
    passage = Document(id="p", content=revenue, meta={"source": "salt.txt"})
    found = check_claim("The salt revenue had grown to nine million strings a year.", lambda _: [passage])
    assert found["reason"] == "the passage has “six million” where the claim has “nine million”"


def test_a_sentence_of_which_only_a_part_is_there_is_shown_that_part():
    passages = [
        Document(id="a", content="The fleet of Carthage was paid for by merchants.", meta={"source": "a"}),
        Document(id="b", content="In 757 An Lushan was murdered by An Qingxu at Luoyang.", meta={"source": "b"}),
    ]
    found = check_claim("An Lushan was murdered by An Qingxu; his horse ate twelve golden apples.", lambda _: passages)
    assert (found["verdict"], found["source"]) == ("partial", "b")
    assert found["reason"] == "only a part of it is there: no passage has twelve"


def test_a_sentence_that_is_read_in_part_is_not_supported(runner):
    supported = "Yang Yan proposed the two-tax reform in 780"
    long = f"{supported}{' ' * 2000}and rode to Samarkand on a camel."
    verdicts = [runner.verify(text, tenant_id=TENANT)["items"][0] for text in (f"{supported}.", long)]
    assert [item["verdict"] for item in verdicts] == ["supported", "partial"]
    assert verdicts[1]["reason"] == "only its first 2,000 characters were checked"


def test_vectors_are_asked_only_where_words_do_not_suffice():
    passage = Document(id="p", content="Yang Yan proposed the two-tax reform in 780.", meta={"source": "tax.txt"})
    asked = []
    check_claim("In 780, Yang Yan proposed the two-tax reform.", lambda _: [passage], lambda _: asked.append(1) or [])
    assert not asked
    check_claim("Li Bai drowned in the river.", lambda _: [passage], lambda _: asked.append(1) or [])
    assert asked == [1]


def test_another_source_that_has_something_else_there_is_shown():
    first, second, differs = DISAGREE["number"]
    passages = [
        Document(id=name, content=text, meta={"source": name}) for name, text in (("a.txt", first), ("b.txt", second))
    ]
    for claim, own, other in ((first, "a.txt", "b.txt"), (second.split(". ")[-1], "b.txt", "a.txt")):
        found = check_claim(claim, lambda _: passages)
        assert (found["verdict"], found["source"], found["against"]["source"]) == ("supported", own, other)
        assert "another source has" in found["reason"]
    assert differs in found["reason"]


def test_quotations_come_with_ids_and_sources(runner):
    rows = [
        {"id": "x", "text": "set up by Diwu Qi in 758", "source": "salt.txt"},
        {"id": 7, "text": "set up by Diwu Qi in 758", "source": "tax.txt"},
        {"id": "y", "text": "ab"},
    ]
    found = [(item["id"], item["verdict"]) for item in runner.verify(rows, tenant_id=TENANT)["items"]]
    assert found == [("x", "found"), (7, "misattributed"), ("y", "too_short")]


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_quotations_are_answered(runner, count):
    found = runner.verify(({"id": n, "text": "was set up by Diwu Qi in 758"} for n in range(count)), tenant_id=TENANT)
    assert found["counts"] == {"quotation": {"found": count}, "claim": {}}


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("word", 1), ('""  “” 「」 \'\' "', 0), ("", 0), ("Тогда они ушли домой.", 1),
        ("<script>alert(1)</script> “<b>Diwu Qi</b>”", 1), ("\x1b[31mred “\x1b]0;title\x07 quoted words here”", 1),
    ],
)  # fmt: skip
def test_odd_texts_are_checked_or_left_alone(runner, text, counts):
    assert len(runner.verify(text, tenant_id=TENANT)["items"]) == counts


def test_an_empty_library_and_rows_that_are_none_are_refused(runner):
    with pytest.raises(RefusedError, match="has nothing in this library"):
        runner.verify("text", tenant_id="nobody")
    for row in ("one two three", None, ["text"], 7, {"id": 1}, {"text": "one two", "from": "salt.txt"}):
        with pytest.raises(RefusedError, match=r'Quotation 2 is not .*"text".* Correct it\.'):
            runner.verify([{"text": "one two three"}, row], tenant_id=TENANT)
    with pytest.raises(RefusedError, match="the limit is 5,000,000"):
        runner.verify("a" * (MOST_CHARACTERS + 1), tenant_id=TENANT)


def test_a_library_that_is_still_read_is_told(runner, monkeypatch):
    half = [{"source": "salt.txt", "words": 1, "units": 4}]
    monkeypatch.setattr(runner._library, "sources", lambda tenant_id: half)
    [warning] = runner.verify("word", tenant_id=TENANT)["warnings"]
    assert warning.startswith("salt.txt is still being read: 1 of 4 retrieval units")


def test_marks_that_do_not_close_are_told(runner):
    assert runner.verify("He says “one two", tenant_id=TENANT)["warnings"] == [
        "Quotation marks that do not close within their paragraph were ignored: 1."
    ]


def test_files_are_read_as_text_or_as_an_ingest_reads_them(tmp_path):
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("Salt")
    document.add_paragraph("He writes “salt was taxed”.")
    document.save(str(tmp_path / "draft.docx"))
    assert read_document(tmp_path / "draft.docx", "embedded").split() == "He writes “salt was taxed”.".split()
    (tmp_path / "draft.md").write_bytes("> 安禄山\n".encode("gb18030") * 40)
    assert read_document(tmp_path / "draft.md", "embedded").startswith("> 安禄山")
    (tmp_path / "bad.docx").write_bytes(b"no archive")
    with pytest.raises(RefusedError, match=r"bad\.docx cannot be read"):
        read_document(tmp_path / "bad.docx", "embedded")
    with pytest.raises(RefusedError, match="is not text in an encoding"):
        read_document(b"\x00\x01\x02\xff\xfe", "embedded")
