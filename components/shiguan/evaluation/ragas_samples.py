"""Hands the answers of a run to Ragas, for metrics that only it has."""

import importlib
from pathlib import Path
from typing import Any

from shiguan.evaluation.json_lines import read_json_lines
from shiguan.evaluation.results import RECORDS_FILE, read_results
from shiguan.evaluation.scoring import REFUSALS, without_marks


def ragas_samples(folder: Path) -> list[dict[str, Any]]:
    """
    Return the answers of a run of `shiguan eval answers` in the fields of Ragas's `SingleTurnSample`.

    :param folder: The folder of a finished run.
    :returns: For each answer `user_input`, `response` and `retrieved_contexts` and, if a right one is known,
        `reference`; refusals are left out.
    :raises RefusedError: If the folder has no finished run.
    """
    details = {question.id: question.details for question in read_results(folder).questions}
    samples = []
    for _, record in read_json_lines(folder / RECORDS_FILE):
        if record.get("status", "not_found") in REFUSALS:
            continue
        about = details[record["id"]]
        sample = {
            "user_input": about["question"],
            "response": without_marks(record["answer"]),
            "retrieved_contexts": [read["content"] for read in record["documents"]],
        }
        samples.append(sample | ({"reference": "; ".join(about["gold"])} if about.get("gold") else {}))
    return samples


def ragas_dataset(folder: Path) -> Any:
    """
    Return the answers of a run as a dataset for `ragas.evaluate`; needs the extra `shiguan[ragas]`.

    :param folder: The folder of a finished run.
    :raises ImportError: If Ragas is not installed.
    """
    return importlib.import_module("ragas").EvaluationDataset.from_list(ragas_samples(folder))
