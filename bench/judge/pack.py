"""
Keep what was trained: python -m bench.judge.pack --weights average.npz

Of several states of one training the mean is kept (Wortsman et al. 2022, Model soups, arXiv 2203.05482). The numbers
are stored in 16 bits, unmerged, so that training can go on from the file.
"""

import argparse
from pathlib import Path

import numpy as np

from shiguan.models.judge import ADAPTER


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Keep what was trained.")
    parser.add_argument("--weights", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, default=ADAPTER)
    chosen = parser.parse_args()
    states = [dict(np.load(path)) for path in chosen.weights]
    mean = {name: np.mean([state[name] for state in states], axis=0).astype(np.float16) for name in sorted(states[0])}
    with chosen.out.open("wb") as file:
        np.savez(file, **mean)
    print(f"{chosen.out}: {chosen.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
