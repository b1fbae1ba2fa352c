"""What is embedded again and what is remembered, for whom, and with several who ask at once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from shiguan.models.engine import VectorMemory


class Embedder:
    """Gives each text its length as its vector, and notes what it was asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, texts):
        self.asked.append(texts)
        return [np.array([len(text)], np.float32) for text in texts]


def lengths(found):
    return [int(vector[0]) for vector in found]


def test_only_what_is_not_remembered_is_embedded():
    memory, embed = VectorMemory(10), Embedder()
    assert lengths(memory.vectors("t", "query", ["bb", "a", "bb"], embed)) == [2, 1, 2]
    assert lengths(memory.vectors("t", "query", ["ccc", "a"], embed)) == [3, 1]
    assert embed.asked == [["a", "bb"], ["ccc"]]


def test_another_tenant_and_another_kind_are_embedded_anew():
    memory, embed = VectorMemory(10), Embedder()
    for tenant, kind in (("t", "query"), ("u", "query"), ("t", "passage")):
        assert lengths(memory.vectors(tenant, kind, ["a"], embed)) == [1]
    assert embed.asked == [["a"]] * 3


def test_the_oldest_is_forgotten():
    memory, embed = VectorMemory(2), Embedder()
    for text in ("a", "b", "c", "a"):
        memory.vectors("t", "query", [text], embed)
    assert embed.asked == [["a"], ["b"], ["c"], ["a"]]


def test_an_embedder_that_gives_nothing_or_fails_is_asked_again():
    memory, embed = VectorMemory(10), Embedder()
    assert memory.vectors("t", "query", ["a"], lambda _: []) == []
    with pytest.raises(RuntimeError):
        memory.vectors("t", "query", ["a"], lambda _: (_ for _ in ()).throw(RuntimeError))
    assert lengths(memory.vectors("t", "query", ["a"], embed)) == [1]


def test_two_who_want_the_same_texts_in_another_order_embed_each_once_and_both_end():
    texts = [f"{number:03}" for number in range(200)]
    memory, embed, start = VectorMemory(1_000), Embedder(), Barrier(4)

    def ask(order):
        start.wait(10)
        return [lengths(memory.vectors("t", "query", order[at : at + 20], embed)) for at in range(0, 200, 10)]

    with ThreadPoolExecutor(4) as pool:
        orders = [texts, texts[::-1], texts[50:] + texts[:50], texts[::-1]]
        assert all(found for found in pool.map(ask, orders, timeout=30))
    assert sorted(text for asked in embed.asked for text in asked) == texts
