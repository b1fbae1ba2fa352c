"""Six short texts, as a file and as a library, for tests that measure and explain what is found in them."""

import json
from pathlib import Path

from shiguan.cli import main

TEXTS = {
    "fall": "The capital Chang'an fell to the rebels in July 756, and the emperor fled to Shu.",
    "census": "The census of 755 counted fifty-two million people in the whole empire.",
    "salt": "In 758 Diwu Qi made salt a monopoly of the state to pay for the war.",
    "siege": "Zhang Xun held the town of Suiyang for ten months against a far larger army.",
    "poet": "Du Fu wrote of a broken country whose mountains and rivers remain.",
    "亂": "天寶十四載，安祿山反於范陽。",
}


def write_rows(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def six_texts(folder: Path) -> Path:
    """Write `corpus.jsonl` into a folder and ingest it into `library` beside it."""
    rows = [{"id": name, "title": "", "text": text} for name, text in TEXTS.items()]
    corpus = write_rows(folder / "corpus.jsonl", rows)
    assert main(["ingest", str(corpus), "--data-dir", str(folder / "library"), "--json"]) == 0
    return folder
