"""
Measure which parts of sentences a passage is found to state: true ones, and those that what is left out makes false.

    python -m bench.quality.cut_claims [--show]

`golden/cut_claims.tsv.gz` has pairs of a passage and a sentence in English and Chinese, written against the check: a
clause cut out of its condition, its story or its speaker, words joined over a stop, a name, number or list cut in two,
and the same that change nothing. `T`: the passage says so in nearly these words; `F`: it does not. They were looked at
while the rules were changed, and some are disputable, so that the shares say how the check compares with itself; from
one half of the passages the reader of factuality has learned (`bench.judge.factuality`).
"""

import argparse
import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from shiguan.claims.stated import find_stated

PAIRS = Path(__file__).parent / "golden" / "cut_claims.tsv.gz"


def read_pairs(file: Path) -> Iterator[tuple[str, str, str, str]]:
    """Read pairs: language, T or F, passage, claim."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            language, kind, passage, claim = line.rstrip("\n").split("\t")
            yield language, kind, passage.replace("\\n", "\n"), claim


def is_learned(passage: str) -> bool:
    """Return whether the reader of factuality has learned from a passage."""
    return zlib.crc32(passage.encode()) % 2 == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how many of each kind are found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print the false sentences that are found")
    options = parser.parse_args(arguments)
    pairs = [*read_pairs(PAIRS)]
    stated = [find_stated(claim, passage)[0] is not None for *_, passage, claim in pairs]
    print("| | learned from | found in their passages | kept out | found |\n|---|---:|---:|---:|---:|")
    for language in ("en", "zh"):
        for kind, name in (("T", "true"), ("F", "false")):
            counts = []
            for learned in (True, False):
                rows = zip(pairs, stated, strict=True)
                found = [one for pair, one in rows if pair[:2] == (language, kind) and is_learned(pair[2]) == learned]
                counts += [len(found), sum(found)]
            print(f"| {language}, {name} | {' | '.join(map(str, counts))} |")
    for (_, kind, passage, claim), found in zip(pairs, stated, strict=True):
        if options.show and found and kind == "F":
            print(f"{passage} | {claim}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
