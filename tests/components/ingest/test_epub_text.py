"""The definition of text and paths behind anchors."""

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from shiguan.ingest.epub.trees import element_text, walk


def test_blocks_separate_words_and_inline_elements_do_not():
    root = etree.fromstring("<body><p>one<b>two</b></p><p>three<br/>four</p> tail</body>")
    assert element_text(root) == "onetwo three four tail"


def test_readings_scripts_and_media_are_no_text():
    root = etree.fromstring("<p>a<ruby>b<rt>x</rt></ruby><script>y</script>c<audio>z</audio>d</p>")
    assert element_text(root) == "abcd"


def test_paths_count_siblings_of_a_name():
    root = etree.fromstring("<html><head/><body><p/><div><p/></div><p/></body></html>")
    assert [path for event, _, path, _ in walk(root) if event == "start"] == [
        "/html", "/html/head[1]", "/html/body", "/html/body/p[1]", "/html/body/div[1]", "/html/body/div[1]/p[1]",
        "/html/body/p[2]",
    ]  # fmt: skip


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
