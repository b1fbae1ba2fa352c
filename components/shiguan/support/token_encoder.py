"""The embedder without its wrapping: one forward pass for a text's embedding and the vectors of its tokens."""

import json
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from shiguan.errors import ConfigurationError
from shiguan.support.model_cache import PACKAGED_MODEL, seed_model_cache
from shiguan.support.token_vectors import unit_rows

# What sentence-transformers calls the parts of a model that this module can stand in for.
_PARTS = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
_MEAN = "pooling_mode_mean_tokens"


@dataclass(frozen=True)
class EncodedText:
    """
    What the model makes of one text.

    :param embedding: As sentence-transformers gives it. Shape: (dimensions,), float32.
    :param token_ids: The text's tokens within the model's window, special tokens left out. Shape: (tokens,), int32.
    :param tokens: Their vectors in the model's last layer, each of length 1. Shape: (tokens, dimensions), float32.
    """

    embedding: np.ndarray
    token_ids: np.ndarray
    tokens: np.ndarray


class TokenEncoder:
    """
    Runs a sentence embedder that is a transformer with mean pooling, such as MiniLM.

    sentence-transformers gives the same embeddings, but takes as long around the model as in it for one question, and
    throws the token vectors away. Get one by `token_encoder`, which loads a model once per process. Texts beyond the
    model's window are cut there. Safe to use from many threads.

    :param model: The model's name in the Hugging Face cache, or its folder. Nothing is downloaded.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self.window = 0
        self._loading = threading.Lock()
        self._tokenizer: Any = None
        self._transformer: Any = None
        self._normalised = False
        self._padding = 0

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has; loads the model."""
        self.warm_up()
        return int(self._transformer.config.hidden_size)

    def warm_up(self) -> None:
        """
        Load the model; a second call does nothing.

        :raises ConfigurationError: If it is not on this machine, or is no transformer with mean pooling.
        """
        with self._loading:
            if self._transformer is None:
                self._load()

    def encode(self, texts: list[str], *, with_tokens: bool = True, batch_size: int = 32) -> list[EncodedText]:
        """
        Encode texts, those of like length together.

        :param texts: Any texts, empty ones too.
        :param with_tokens: Whether the tokens' vectors are wanted; without, `token_ids` and `tokens` have no rows.
        :param batch_size: How many go through the model at once.
        :returns: One for each text, in their order.
        :raises ConfigurationError: If the model cannot be loaded.
        """
        if not texts:
            return []
        self.warm_up()
        encodings = self._tokenizer.encode_batch_fast(texts)
        order = sorted(range(len(texts)), key=lambda index: -len(encodings[index]))
        results: dict[int, EncodedText] = {}
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            ids = [np.array(encodings[index].ids, dtype=np.int64) for index in batch]
            embeddings, hidden = self._forward(ids)
            for row, index in enumerate(batch):
                wanted = np.array(encodings[index].special_tokens_mask) == 0
                wanted &= with_tokens
                tokens = unit_rows(hidden[row, : len(wanted)][wanted])
                results[index] = EncodedText(embeddings[row], ids[row][wanted].astype(np.int32), tokens)
        return [results[index] for index in range(len(texts))]

    def _forward(self, ids: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Give the embeddings, shape (texts, dimensions), and the last layer, shape (texts, longest, dimensions)."""
        import torch  # noqa: PLC0415

        lengths = np.array([len(row) for row in ids])
        mask = np.arange(lengths.max()) < lengths[:, None]
        padded = np.full(mask.shape, self._padding, dtype=np.int64)
        padded[mask] = np.concatenate(ids)
        with torch.inference_mode():
            hidden = self._transformer(
                input_ids=torch.from_numpy(padded),
                # Texts of the same length leave nothing to mask, and attention takes a shorter way.
                attention_mask=None if mask.all() else torch.from_numpy(mask),
            ).last_hidden_state
            means = (hidden * torch.from_numpy(mask).unsqueeze(-1)).sum(1) / torch.from_numpy(lengths).unsqueeze(-1)
            if self._normalised:
                means = torch.nn.functional.normalize(means, dim=1)
        return means.numpy(), hidden.numpy()

    def _load(self) -> None:
        # Imported here: most importers of this module never encode anything, and transformers takes seconds.
        from tokenizers import Tokenizer  # noqa: PLC0415
        from transformers import AutoModel  # noqa: PLC0415

        folder = _model_folder(self.model)
        self._normalised = _check_parts(folder, self.model)
        try:
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            transformer = AutoModel.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # both libraries raise many kinds, plain Exception among them
            raise ConfigurationError(
                f"The embedder `{self.model}` could not be loaded from `{folder}`: {error}. "
                "Put the model whole into the Hugging Face cache, or name its folder."
            ) from error
        transformer.eval()
        limit = _read_json(folder / "sentence_bert_config.json").get("max_seq_length")
        self.window = int(limit or transformer.config.max_position_embeddings)
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.window)
        self._padding = int(transformer.config.pad_token_id or 0)
        self._tokenizer, self._transformer = tokenizer, transformer


@cache
def token_encoder(model: str) -> TokenEncoder:
    """
    Give the process's encoder of a model, which is loaded at its first use.

    :param model: The model's name in the Hugging Face cache, or its folder.
    :returns: The same encoder for every caller that names the model.
    """
    return TokenEncoder(model)


def _model_folder(model: str) -> Path:
    if Path(model).is_dir():
        return Path(model)
    from huggingface_hub import snapshot_download  # noqa: PLC0415

    if model == PACKAGED_MODEL:
        seed_model_cache()
    try:
        return Path(snapshot_download(model, local_files_only=True))
    except Exception as error:  # a wrong name and a missing snapshot are different errors there
        raise ConfigurationError(
            f"The embedder `{model}` is not in the Hugging Face cache of this machine, and nothing is downloaded. "
            f"Fetch it once with `hf download {model}`, or name a folder."
        ) from error


def _check_parts(folder: Path, model: str) -> bool:
    """Tell whether the model normalises its embeddings, and refuse one that does what this module does not."""
    modules = _read_json(folder / "modules.json") or []
    parts = [module["type"].rsplit(".", 1)[-1] for module in modules]
    pooling = _read_json(folder / modules[1]["path"] / "config.json") if len(parts) > 1 else {}
    modes = [name for name, value in pooling.items() if name.startswith("pooling_mode_") and value is True]
    lowered = _read_json(folder / "sentence_bert_config.json").get("do_lower_case")
    if parts not in _PARTS or modes != [_MEAN] or lowered:
        raise ConfigurationError(
            f"The embedder `{model}` is made of {', '.join(parts) or 'unknown parts'} with "
            f"{', '.join(modes) or 'no pooling known here'}; token vectors need a transformer with mean pooling alone. "
            "Name such a model, or use Haystack's SentenceTransformers embedders without token vectors."
        )
    return "Normalize" in parts


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
