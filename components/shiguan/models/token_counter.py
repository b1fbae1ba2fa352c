"""How long a text is: for the embedder, or for the model that answers, with its own tokenizer."""

import hashlib
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from haystack import logging

from shiguan.errors import ModelMissingError
from shiguan.models.tokenizer import Tokenizer, tokenizer

if TYPE_CHECKING:
    import tiktoken

logger = logging.getLogger(__name__)

# tiktoken's files by the name of their encoding: where it takes them from, and the SHA-256 that it knows them by.
_FILES = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_KNOWN_FILES = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}

_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
# What stands in for a token where there is no tokenizer: a wide character, or so many of other scripts.
_STAND_IN = re.compile(_WIDE.pattern + r"|[^\s\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]{1,4}")
_REMEMBERED = 4096
"""Texts whose number of tokens is kept."""


class TokenCounter:
    """
    Counts tokens as the embedder does, without its prefixes and its marks of start and end.

    A Chinese character is .7 of a token (1 in classical texts), an English word 1.3. Where the weights are not
    installed a Han character and four characters of other scripts stand for a token, and `warnings` says so. For a
    `model` whose encoding tiktoken has on this disk `count` and `counts` are that model's.

    Example:
    ```python
    counter = TokenCounter()
    counter.count("The old general wept.")   # 6
    counter.offsets("安祿山 fled")
    ```
    """

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.model: str | None = None
        self._encoding: tiktoken.Encoding | None = None
        self._tokenizer: Tokenizer | None = None
        self._loaded = False
        # The same passages are read for many questions, and counting ten of them takes longer than finding them.
        self._remembered = lru_cache(_REMEMBERED)(lambda text: self.counts([text])[0])

    def warm_up(self) -> None:
        """Load the tokenizer; a second call does nothing."""
        if self._loaded:
            return
        self._loaded = True
        self._encoding = self._encoding_of(self.model) if self.model else None
        try:
            self._tokenizer = tokenizer()
        except ModelMissingError as error:
            self.warnings.append(f"Lengths are estimated from characters instead of counted in tokens. {error}")
            logger.warning("Estimating lengths from characters: {error}", error=str(error))

    def count(self, text: str) -> int:
        """Count one text's tokens."""
        return self._remembered(text)

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Count many texts in one batch, which is far cheaper than one by one."""
        self.warm_up()
        if self._encoding is not None:
            return [len(self._encoding.encode_ordinary(text)) for text in texts]
        if self._tokenizer is None:
            return [len(_STAND_IN.findall(text)) for text in texts]
        return self._tokenizer.counts(texts)

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Find where one text's tokens stand."""
        self.warm_up()
        if self._tokenizer is None:
            return [match.span() for match in _STAND_IN.finditer(text)]
        return self._tokenizer.offsets(text)

    def _encoding_of(self, model: str) -> "tiktoken.Encoding | None":
        """Read a model's encoding from TIKTOKEN_CACHE_DIR; what is not there would be downloaded, so it is left."""
        if not (folder := os.environ.get("TIKTOKEN_CACHE_DIR")):
            return None
        try:
            import tiktoken  # noqa: PLC0415

            name = tiktoken.encoding_name_for_model(model)
            file = Path(folder, hashlib.sha1(_FILES.format(name).encode(), usedforsecurity=False).hexdigest())
            if hashlib.sha256(file.read_bytes()).hexdigest() == _KNOWN_FILES.get(name):
                return tiktoken.get_encoding(name)
        except KeyError:  # a model of somebody else
            return None
        except (ImportError, OSError) as error:
            logger.debug("No encoding of {model}: {error}", model=model, error=str(error))
        self.warnings.append(
            f"Contexts are counted with the embedder's tokenizer: that of `{model}` is not whole in TIKTOKEN_CACHE_DIR "
            "or `tiktoken` is missing. docs/models.md says how to fetch it; or unset the variable."
        )
        return None
