"""What calls to a language model cost, by a table that the person measuring gives."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from shiguan.errors import RefusedError

_PER = 1_000_000


@dataclass(frozen=True)
class Prices:
    """A price table."""

    models: dict[str, tuple[float, float]]

    def cost(self, model: str, usage: dict[str, Any], calls: int) -> float | None:
        """Price the calls of one question."""
        if not calls:
            return 0.0
        price = self.models.get(model)
        read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if price is None or not isinstance(read, int) or not isinstance(written, int) or not read + written:
            return None
        return (read * price[0] + written * price[1]) / _PER


def read_prices(path: Path) -> Prices:
    """Read a price table: YAML of `model: {input: 0.4, output: 1.6}`, per million tokens."""
    try:
        table = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RefusedError(f"{path} cannot be read as YAML: {error}. Correct the path or the file.") from error
    models: dict[str, tuple[float, float]] = {}
    for model, price in table.items() if isinstance(table, dict) else ():
        read, written = (price.get("input"), price.get("output")) if isinstance(price, dict) else (None, None)
        if not _is_price(read) or not _is_price(written):
            raise RefusedError(
                f"{path} prices `{model}` as {price!r}; expected {{input: 0.4, output: 1.6}}, per million tokens."
            )
        models[str(model)] = (float(read or 0), float(written or 0))
    if not models:
        raise RefusedError(f"{path} has no prices. Expected `model: {{input: 0.4, output: 1.6}}`, per million tokens.")
    return Prices(models)


def _is_price(value: Any) -> bool:
    return type(value) in (int, float) and value >= 0
