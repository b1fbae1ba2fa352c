"""
Print how far the estimate of a model's tokens is off, for five kinds of text.

    pip install bpe-openai; python -m bench.quality.token_counts [--data DIR]

The tokens are those of o200k_base, which `bpe-openai` brings with it (tiktoken fetches its file). The factors of
`shiguan.models.token_counter` were fitted, every set with the same weight, on the texts whose CRC-32 is even; what is
printed is of the others: the error of all texts together and the mean error of one.
"""

import argparse
import sys
import zlib
from pathlib import Path

from bench.quality.public_sets import DATA, is_missing

from shiguan.evaluation.json_lines import read_json_lines
from shiguan.models.token_counter import TokenCounter, estimated_tokens

SETS = {
    "English, encyclopedia": ("en_squad2", 300),
    "English, manuals and reports": ("conv_rag_mtrag", 200),
    "Chinese, simplified": ("zh_cmrc2018", 250),
    "Chinese, traditional": ("zh_drcd", 300),
    "Chinese, classical": ("tang_modern2classical", 600),
}


def main(arguments: list[str] | None = None) -> int:
    """Count, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of public sets (default: %(default)s)")
    data = parser.parse_args(arguments).data
    if is_missing(data):
        return 2
    from bpe_openai import get_encoding

    encoding, counter = get_encoding("o200k_base"), TokenCounter()
    print("| texts | embedder's count | estimate | of one text |\n|---|---:|---:|---:|")
    for name, (folder, most) in SETS.items():
        rows = [row["text"] for _, row in read_json_lines(data / folder / "corpus.jsonl.gz")][:most]
        texts = [text for text in rows if zlib.crc32(text.encode()) % 2]
        true, counted = [len(encoding.encode(text)) for text in texts], counter.counts(texts)
        told = [estimated_tokens(text, count) for text, count in zip(texts, counted, strict=True)]
        each = sum(abs(one - other) / other for one, other in zip(told, true, strict=True)) / len(texts)
        off, still = (sum(counts) / sum(true) - 1 for counts in (counted, told))
        print(f"| {name} ({len(texts)}) | {off:+.1%} | {still:+.1%} | {each:.1%} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
