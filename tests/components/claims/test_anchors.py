from shiguan.claims.citations import anchor_at

BLOCKS = [
    {"start": 0, "end": 10, "kind": "text", "anchor": {"href": "a.xhtml", "offset": 0}},
    {"start": 12, "end": 20, "kind": "text", "anchor": {"href": "b.xhtml", "offset": 7}},
]


def test_offset_moves_within_the_block():
    assert anchor_at({"blocks": BLOCKS}, 3) == {"href": "a.xhtml", "offset": 3}
    assert anchor_at({"blocks": BLOCKS}, 15) == {"href": "b.xhtml", "offset": 10}


def test_a_place_between_blocks_has_the_parents_anchor():
    assert anchor_at({"blocks": BLOCKS, "anchor": {"href": "a.xhtml"}}, 11) == {"href": "a.xhtml"}


def test_pages_have_no_offset_to_move():
    assert anchor_at({"anchor": {"page": 4}}, 100) == {"page": 4}


def test_nothing_known_is_none():
    assert anchor_at({}, 0) is None


def test_the_stored_anchor_is_not_changed():
    anchor_at({"blocks": BLOCKS}, 3)
    assert BLOCKS[0]["anchor"] == {"href": "a.xhtml", "offset": 0}
