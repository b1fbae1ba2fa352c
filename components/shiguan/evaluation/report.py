"""Makes the report of a run, and writes reports as Markdown and as a self-contained page."""

import statistics
from collections import Counter
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from shiguan.engine.why import LABELS
from shiguan.evaluation.metrics import metric
from shiguan.evaluation.results import QuestionResult, Results
from shiguan.evaluation.tables import Report, Section, Table, report_markdown
from shiguan.resources import write_whole
from shiguan.text.terminal import printable

SHOWN = 20
_GROUP_COLUMNS = (
    "recall@5", "recall@10", "ndcg@10", "context_recall", "correct", "citation_precision", "false_refusal",
)  # fmt: skip
_WORST_BY = ("correct", "recall@10")


def report_files(path: Path) -> tuple[Path, Path]:
    """Return the page and the Markdown of a report with this name, which may have one of their endings."""
    name = path.stem if path.suffix in (".html", ".md") else path.name
    return path.with_name(f"{name}.html"), path.with_name(f"{name}.md")


def write_report(report: Report, path: Path) -> Path:
    """Write a report as Markdown and as a page that loads nothing; return the path of the page."""
    page, markdown = report_files(path)
    write_whole(markdown, printable(report_markdown(report)).encode("utf-8", "replace"))
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("report.html.jinja", globals={"zip": zip})
    write_whole(page, printable(template.render(report=report)).encode("utf-8", "replace"))
    return page


def run_report(results: Results) -> Report:
    """Report a run: its means, groups and times, where questions were lost, and the worst of them."""
    parts = [_quality(results), _groups(results), _latency(results), _lost(results), _misses(results)]
    return Report(
        title=title_of(results),
        subtitle=subtitle_of(results),
        sections=[part for part in parts if part is not None],
        notes=results.run.get("notes", [])[:SHOWN],
    )


def title_of(results: Results) -> str:
    run = results.run
    kind = "Ranking and answers" if results.kind == "golden" else results.kind.capitalize()
    return f"{kind} of {run['mode']} ({run['deployment']})"


def subtitle_of(results: Results) -> str:
    """Return questions, files, model, commit and date of a run in a line."""
    run = results.run
    parts = [
        f"{len(results.questions):,} questions",
        run.get("set") or ", ".join(run.get("data", {})),
        f"answers by {run['llm']['model']}" if results.kind == "answers" else "",
        f"commit {run['commit'][:10]}{'+changes' if '+' in run['commit'] else ''}" if run.get("commit") else "",
        str(run.get("finished", ""))[:10],
    ]
    return " · ".join(part for part in parts if part)


def worst(results: Results) -> tuple[str, list[QuestionResult]]:
    """Choose the metric that decides, and sort the questions that fall short of 1 by it, worst first."""
    name = next((name for name in _WORST_BY if name in results.metrics), "")
    wrong = [question for question in results.questions if question.metrics.get(name, 1.0) < 1.0]
    return name, sorted(wrong, key=lambda question: question.metrics[name])


def _quality(results: Results) -> Section:
    known = [(metric(name), e) for name, e in results.estimates().items()]
    rows = [[kind.label, kind.format(e.value), kind.interval(e.low, e.high), f"{e.count:,}"] for kind, e in known]
    return Section(
        "Quality",
        f"Means over {len(results.questions):,} questions, with their 95 % intervals.",
        Table(["metric", ">mean", ">95 % interval", ">questions"], rows),
    )


def _groups(results: Results) -> Section | None:
    strata = results.strata()
    names = [name for name in _GROUP_COLUMNS if name in results.metrics]
    if not strata or not names:
        return None
    rows = []
    for group, questions in strata.items():
        estimates = results.estimates(questions)
        cells = [
            (metric(name).format(e.value), metric(name).interval(e.low, e.high))
            if (e := estimates.get(name))
            else "none"
            for name in names
        ]
        rows.append([group, f"{len(questions):,}", *cells])
    columns = ["group", ">questions", *(f">{metric(name).label}" for name in names)]
    return Section("By group", "Mean and 95 % interval; small groups have wide ones.", Table(columns, rows))


def _latency(results: Results) -> Section | None:
    """Compute median and 95th percentile of each stage, over the questions that passed it, `total` last."""
    stages: dict[str, list[float]] = {}
    for question in results.questions:
        for stage, value in question.timings_ms.items():
            stages.setdefault(stage, []).append(value)
    if not stages:
        return None
    rows = [
        [stage, f"{statistics.median(values):,.1f}", f"{sorted(values)[int(len(values) * 0.95)]:,.1f}"]
        for stage, values in sorted(stages.items(), key=lambda entry: entry[0] == "total")
    ]
    return Section(
        "Latency by stage",
        "Median, and what one question in twenty exceeds. Stages may run side by side.",
        Table(["stage", ">median ms", ">p95 ms"], rows),
    )


def _lost(results: Results) -> Section | None:
    counts = Counter(question.details["lost"]["stage"] for question in results.questions if "lost" in question.details)
    total = counts.total()
    seen = [(label, counts[stage]) for stage, label in LABELS.items() if counts[stage]]
    if not seen:
        return None
    counted = ", ".join(f"{count} {label}" for label, count in seen)
    return Section(
        "Where it was lost",
        f"Of {total} question{'' if total == 1 else 's'} that went wrong: {counted}.",
        Table(
            ["where", ">questions", ">share"], [[label, f"{count}", f"{count / total:.2f}"] for label, count in seen]
        ),
    )


def _misses(results: Results) -> Section | None:
    name, wrong = worst(results)
    if not wrong:
        return None
    shown = wrong[:SHOWN]
    more = f"; the {len(shown)} worst are shown" if len(wrong) > len(shown) else ""
    rows = [
        [
            (question.id, question.stratum or question.language),
            question.details.get("question", ""),
            question.details.get("answer") or ", ".join(str(found) for found in question.details.get("found", [])),
            ", ".join(str(gold) for gold in question.details.get("gold", [])),
            f"{question.metrics[name]:.2f}",
        ]
        for question in shown
    ]
    return Section(
        "Where it went wrong",
        f"{metric(name).label} is below 1 for {len(wrong):,} of {len(results.questions):,} questions{more}.",
        Table(["question", "text", "found", "expected", f">{metric(name).label}"], rows),
        whole=True,
    )
