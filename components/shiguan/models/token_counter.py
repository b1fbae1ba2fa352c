"""How long a text is, in the tokens of the embedder or of a model that tiktoken knows."""

import importlib
import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

from haystack import logging

from shiguan.errors import ModelMissingError
from shiguan.models.tokenizer import Tokenizer, tokenizer

logger = logging.getLogger(__name__)

_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
# What stands in for a token where there is no tokenizer: a wide character, or so many of other scripts.
_STAND_IN = re.compile(_WIDE.pattern + r"|[^\s\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]{1,4}")
# Tokens of o200k_base for one of the embedder's, and more for each wide character and each traditional one: the
# mean error is below 1 %, of a single text 2 to 5 % (`python -m bench.quality.token_counts`).
_OF_MODEL, _WIDE_MORE, _TRADITIONAL_MORE = 0.863, 0.238, 0.379
_REMEMBERED = 4096
"""Texts whose number of tokens is kept."""


class TokenCounter:
    """
    Counts tokens as the embedder does, without its prefixes and its marks of start and end.

    With a `model` it counts those of this model where tiktoken is installed, has the model's file and knows it
    (the extra `shiguan[tiktoken]`); otherwise it estimates those of OpenAI's recent models, and a warning says so.

    A Chinese character is .7 of a token (1 in classical texts), an English word 1.3. Where the weights are not
    installed a Han character and four characters of other scripts stand for a token, and `warnings` says so.

    Example:
    ```python
    counter = TokenCounter()
    counter.count("The old general wept.")   # 6
    counter.offsets("安祿山 fled")
    ```
    """

    def __init__(self, model: str | None = None) -> None:
        self._model = model
        self.warnings: list[str] = []
        # The same passages are read for many questions, and counting ten of them takes longer than finding them.
        self._remembered = lru_cache(_REMEMBERED)(lambda text: self.counts([text])[0])

    @cached_property
    def _tokenizer(self) -> Tokenizer | None:
        try:
            return tokenizer()
        except ModelMissingError as error:
            self.warnings.append(f"Lengths are estimated from characters instead of counted in tokens. {error}")
            logger.warning("Estimating lengths from characters: {error}", error=str(error))
            return None

    @cached_property
    def _encoding(self) -> Any:
        if self._model is None:
            return None
        try:
            return importlib.import_module("tiktoken").encoding_for_model(self._model)
        except Exception as error:  # tiktoken fetches its files, and what fails then is of many kinds
            self.warnings.append(
                f"Tokens of `{self._model}` are estimated from the embedder's ({type(error).__name__}). Install "
                "`shiguan[tiktoken]`, name a model that it knows, or give it its files in TIKTOKEN_CACHE_DIR."
            )
            return None

    def warm_up(self) -> None:
        """Load the tokenizer now rather than with the first text."""
        if self._encoding is None:
            _ = self._tokenizer

    def count(self, text: str) -> int:
        """Count one text's tokens."""
        return self._remembered(text)

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Count many texts in one batch, which is far cheaper than one by one."""
        if self._encoding is not None:
            return [len(self._encoding.encode_ordinary(text)) for text in texts]
        if self._tokenizer is None:
            return [len(_STAND_IN.findall(text)) for text in texts]
        counted = self._tokenizer.counts(texts)
        if self._model is None:
            return counted
        return [estimated_tokens(text, count) for text, count in zip(texts, counted, strict=True)]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Find where one text's tokens stand."""
        if self._tokenizer is None:
            return [match.span() for match in _STAND_IN.finditer(text)]
        return self._tokenizer.offsets(text)


def estimated_tokens(text: str, embedders: int) -> int:
    """Estimate how many tokens of o200k_base a text has from how many of the embedder it has."""
    wide = "".join(_WIDE.findall(text))
    # GB 2312 has the simplified characters only.
    traditional = len(wide) - len(wide.encode("gb2312", "ignore").decode("gb2312"))
    return round(_OF_MODEL * embedders + _WIDE_MORE * len(wide) + _TRADITIONAL_MORE * traditional)
