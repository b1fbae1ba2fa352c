import json
from dataclasses import replace

import pytest
from bench.quality.comparison import breach, compare_results, comparison_table, conclusion, main
from bench.quality.differences import compare_metric

from shiguan.errors import RefusedError
from shiguan.evaluation.report import run_report, write_report
from shiguan.evaluation.results import RESULTS_FILE, QuestionResult, Results, read_results
from shiguan.resources import write_json

RUN = {
    "deployment": "embedded",
    "mode": "simple",
    "set": "tiny",
    "data": {"queries.jsonl": "aa"},
    "llm": {"model": "extractive"},
    "machine": {"cores": 2},
    "commit": "0123456789abcdef",
    "finished": "2026-01-01T00:00:00+00:00",
}
HOSTILE = '<script>alert(1)</script> & "quoted" | [link](http://example.org) 史'


def results(right, *, kind="retrieval", text="Who?", **changes):
    questions = [
        QuestionResult(
            id=f"q{number}",
            metrics={
                "recall@5": float(number < right),
                "recall@10": float(number < right),
                "context_tokens": 100.0,
                "latency_ms": 5.0 + number % 3,
                "llm_calls": 0.0,
            },
            stratum="hard" if number % 2 else "easy",
            language="en",
            timings_ms={"retriever": 3.0, "total": 5.0 + number % 3},
            details={"question": text, "gold": ["d1"], "found": [HOSTILE]},
        )
        for number in range(100)
    ]
    return Results(kind=kind, run={**RUN, **changes}, questions=questions)


def test_a_lost_metric_shuts_the_gate_and_a_kept_one_does_not():
    lost = compare_results(results(95), results(85), {"recall@5": 0.02})
    assert lost.breaches == ["Recall@5 went from 0.950 to 0.850, 0.100 worse where 0.020 is tolerated"]
    assert [d.verdict for d in lost.differences if d.metric == "recall@5"] == ["worse"]
    kept = compare_results(results(95), results(94), {"recall@5": 0.02})
    assert kept.breaches == []
    assert conclusion(kept) == ["Gate: it holds, no gated metric got worse by more than its tolerance."]


def test_calls_stand_beside_quality_and_latency_without_a_verdict():
    slower = results(95)
    slower = replace(
        slower,
        questions=[replace(q, metrics=q.metrics | {"latency_ms": 20.0, "llm_calls": 1.0}) for q in slower.questions],
    )
    verdicts = {d.metric: d.verdict for d in compare_results(results(95), slower, {}).differences}
    assert verdicts["latency_ms"] == "not judged"  # the runs came one after the other
    assert verdicts["llm_calls"] == "worse"
    assert verdicts["recall@5"] == "no difference shown"


def test_a_gated_metric_that_is_gone_shuts_the_gate():
    gone = results(95)
    gone = replace(gone, questions=[replace(q, metrics={"recall@10": q.metrics["recall@10"]}) for q in gone.questions])
    found = compare_results(results(95), gone, {"recall@5": 0.02})
    assert found.breaches == ["Recall@5 is no longer measured: no question of run B has it"]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (results(95, kind="answers"), "One run is of retrieval, the other of answers"),
        (results(95, text="Another?"), "100 are in one only, or have another text (q0, q1, q2)"),
        (
            replace(results(95), questions=results(95).questions[:90]),
            "10 are in one only, or have another text (q90, q91, q92)",
        ),
        (replace(results(95), questions=results(95).questions * 2), "the same question twice"),
    ],
)
def test_runs_on_different_questions_are_refused(other, message):
    with pytest.raises(RefusedError) as raised:
        compare_results(results(95), other, {})
    assert message in str(raised.value)


def test_what_differs_besides_the_change_is_noted():
    found = compare_results(results(95), results(95, machine={"cores": 64}, data={"queries.jsonl": "bb"}), {})
    assert found.notes == [
        "The runs differ in the files measured on, not only in what was changed.",
        "The runs differ in the machine, not only in what was changed.",
    ]


def test_results_survive_their_file(tmp_path):
    write_json(tmp_path / RESULTS_FILE, results(95).to_json())
    again = read_results(tmp_path)
    assert again == results(95)
    assert again.estimates()["recall@5"].value == 0.95
    data = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert data["metrics"]["recall@5"]["value"] == 0.95
    assert set(data["strata"]) == {"stratum: easy", "stratum: hard"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "`it`: Invalid JSON"),
        ("[]", "`it`: Input should be an object"),
        ('{"format": "shiguan-evaluation/0"}', "`format`: Input should be 'shiguan-evaluation/1'"),
        ('{"format": "shiguan-evaluation/1", "kind": "retrieval", "run": {}}', "`questions`: Field required"),
        (
            '{"format": "shiguan-evaluation/1", "kind": "retrieval", "run": {}, "questions": []}',
            "`questions`: List should have at least 1 item",
        ),
    ],
)
def test_a_file_that_is_no_results_is_refused(tmp_path, text, message):
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(RefusedError, match=message):
        read_results(tmp_path / "results.json")
    with pytest.raises(RefusedError, match="cannot be read: No such file"):
        read_results(tmp_path / "none.json")


def test_the_page_loads_nothing_and_escapes_everything(tmp_path):
    run = results(80, text=HOSTILE)
    run.questions[0] = replace(run.questions[0], stratum=HOSTILE)
    page = write_report(run_report(run), tmp_path / "report").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert 'src="' not in page and 'href="' not in page and "@import" not in page and "url(" not in page
    assert "prefers-color-scheme: dark" in page
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "<script" not in markdown
    assert r"\[link\]" in markdown
    assert "| Recall@5 | 0.800 |" in markdown


def test_losses_are_summed_up_in_the_order_of_the_stages():
    run = results(97)
    for at, stage in enumerate(("refused", "not_found_by_bm25", "refused")):
        lost = {**run.questions[at].details, "lost": {"stage": stage}}
        run.questions[at] = replace(run.questions[at], details=lost)
    [section] = [section for section in run_report(run).sections if section.heading == "Where it was lost"]
    assert section.text == "Of 3 questions that went wrong: 1 not found by BM25, 2 read, and the question refused."
    assert section.table.rows == [["not found by BM25", "1", "0.33"], ["read, and the question refused", "2", "0.67"]]
    assert "Where it was lost" not in [section.heading for section in run_report(results(97)).sections]


def test_a_comparison_is_written_for_people_and_programs(tmp_path, capsys):
    before, after = results(95, text=HOSTILE), results(85, text=HOSTILE)
    comparison = compare_results(before, after)
    for name, run in (("before", before), ("after", after)):
        (tmp_path / name).mkdir()
        write_json(tmp_path / name / RESULTS_FILE, run.to_json())
    runs = [str(tmp_path / name) for name in ("before", "after")]
    assert main([*runs, "--output", str(tmp_path)]) == 1
    assert f"Gate: {comparison.breaches[0]}" in capsys.readouterr().out
    assert main([*runs, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {d["metric"]: d["verdict"] for d in found["differences"]}["recall@5"] == "worse"
    assert main([runs[0], runs[0]]) == 0
    page = (tmp_path / "comparison.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert '<td class="text worse" data-label="verdict"><span>worse</span></td>' in page
    data = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    assert data["breaches"] == comparison.breaches
    assert {row["metric"]: row["gated"] for row in data["differences"]}["recall@5"] is True
    text = (tmp_path / "comparison.md").read_text(encoding="utf-8")
    assert "about 0.2 would be called different by chance" in text  # five metrics at 5 %
    assert comparison_table(comparison).rows[0][:3] == ["Recall@5", "0.950", "0.850"]


def test_a_gate_shuts_beyond_its_tolerance_and_never_for_one_question():
    ten = compare_metric("recall@5", [1.0] * 100, [1.0] * 90 + [0.0] * 10)
    assert "Recall@5 went from 1.000 to 0.900, 0.100 worse where 0.020 is tolerated" in str(breach(ten, 0.02))
    assert breach(ten, 0.1) is None
    one = compare_metric("correct_refusal", [1.0] * 16, [1.0] * 15 + [0.0])
    assert breach(one, 0.03) is None
    assert breach(compare_metric("tenant_kept", [1.0] * 16, [1.0] * 15 + [0.0]), 0.0) is not None
    refusals = compare_metric("false_refusal", [0.0] * 50, [1.0] * 5 + [0.0] * 45)
    assert breach(refusals, 0.03) is not None
    assert breach(compare_metric("recall@5", [0.0] * 50, [1.0] * 50), 0.0) is None
