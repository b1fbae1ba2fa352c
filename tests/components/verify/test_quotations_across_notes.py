"""Quotations that run across the notes of a book, or out of them."""

import pytest
from tests.doubles.small_library import own_library

from shiguan.engine.library import Library
from shiguan.stores.embedded.shards import close_all_shards
from shiguan.verify.quotations import QuotationSearch

PAGE = """<html lang="zh"><body><h1>乐部考</h1>
<p>龟兹乐部有工二十人<sup id="r1"><a href="#n1">[1]</a></sup>，衣皂丝布头巾。其工不得出关而返，凡十五万钱。</p>
<p>The siege of the town lasted ten weeks<sup id="r2"><a href="#n2">2</a></sup> and ended in the snow. No soldiers ever reached
the bridge.</p>
<ol class="references"><li id="n1"><a href="#r1">↑</a> 《音乐志》卷二十九载其衣冠甚详。</li>
<li id="n2"><a href="#r2">↑</a> The Mirror counts eleven weeks from the first assault to the last.</li></ol></body></html>"""


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    library = Library(data_dir=own_library(tmp_path_factory.mktemp("library"), a={"page.html": PAGE}))
    yield QuotationSearch(library.stores, "a")
    close_all_shards()


@pytest.mark.parametrize(("quotation", "quote"), [
    ("龟兹乐部有工二十人，衣皂丝布头巾。", "龟兹乐部有工二十人[脚注：《音乐志》卷二十九载其衣冠甚详。]，衣皂丝布头巾"),
    ("卷二十九载其衣冠甚详", "卷二十九载其衣冠甚详"),
    ("The siege of the town lasted ten weeks and ended in the snow.", "The siege of the town lasted ten weeks [Note: "
     "The Mirror counts eleven weeks from the first assault to the last.] and ended in the snow"),
    ("eleven weeks from the first assault to the last", "eleven weeks from the first assault to the last"),
    ("lasted ten weeks … ended in the snow", None),
])  # fmt: skip
def test_a_quotation_across_or_inside_a_note_is_found_once(search, quotation, quote):
    found = search.check(quotation)
    assert (found["verdict"], found["places"]) == ("found", 1)
    if quote is not None:
        assert found["quote"] == quote


@pytest.mark.parametrize(("quotation", "difference"), [
    ("龟兹乐部有工三十人，衣皂丝布头巾。", [{"quoted": "三", "stands": "二"}]),
    ("The siege of the town lasted ten months and ended in the snow.", [{"quoted": "months", "stands": "weeks"}]),
    ("Soldiers ever reached the bridge", [{"quoted": "", "stands": "No"}]),
    ("得出关而返，凡十五万钱", [{"quoted": "", "stands": "不"}]),
    ("衣皂丝布头巾。其工不得出关而返，凡十五", [{"quoted": "十五", "stands": "十五万钱"}]),
])  # fmt: skip
def test_a_changed_or_cut_quotation_is_altered(search, quotation, difference):
    found = search.check(quotation)
    assert (found["verdict"], found["difference"]) == ("altered", difference)
