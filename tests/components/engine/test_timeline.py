import json

import pytest
from haystack import Document
from tests.doubles.small_library import own_library

from shiguan.cli import main
from shiguan.engine.library import Library
from shiguan.engine.timeline import matched, time_words, timeline
from shiguan.errors import RefusedError

ROWS = [
    "【齐纪 建元元年正月（甲辰）】\n以江州刺史萧嶷为都督荆、湘等八州诸军事。",
    "初，沈攸之欲聚众，开民相告。",
    "二月，丙子，邵陵殇王友卒。",
    "三月，癸卯，宋帝禅位于齐。",
    "二年春正月戊戌朔，大赦。",
    "建元元年。",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rows = "".join(json.dumps({"id": str(at), "text": text}, ensure_ascii=False) + "\n" for at, text in enumerate(ROWS))
    return own_library(tmp_path_factory.mktemp("timeline"), default={"qi.jsonl": rows})


def test_lines_are_in_the_order_of_time_and_conversions_are_conversions(folder):
    told = timeline(Library(data_dir=folder), tenant_id="default", when="479")
    assert [(time_words(line), line["how"]) for line in told["lines"]][:4] == [
        ("齐纪 建元元年正月甲辰, 8 February 479", "written"),
        ("[齐纪 建元元年正月], 479", "carried"),
        ("[齐纪 建元元年二月丙子], 12 March 479", "carried"),
        ("[齐纪 建元元年三月癸卯], 8 April 479", "carried"),
    ]
    assert told["lines"][0]["text"] == ROWS[0]


def test_years_limit_the_lines(folder):
    library = Library(data_dir=folder)
    assert {line["from"] for line in timeline(library, tenant_id="default")["lines"]} == {479, 480}
    assert {line["from"] for line in timeline(library, tenant_id="default", when="480..500")["lines"]} == {480}
    assert timeline(library, tenant_id="default", when="1066")["lines"] == []
    assert timeline(library, tenant_id="other")["lines"] == []
    with pytest.raises(RefusedError, match="no source"):
        timeline(library, tenant_id="default", sources=["none.epub"])
    with pytest.raises(RefusedError, match="`when` is ''"):  # an unset variable of a shell would mean all years
        timeline(library, tenant_id="default", when="")


def test_what_is_left_out_is_counted(folder, monkeypatch):
    monkeypatch.setattr("shiguan.engine.timeline.MOST_LINES", 2)
    told = timeline(Library(data_dir=folder), tenant_id="default")
    assert len(told["lines"]) == 2
    assert told["count"] > 2


def test_the_command_prints_the_row_of_a_date_and_the_lines_of_a_text(tmp_path, capsys):
    table = "| Date | Event |\n|---|---|\n| Dec 755 | An Lushan rises |\n| Jan 757 | He is murdered |\n| Jan 763 | The end |\n"
    verse = "In 756 Luoyang fell,\nand nobody came."
    folder = own_library(tmp_path, default={"a.md": f"# War\n\n{table}\n## Song\n\n{verse}\n"})
    assert main(["timeline", "--when", "756..757", "--data-dir", str(folder)]) == 0
    assert capsys.readouterr().out == (
        "756\n  In 756 Luoyang fell,\n  and nobody came.\n  War · Song\nJan 757\n  Jan 757 | He is murdered\n  War\n"
    )


def test_the_command_prints_the_lines_of_a_question(folder, capsys):
    assert main(["timeline", "沈攸之", "--when", "479", "--data-dir", str(folder)]) == 0
    assert "沈攸之欲聚众" in capsys.readouterr().out
    assert main(["timeline", "--when", "建元十六年", "--data-dir", str(folder)]) == 2
    assert "no year 16" in capsys.readouterr().err
    assert main(["timeline", "--json", "--data-dir", str(folder)]) == 0
    assert json.loads(capsys.readouterr().out)["lines"][0]["western"] == "8 February 479"


def test_a_filter_by_years_holds_for_answers(folder, capsys):
    for when, found in (("480", True), ("481..500", False)):
        assert main(["search", "大赦", "--when", when, "--json", "--data-dir", str(folder)]) == (0 if found else 1)
        assert ("戊戌朔，大赦" in capsys.readouterr().out) is found


def found(name, text, language="zh"):
    return Document(
        content=text, meta={"language": language, "matches": [{"child_id": name, "start": 0, "end": len(text)}]}
    )


def test_a_question_finds_what_has_half_as_many_of_its_words_as_the_best():
    same, like = found("a", "贞观初，玄奘往西域。"), found("b", "炀帝使玄感于黎阳。")
    assert matched("玄奘", [like, same]) == {"a"}
    assert matched("玄感", [like, same]) == {"b"}
    assert matched("Who was Xuanzang?", [like, same, found("c", "The pilgrim Xuanzang.", "en")]) == {"a", "c"}
    assert matched("鲸", [like, same]) == {"a", "b"}  # none has a word, so that nothing tells them apart
    assert matched("玄奘", []) == set()
