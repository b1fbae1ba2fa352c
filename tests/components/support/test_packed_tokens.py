import copy
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.support.packed_tokens import pack, rotation, token_ids, unpack
from shiguan.support.token_encoder import EncodedText
from shiguan.support.token_vectors import TokenVectors, unit_rows

pytestmark = pytest.mark.transformers


def text(count, dimensions=384, seed=0):
    random = np.random.default_rng(seed)
    rows = unit_rows(random.standard_normal((count, dimensions)))
    return EncodedText(rows.sum(axis=0), random.integers(0, 50, count).astype(np.int32), rows)


def vectors(*texts, dimensions=384):
    bounds, values, scales = unpack([pack(each, "m").vectors for each in texts], dimensions)
    return TokenVectors([], bounds, values, scales, rotation(dimensions), np.zeros(0, dtype=np.int32), 0)


def test_the_rotation_is_always_the_same_and_keeps_products():
    basis = rotation(384)
    np.testing.assert_allclose(basis @ basis.T, np.eye(384), atol=1e-5)
    # Its first column has the direction of the signs that begin the hash.
    assert (np.sign(basis[:8, 0]) == np.sign(rotation.__wrapped__(384)[:8, 0])).all()
    assert abs(basis[:, 0]).max() - abs(basis[:, 0]).min() < 1e-6
    assert rotation(3).shape == (3, 3)


def test_signs_are_kept_a_bit_for_each_dimension():
    """Turned back, the first vector of the rotated space has a 1 in its first place and about 0 elsewhere."""
    turned = np.array([[3.0, -1.0, -2.0, 0.5, 0.25, -0.25, 1.0, 1.0, -1.0, 2.0]])
    given_text = EncodedText(np.zeros(10), np.array([7], dtype=np.int32), unit_rows(turned @ rotation(10).T))
    packed = pack(given_text, "m")
    assert packed.vectors == bytes([0b10011011, 0b01000000])
    bounds, values, scales = unpack([packed.vectors], 10)
    assert bounds.tolist() == [0, 1]
    assert values.tolist() == [[1, -1, -1, 1, 1, -1, 1, 1, -1, 1]]
    np.testing.assert_allclose(scales, [math.sqrt(math.pi / 20)])


def test_cosines_come_back_with_the_error_that_is_stated():
    stored, asked = text(300, seed=1), text(40, seed=2)
    near = unit_rows(asked.tokens + 0.8 * stored.tokens[:40])
    found = vectors(stored)
    similar = (found.project(near) @ found.values.astype(np.float32).T) * found.scales
    errors = similar - near @ stored.tokens.T
    assert abs(errors.mean()) < 0.003
    assert 0.03 < errors.std() < 0.043


def test_ids_are_kept_once():
    packed = pack(EncodedText(np.zeros(8), np.array([9, 4, 9], dtype=np.int32), np.ones((3, 8))), "m")
    assert token_ids(packed.token_ids).tolist() == [4, 9]
    assert len(packed.vectors) == 3


@given(st.lists(st.integers(0, 9), max_size=5), st.sampled_from([3, 8, 20]))
def test_each_document_gets_its_own_rows_back(counts, dimensions):
    texts = [text(count, dimensions, seed=place) for place, count in enumerate(counts)]
    found = vectors(*texts, dimensions=dimensions)
    assert np.diff(found.bounds).tolist() == counts
    expected = np.concatenate([np.zeros((0, dimensions))] + [each.tokens @ rotation(dimensions) for each in texts])
    assert (found.values == np.where(expected > 0, 1, -1)).all()


def test_it_travels_without_being_copied():
    packed = pack(text(3), "m")
    assert copy.deepcopy({"meta": packed})["meta"] is packed


def test_the_idf_is_that_of_bm25():
    """Of 10 children 3 have the token 2: ln(1 + 7.5 / 3.5); the token 8 was never seen: ln(1 + 10.5 / 0.5)."""
    found = TokenVectors([], np.zeros(1), np.zeros((0, 4)), np.zeros(0), None, np.array([0, 10, 3]), 10)
    np.testing.assert_allclose(found.idf(np.array([2, 8])), [math.log(1 + 7.5 / 3.5), math.log(22)], rtol=1e-6)
    assert found.idf(np.array([1]))[0] > 0
