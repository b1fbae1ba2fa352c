"""
Keep what was trained: python -m bench.judge.pack --weights average.npz

The numbers are stored in 16 bits, unmerged, so that training can go on from the file.
"""

import argparse
from pathlib import Path

import numpy as np

from shiguan.models.judge import ADAPTER


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Keep what was trained.")
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=ADAPTER)
    chosen = parser.parse_args()
    with np.load(chosen.weights) as stored, chosen.out.open("wb") as file:
        np.savez(file, **{name: stored[name].astype(np.float16) for name in sorted(stored.files)})
    print(f"{chosen.out}: {chosen.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
