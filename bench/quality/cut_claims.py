"""
Measure which parts of sentences a passage is found to state: true ones, and those that what is left out makes false.

    python -m bench.quality.cut_claims [--show]

`golden/cut_claims.tsv.gz` has pairs of a passage and a sentence in English and Chinese, written against the check: a
clause cut out of its condition, its story or its speaker, words joined over a stop, a name, number or list cut in two,
and the same that change nothing. `T`: the passage says so in nearly these words; `F`: it does not. They were looked at
while the check was changed, and some are disputable, so that the shares say how it compares with itself.
"""

import argparse
import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path

from shiguan.claims.restatement import restates

PAIRS = Path(__file__).parent / "golden" / "cut_claims.tsv.gz"


def read_pairs(file: Path) -> Iterator[tuple[str, str, str, str]]:
    """Read pairs: language, T or F, passage, claim."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            language, kind, passage, claim = line.rstrip("\n").split("\t")
            yield language, kind, passage.replace("\\n", "\n"), claim


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how many of each kind are found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print the false sentences that are found")
    options = parser.parse_args(arguments)
    pairs = [*read_pairs(PAIRS)]
    stated = [restates(claim, passage) is not None for *_, passage, claim in pairs]
    print("| | sentences | found in their passages |\n|---|---:|---:|")
    for language in ("en", "zh"):
        for kind, name in (("T", "true"), ("F", "false")):
            found = [one for pair, one in zip(pairs, stated, strict=True) if pair[:2] == [language, kind]]
            print(f"| {language}, {name} | {len(found)} | {sum(found)} |")
    for (_, kind, passage, claim), found in zip(pairs, stated, strict=True):
        if options.show and found and kind == "F":
            print(f"{passage} | {claim}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
