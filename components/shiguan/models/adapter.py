"""Low-rank adapters of the packaged encoder (Hu et al. 2021, LoRA, arXiv 2106.09685), with the heads that read it."""

import hashlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from shiguan.errors import ModelMissingError
from shiguan.models.weights import Weights

APART, DEPTH = 4, 9
"""The layers that no adapter changes, the first, and all that are used."""
SCALE = 2.0
"""What the product of an adapter's two matrices is multiplied by."""

Array = NDArray[np.float32]


class Adapter:
    """What was trained, as it is kept in a file, by name; `mark` is the beginning of the file's hash."""

    def __init__(self, path: Path) -> None:
        try:
            content = path.read_bytes()
            with np.load(BytesIO(content)) as stored:
                self.values = {name: stored[name].astype(np.float32) for name in stored.files}
        except (OSError, ValueError, BadZipFile) as error:
            raise ModelMissingError(
                f"The weights `{path}` cannot be read ({error}); they are part of the package. Install it again with "
                "`pip install --force-reinstall shiguan`."
            ) from error
        self.mark = hashlib.sha256(content).hexdigest()[:12]

    def linear(self, name: str, inputs: Array) -> Array:
        """Multiply by a matrix and add its bias."""
        result: Array = inputs @ self.values[name + ".w"].T + self.values[name + ".b"]
        return result

    def head(self, name: str, inputs: Array) -> Array:
        """Apply a head of two layers."""
        return self.linear(f"{name}_out", gelu(self.linear(f"{name}_in", inputs)))


class AdaptedWeights(Weights):
    """The packaged weights with an adapter merged into them."""

    def __init__(self, path: Path, adapter: Mapping[str, Array]) -> None:
        super().__init__(path)
        self.adapter = adapter

    def floats(self, name: str) -> Array:
        """Return a tensor of float32, the adapter's where it has one."""
        return self.adapter[name] if name in self.adapter else super().floats(name)

    def matrix(self, name: str) -> Array:
        """Return a matrix of a layer, with the adapter's product added."""
        matrix = super().matrix(name)
        if name + ".up" in self.adapter:
            matrix += SCALE * (self.adapter[name + ".up"] @ self.adapter[name + ".down"])
        return matrix


def gelu(x: Array) -> Array:
    """Multiply by the normal distribution, as Abramowitz and Stegun 1964, formula 7.1.26, have it to 1.5e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(x) / np.sqrt(2))
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    half = 0.5 * series * np.exp(-(x**2) / 2)
    result: Array = (x * np.where(x > 0, 1 - half, half)).astype(np.float32)
    return result
