"""Six short texts, as a file and as a library, for tests that measure and explain what is found in them."""

from pathlib import Path

from shiguan.cli import main
from shiguan.evaluation.json_lines import write_json_lines

TEXTS = {
    "fall": "The capital Chang'an fell to the rebels in July 756, and the emperor fled to Shu.",
    "census": "The census of 755 counted fifty-two million people in the whole empire.",
    "salt": "In 758 Diwu Qi made salt a monopoly of the state to pay for the war.",
    "siege": "Zhang Xun held the town of Suiyang for ten months against a far larger army.",
    "poet": "Du Fu wrote of a broken country whose mountains and rivers remain.",
    "亂": "天寶十四載，安祿山反於范陽。",
}


def six_texts(folder: Path) -> Path:
    """Write `corpus.jsonl` into a folder and ingest it into `library` beside it."""
    corpus = folder / "corpus.jsonl"
    write_json_lines(corpus, [{"id": name, "title": "", "text": text} for name, text in TEXTS.items()])
    assert main(["ingest", str(corpus), "--data-dir", str(folder / "library"), "--json"]) == 0
    return folder
