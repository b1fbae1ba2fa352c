"""The definition of text and paths behind anchors."""

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from shiguan.ingest.epub.trees import walk

TREES = st.recursive(
    st.sampled_from(["<p/>", "<i/>", "<body/>"]),
    lambda inner: st.builds(
        lambda tag, kids: f"<{tag}>{''.join(kids)}</{tag}>", st.sampled_from("abp"), st.lists(inner)
    ),
    max_leaves=20,
)


@given(TREES)
def test_every_path_is_an_xpath_to_its_element(tree):
    root = etree.fromstring(f"<html>{tree}<body>{tree}</body></html>")
    for event, element, path, _ in walk(root):
        if event == "start" and "body" not in path:
            assert root.xpath(path) == [element]
