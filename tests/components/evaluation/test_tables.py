"""One table and one report, as a terminal, Markdown and a page show them."""

from shiguan.evaluation.report import write_report
from shiguan.evaluation.tables import Report, Section, Table, print_report, report_markdown

HOSTILE = '<b onclick="x">[link](http://example.org) | `code`'
TABLE = Table(["metric", ">mean"], [["Recall@5", ("0.900", "0.8 to 1.0")], [HOSTILE, "worse"]])


def test_a_table_is_markdown_with_numbers_at_the_right():
    head, rule, first, second = TABLE.to_markdown().split("\n")
    assert (head, rule, first) == ("| metric | mean |", "|---|---:|", "| Recall@5 | 0.900 (0.8 to 1.0) |")
    assert second == r'| &lt;b onclick="x"&gt;\[link\](http://example.org) \| \`code\` | worse |'


def test_a_cell_of_a_page_repeats_its_heading_so_that_a_phone_can_list_it(tmp_path):
    report = Report("Run", "", [Section("Quality", table=TABLE)])
    page = write_report(report, tmp_path / "report").read_text(encoding="utf-8")
    assert '<td class="number" data-label="mean"><span>0.900<small>0.8 to 1.0</small></span></td>' in page
    assert '<td class="number worse" data-label="mean"><span>worse</span></td>' in page
    assert "<b onclick" not in page


def test_a_report_says_the_same_on_a_terminal_and_in_markdown(capsys):
    only = Section("On the page alone", table=TABLE, whole=True)
    report = Report("Run", "100 questions", [Section("Quality", "Means.", TABLE), only], ["Gate: it holds."], ["slow"])
    print_report(report)
    out, text = capsys.readouterr().out, report_markdown(report)
    for words in ("Run", "100 questions", "Quality", "Means.", "Recall@5", "0.900", "Gate: it holds.", "slow"):
        assert words in out
        assert words in text
    assert "On the page alone" not in out + text
