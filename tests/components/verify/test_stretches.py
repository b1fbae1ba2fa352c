"""Cells below each other can be quoted like one text; their places are those in the passage."""

from haystack import Document

from shiguan.reading.folded import fold
from shiguan.verify.stretches import Stretch

ROWS = "日登山望烽火 | By day we climb\n黄昏饮马 | At dusk | we water\n\n行人刁斗"
TEXT = f"Before.\n\n{ROWS}"
BLOCKS = [{"kind": "text", "start": 0, "end": 7}, {"kind": "table", "start": 9, "end": len(TEXT)}]


def test_a_column_is_one_text_with_the_places_of_its_cells():
    documents = [Document(content="Other."), Document(content=TEXT, meta={"blocks": BLOCKS})]
    han, english = (column.folded for column in Stretch(documents).columns)
    [at] = fold("望烽火，黄昏饮马，行").find(han)
    start, end = han.span(at, at + 8)
    assert (7 + TEXT.index("望"), 7 + TEXT.index("行") + 1) == (start, end)
    assert list(fold("By day we climb at dusk").find(english))
    assert not list(fold("climb we water").find(english))  # the third column has one cell


def test_text_that_is_no_table_has_no_columns():
    documents = [Document(content=TEXT, meta={"blocks": BLOCKS[:1]}), Document(content=ROWS)]
    assert Stretch(documents).columns == []
