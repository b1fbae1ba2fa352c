"""
Print what becomes of questions when a perfect reader answers them, in every mode: what is lost is lost by the
machinery.

    python -m bench.quality.readers [--data DIR] [--keep DIR] [--sets books en_squad2 ...]
                                    [--modes simple advanced precise]
                                    [--wording none keywords translation] [--count N] [--json FILE]
                                    [--strategy STRATEGY] [--budget TOKENS]

The reader (`bench/quality/scripted_model.py`) says the sentence that answers if it stands in its prompt, and marks it;
if not, it says that the sources do not say. The mode is the shipped file, the model an OpenAI-compatible address. A
helper that rewords replies nothing, a keyword form of the question, or its translation; one that imagines a passage
writes one about the right thing that is wrong in its details.

Columns: among the first ten passages; in the prompt; answered and cited right; refused without asking the model;
where nothing answers, not answered; calls of the model a question, its time without the model's, and the tokens of the
prompt that is answered. `--strategy` and `--budget` are those of the mode's `ContextBuilder`.
"""

import argparse
import json
import os
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from bench.quality.book_questions import FOLLOW_UPS, UNANSWERABLE, contains_quote, read_book_questions
from bench.quality.public_sets import DATA, is_missing
from bench.quality.retrieval_bars import BOOK_FILES, BOOKS, stamped_folder
from bench.quality.scripted_model import Script, ScriptedModel, serving

from shiguan.context.context_builder import Strategy
from shiguan.engine.runner import Runner
from shiguan.evaluation.json_lines import read_json_lines
from shiguan.evaluation.provenance import TENANT, ingest_corpus
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator
from shiguan.models.token_counter import TokenCounter
from shiguan.reading.question import read_question
from shiguan.text.languages import detect_language
from shiguan.text.sentences import sentence_spans
from shiguan.text.terms import question_subject

MODES = ("simple", "advanced", "precise")
WORDINGS = ("none", "keywords", "translation")
COUNT, SEED, DEPTH = 150, 7, 10
_MARK = re.compile(r" ?\[\d{1,3}\]")
# A word that an English question has for being one.
_ASKING = frozenset(
    "what which who whom whose when where why how many much did do does is was were are the a an of in to for by on at "
    "from with and or that this it its as be been has have had".split()
)


@dataclass(frozen=True)
class ReaderCase:
    """A question for the reader."""

    id: str
    group: str
    text: str
    sides: tuple[tuple[str, ...], ...] = ()
    translation: str = ""
    history: list[dict[str, str]] = field(default_factory=list)

    def script(self, mode: str, wording: str) -> Script:
        """Say what the model knows of it."""
        language = detect_language(self.text)
        other = "zh" if language != "zh" else "en"
        translated = self.translation or " ".join(read_question(self.text).translated_terms(other))
        wordings = {"none": [], "keywords": [keywords(self.text)], "translation": []}[wording]
        return Script(
            sides=self.sides,
            mode=mode,
            wordings=wordings,
            translations={other: translated} if wording == "translation" and translated else {},
            passage=imagined(self.text) if wording != "none" else "",
        )

    def answers(self, texts: Sequence[str]) -> bool:
        """Whether sentences of every side stand in some texts."""
        return all(any(contains_quote(text, side) for text in texts) for side in self.sides)


def stand_alone(case: ReaderCase) -> str:
    """Make a follow-up stand alone, as clumsily as a small model does: with the words of the question before it."""
    before = [turn["content"] for turn in case.history if turn["role"] == "user"][-1]
    if detect_language(case.text) in ("zh", "ja"):
        return f"关于{keywords(before)}，{case.text}"
    return f"About {keywords(before)}: {case.text}"


def keywords(question: str) -> str:
    """Give the words of a question that a search would be typed with."""
    if detect_language(question) in ("zh", "ja"):
        return question_subject(question).strip() or question
    words = [word for word in re.findall(r"[\w'’-]+", question) if word.lower() not in _ASKING]
    return " ".join(words) or question


def imagined(question: str) -> str:
    """Write a passage that is about what is asked and wrong in its details."""
    about = keywords(question)
    if detect_language(question) in ("zh", "ja"):
        return f"{about}，据旧籍所载，其事在某年三月，凡一百二十人与焉，后人多有异说，未可尽信。"
    return f"{about}: the old accounts put it in the March of that year, with a hundred and twenty men, and differ."


@dataclass(frozen=True)
class Outcome:
    """What became of one question."""

    case: ReaderCase
    in_ten: bool
    in_prompt: bool
    right: bool
    refused: bool
    answered: bool
    calls: int
    seconds: float
    tokens: int


class Readers:
    """Asks modes with the scripted model, over corpora that are ingested once."""

    def __init__(self, data: Path, keep: Path, model: ScriptedModel, context: dict[str, Any] | None = None) -> None:
        self.data, self.keep, self.model, self.context = data, keep, model, context or {}
        self._counter = TokenCounter()
        self._counter.warm_up()

    def library(self, files: Sequence[Path]) -> Path:
        """Ingest a corpus, unless that was done before."""
        folder = stamped_folder(self.keep, files)
        ingest_corpus(list(files), deployment="embedded", data_dir=folder)
        return folder

    def outcomes(self, library: Path, mode: str, cases: Sequence[ReaderCase], wording: str) -> Iterator[Outcome]:
        """Ask every question once."""
        with Runner("embedded", mode, data_dir=library) as runner:
            runner.warm_up()
            vars(runner.pipeline.get_component("context_builder")).update(self.context)
            for case in cases:
                yield self._outcome(runner, case, wording)

    def _outcome(self, runner: Runner, case: ReaderCase, wording: str) -> Outcome:
        options: dict[str, Any] = {"history": case.history} if case.history else {}
        if wording != "none" and runner.mode == "advanced":
            options["rewrite_method"] = "multi_query" if wording == "keywords" else "contextualize"
        script = case.script(runner.mode, wording)
        if case.history:
            script = replace(script, stand_alone=stand_alone(case))
        self.model.ask(script)
        started = time.process_time()
        answer = runner.ask(case.text[:2000], tenant_id=TENANT, **options)
        seconds = time.process_time() - started
        calls = [call for call in self.model.calls if call != "summary_tree"]
        read, tokens = self.model.had_the_answer, self._counter.count(self.model.answering_prompt)
        shown = options | {"top_k": DEPTH}
        self.model.ask(script)
        passages, _ = runner.search(case.text[:2000], tenant_id=TENANT, **shown)
        texts = [passage.content or "" for passage in passages[:DEPTH]]
        cited = [citation["quote"] for citation in answer["citations"] if citation["verdict"] != "quoted"]
        answered = answer["status"] == "answered"
        return Outcome(
            case,
            in_ten=bool(case.sides) and case.answers(texts),
            in_prompt=read,
            right=answered and case.answers([_MARK.sub("", answer["answer"])]) and case.answers(["\n".join(cited)]),
            refused="answer" not in calls,
            answered=answered,
            calls=len(calls),
            seconds=seconds,
            tokens=tokens,
        )


def book_cases(data: Path) -> list[ReaderCase]:
    """Read the questions on books."""
    wordings = json.loads((Path(__file__).with_name("golden") / "book_wordings.json").read_text(encoding="utf-8"))
    asked = read_book_questions(data / BOOKS / "questions.jsonl", unanswerable=True)
    return [
        ReaderCase(one.id, f"books, {one.group}", one.text, one.sides, wordings.get(one.id, ""), one.history)
        for one in asked
    ]


def set_cases(data: Path, folder: str, queries: str, corpus: str, count: int, name: str = "") -> list[ReaderCase]:
    """Draw questions of a public set, the same every time, with the sentences of its documents that answer."""
    texts = {row["id"]: row["text"] for _, row in read_json_lines(data / folder / f"{corpus}.jsonl.gz")}
    rows = [row for _, row in read_json_lines(data / folder / f"{queries}.jsonl.gz")]
    field_name = {"corpus_zh": "gold_zh", "corpus_en": "gold_en"}.get(corpus, "gold")
    other = {"queries_en": "queries_zh", "queries_zh": "queries_en"}.get(queries)
    known = {row["id"]: row["text"] for _, row in read_json_lines(data / folder / f"{other}.jsonl.gz")} if other else {}
    cases = []
    for row in rows:
        sentences = tuple(_sentence(texts[gold["doc_id"]], gold) for gold in row.get(field_name) or [])
        if sentences:
            cases.append(ReaderCase(row["id"], name or folder, row["text"], (sentences,), known.get(row["id"], "")))
    return random.Random(SEED).sample(cases, min(count, len(cases)))


def _sentence(text: str, gold: dict[str, Any]) -> str:
    start, end = gold["start"], gold["end"]
    spans = [span for span in sentence_spans(text) if span[0] < end and start < span[1]]
    return text[spans[0][0] : spans[-1][1]] if spans else text[start:end]


def all_cases(data: Path, count: int) -> dict[str, tuple[list[Path], list[ReaderCase]]]:
    """Give, by set, the files of its library and its questions."""

    def files(folder: str, corpus: str) -> list[Path]:
        return [data / folder / f"{corpus}.jsonl.gz"]

    across = {
        "en": ("queries_en", "corpus_zh", "English on Chinese"),
        "zh": ("queries_zh", "corpus_en", "Chinese on English"),
    }
    return {
        "books": ([data / "epub" / name for name in BOOK_FILES], book_cases(data)),
        "en_squad2": (
            files("en_squad2", "corpus"),
            [
                *set_cases(data, "en_squad2", "queries", "corpus", count),
                *_unanswerable(data, count // 3),
            ],
        ),
        "zh_cmrc2018": (files("zh_cmrc2018", "corpus"), set_cases(data, "zh_cmrc2018", "queries", "corpus", count)),
        **{
            f"xquad_{language}": (
                files("xquad_enzh", corpus),
                set_cases(data, "xquad_enzh", queries, corpus, count, f"xquad, {name}"),
            )
            for language, (queries, corpus, name) in across.items()
        },
    }


def _unanswerable(data: Path, count: int) -> list[ReaderCase]:
    rows = [row for _, row in read_json_lines(data / "en_squad2" / "unanswerable_queries.jsonl.gz")]
    drawn = random.Random(SEED).sample(rows, min(count, len(rows)))
    return [ReaderCase(row["id"], f"en_squad2, {UNANSWERABLE}", row["text"]) for row in drawn]


def table_lines(mode: str, wording: str, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Write a line for each group of questions."""
    groups = list(dict.fromkeys(one.case.group for one in outcomes))
    for group in groups:
        of_group = [one for one in outcomes if one.case.group == group]

        def share(name: str, rows: Sequence[Outcome] = of_group) -> str:
            return f"{sum(getattr(one, name) for one in rows) / len(rows):.3f}"

        means = (sum(getattr(one, name) for one in of_group) / len(of_group) for name in ("calls", "seconds", "tokens"))
        calls, seconds, tokens = means
        if of_group[0].case.sides:
            values = [share("in_ten"), share("in_prompt"), share("right"), share("refused"), ""]
        else:
            values = ["", "", "", "", f"{1 - sum(one.answered for one in of_group) / len(of_group):.3f}"]
        cells = [
            group,
            mode,
            wording,
            str(len(of_group)),
            *values,
            f"{calls:.2f}",
            f"{seconds * 1000:.0f}",
            f"{tokens:.0f}",
        ]
        yield f"| {' | '.join(cells)} |"


HEADER = (
    "| questions | mode | rewording | count | in ten | in the prompt | answered and cited right | refused unasked | "
    "not answered | calls | ms | tokens |\n|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
)


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of public sets (default: %(default)s)")
    parser.add_argument("--keep", type=Path, default=Path(".data/bars"), help="where ingested corpora are kept")
    parser.add_argument(
        "--sets", nargs="+", metavar="SET", help="only these: books, en_squad2, zh_cmrc2018, xquad_en …"
    )
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES, metavar="MODE", help="only these modes")
    parser.add_argument("--wording", nargs="+", choices=WORDINGS, default=["none"], help="what the rewriter replies")
    parser.add_argument("--count", type=int, default=COUNT, help="questions of a set (default: %(default)s)")
    parser.add_argument("--strategy", choices=get_args(Strategy), help="of the context")
    parser.add_argument("--budget", type=int, metavar="TOKENS", help="of the context")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write a line for each question here")
    options = parser.parse_args(arguments)
    if is_missing(options.data):
        return 2
    model = ScriptedModel()
    records: list[dict[str, Any]] = []
    print(HEADER, flush=True)
    with ExitStack() as stack:
        os.environ["OPENAI_BASE_URL"] = stack.enter_context(serving(model))
        stack.callback(os.environ.pop, "OPENAI_BASE_URL")
        wanted = {"strategy": options.strategy, "token_budget": options.budget}
        if options.strategy == "summarize":
            wanted["chat_generator"] = ConfiguredChatGenerator(role="helper")
        readers = Readers(options.data, options.keep, model, {name: value for name, value in wanted.items() if value})
        for name, (files, cases) in all_cases(options.data, options.count).items():
            if options.sets and name not in options.sets:
                continue
            library = readers.library(files)
            for mode in options.modes:
                for wording in options.wording:
                    found = list(readers.outcomes(library, mode, cases, wording))
                    print("\n".join(table_lines(mode, wording, found)), flush=True)
                    records += [
                        {**asdict(one), "case": one.case.id, "group": one.case.group, "mode": mode, "wording": wording}
                        for one in found
                    ]
    if options.json:
        lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        options.json.write_text("".join(lines), encoding="utf-8")
    return 0


__all__ = ["FOLLOW_UPS", "Outcome", "ReaderCase", "Readers", "main"]

if __name__ == "__main__":
    sys.exit(main())
