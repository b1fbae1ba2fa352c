"""How long a text is for a model: counted with that model's own tokenizer, offline."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from haystack import logging

from shiguan.errors import ConfigurationError
from shiguan.support.model_cache import PACKAGED_MODEL, packaged_file

logger = logging.getLogger(__name__)

# WordPiece makes a run of more than 100 characters without a space one unknown token, so a file without spaces would
# count as a single token. Such a token counts as one for every four characters, about what words cost.
_LONGEST_TOKEN = 100
_CHARACTERS_PER_TOKEN = 4
# Longer texts are tokenized in pieces, which bounds memory; the cuts are moved to white space where there is some near.
_PIECE = 20_000
_NEAR = 200
_REMEMBERED = 4096
"""Texts whose number of tokens is kept."""


class TokenCounter:
    """
    Counts tokens as the embedder does, without its start and end marks.

    The tokenizer is read at first use from the packaged model, from a folder, or from the Hugging Face cache; nothing
    is downloaded. Where none can be read, characters are counted instead and `warnings` says so.

    Example:
    ```python
    counter = TokenCounter()
    counter.count("The old general wept.")   # 5
    counter.offsets("安祿山 fled")            # [(0, 1), (1, 2), (2, 3), (4, 8)]
    ```
    """

    def __init__(self, model: str = PACKAGED_MODEL) -> None:
        """
        Name the model; nothing is loaded yet.

        :param model: The embedder's name or folder.
        """
        self.model = model
        self.warnings: list[str] = []
        self._tokenizer: Any = None
        self._loaded = False
        # The same passages are read for many questions, and counting ten of them takes longer than finding them.
        self._remembered = lru_cache(_REMEMBERED)(lambda text: self.counts([text])[0])

    def warm_up(self) -> None:
        """Load the tokenizer; a second call does nothing."""
        if self._loaded:
            return
        self._loaded = True
        try:
            # Imported here: most users of this module's importers never count a token.
            from tokenizers import Tokenizer  # noqa: PLC0415

            tokenizer = Tokenizer.from_file(str(self._tokenizer_file()))
            # The packaged file pads to 128 and cuts at 128, which would make every text 128 tokens long.
            tokenizer.no_padding()
            tokenizer.no_truncation()
            self._tokenizer = tokenizer
        except Exception as error:  # the tokenizers library raises plain Exception
            self.warnings.append(
                f"The tokenizer of `{self.model}` could not be loaded ({error}); lengths were counted in characters "
                "instead of tokens. Install the model, or name one whose tokenizer.json is in the Hugging Face cache."
            )
            logger.warning("Counting characters, not tokens: {error}", error=str(error))

    def count(self, text: str) -> int:
        """
        Count one text's tokens.

        :param text: Any text.
        :returns: The number of tokens (of characters, where no tokenizer could be loaded).
        """
        return self._remembered(text)

    def counts(self, texts: Sequence[str]) -> list[int]:
        """
        Count many texts in one batch, which is far cheaper than one by one.

        :param texts: Any texts.
        :returns: One number for each.
        """
        self.warm_up()
        if self._tokenizer is None:
            return [len(text) for text in texts]
        pieces: list[str] = []
        owners: list[int] = []
        for number, text in enumerate(texts):
            for start, end in _pieces(text):
                pieces.append(text[start:end] if (start, end) != (0, len(text)) else text)
                owners.append(number)
        totals = [0] * len(texts)
        encodings = self._tokenizer.encode_batch_fast(pieces, add_special_tokens=False)
        for owner, piece, encoding in zip(owners, pieces, encodings, strict=True):
            length = len(encoding)
            # So few tokens for so many characters happen only with overlong ones, which are then counted exactly.
            if len(piece) > _LONGEST_TOKEN and length * 12 < len(piece):
                length = len(self._piece_offsets(piece))
            totals[owner] += length
        return totals

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """
        Find where one text's tokens stand.

        :param text: Any text.
        :returns: Spans in code points, end exclusive, in order.
        """
        self.warm_up()
        if self._tokenizer is None:
            return [(at, at + 1) for at, character in enumerate(text) if not character.isspace()]
        found: list[tuple[int, int]] = []
        for start, end in _pieces(text):
            found.extend((start + a, start + b) for a, b in self._piece_offsets(text[start:end]))
        return found

    def _piece_offsets(self, piece: str) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for start, end in self._tokenizer.encode(piece, add_special_tokens=False).offsets:
            if end - start <= _LONGEST_TOKEN:
                found.append((start, end))
            else:
                found.extend(
                    (at, min(at + _CHARACTERS_PER_TOKEN, end)) for at in range(start, end, _CHARACTERS_PER_TOKEN)
                )
        return found

    def _tokenizer_file(self) -> Path:
        folder = Path(self.model)
        if (folder / "tokenizer.json").is_file():
            return folder / "tokenizer.json"
        if self.model == PACKAGED_MODEL:
            return packaged_file("tokenizer.json")
        from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415

        cached = try_to_load_from_cache(self.model, "tokenizer.json")
        if not isinstance(cached, str):
            raise ConfigurationError(f"no tokenizer.json of `{self.model}` in the Hugging Face cache")
        return Path(cached)


def _pieces(text: str) -> list[tuple[int, int]]:
    if len(text) <= _PIECE:
        return [(0, len(text))]
    spans = []
    start = 0
    while len(text) - start > _PIECE:
        end = start + _PIECE
        # Moved back to white space, so that no word is tokenized in two halves.
        for at in range(end, end - _NEAR, -1):
            if text[at].isspace():
                end = at
                break
        spans.append((start, end))
        start = end
    spans.append((start, len(text)))
    return spans
