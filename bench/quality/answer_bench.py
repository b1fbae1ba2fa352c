"""`precise` over the public sets, for measuring answers: corpora that are ingested once, and halves of questions."""

import json
import random
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from haystack import GeneratedAnswer

from shiguan.engine.runner import Runner
from shiguan.evaluation.json_lines import read_json_lines
from shiguan.evaluation.provenance import TENANT, ingest_corpus, stamped_folder

SAMPLE, SEED = 200, 7


class Bench:
    """
    Asks `precise` over corpora that are ingested once.

    :param data: The folder of public sets.
    :param keep: Where the ingested corpora are kept.
    :param half: 0, 1 or None for all questions.
    """

    def __init__(self, data: Path, keep: Path, half: int | None) -> None:
        self.data = data
        self.keep = keep
        self.half = half

    def library(self, name: str) -> Path:
        """Ingest a set's corpus, unless that was done before."""
        corpus = self.data / name / "corpus.jsonl.gz"
        if name.startswith("expmrc_"):
            corpus = self.keep / f"{name}.jsonl"
            rows = {row["source"]: row for row in self.evidence_rows(name[-2:])}
            lines = [{"id": one["id"], "title": one["title"], "text": text} for text, one in rows.items()]
            corpus.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
        folder = stamped_folder(self.keep / name, [corpus], "embedded")
        ingest_corpus([corpus], deployment="embedded", data_dir=folder)
        return folder

    def evidence_rows(self, language: str) -> list[dict[str, Any]]:
        """Read ExpMRC."""
        return [row for _, row in read_json_lines(self.data / "evidence_expmrc" / f"{language}.jsonl.gz")]

    def of_half(self, rows: Sequence[dict[str, Any]], key: str = "id") -> list[dict[str, Any]]:
        """Keep the rows of the half that is measured."""
        return [row for row in rows if self.half is None or zlib.crc32(str(row[key]).encode()) % 2 == self.half]

    def sample(self, rows: Sequence[dict[str, Any]], count: int = SAMPLE) -> list[dict[str, Any]]:
        """Draw some rows of the half, the same every time."""
        found = self.of_half(rows)
        return random.Random(SEED).sample(found, min(count, len(found)))

    @contextmanager
    def mode(self, name: str, **settings: Any) -> Iterator[Any]:
        """Load `precise` over a corpus, with other settings of the extractive answerer; gives a function to ask."""
        with closing(Runner("embedded", "precise", data_dir=self.library(name))) as runner:
            runner.warm_up()
            generator = runner.pipeline.get_component("generator")
            for setting, value in settings.items():
                setattr(generator._extractive, setting, value)

            def ask(question: str) -> GeneratedAnswer:
                return runner.trace(question, tenant_id=TENANT, outputs=["answers"])["outputs"]["answers"][0]

            yield ask
