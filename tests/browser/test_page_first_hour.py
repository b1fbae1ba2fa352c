"""The first screen, and where a question and its answer stand when several have been asked."""

import pytest
from tests.doubles.page_site import WAIT, Script, ask, passage, source

from shiguan.serving.error_replies import ApiError

pytestmark = pytest.mark.browser
SIZES = [(1440, 900), (1180, 700), (390, 844)]


def box(page, selector):
    place = page.locator(selector).bounding_box()
    return place["y"], place["y"] + place["height"]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_question_begins_at_the_top_and_an_error_is_in_sight(site, opened, width, height):
    short, long = Script(["An Lushan rose in 755."]).events(), Script(["An Lushan rose in 755."] * 40).events()
    page = opened(site.url + "/", width=width, height=height)
    for number in range(10):
        site.script = long if number % 3 == 1 else short
        ask(page, f"Who rose, {number}?", done=False)
        page.wait_for_selector(f".turn:nth-of-type({number + 1}) .more", state="attached")
        top, bottom = box(page, ".turn:last-of-type .query")
        assert (0 <= top < 100) if number else (0 <= top < height / 4)
        assert bottom < box(page, ".turn:last-of-type .sentence >> nth=0")[1] < box(page, ".composer")[0]
    site.script = [*long[:-1], ("error", ApiError("upstream_unavailable").body())]
    ask(page, "And then?", done=False)
    page.wait_for_selector(".failure")
    top, bottom = box(page, ".failure")
    assert 0 <= top < bottom <= box(page, ".composer")[0]
    site.script = [*short[:3], (WAIT, None), *short[3:]]
    ask(page, "Is it read?", done=False)
    page.wait_for_selector(".turn:last-of-type .state >> text=Writing")
    assert 0 <= box(page, ".turn:last-of-type .query")[0] < 100
    site.go.set()
    page.wait_for_selector(".turn:last-of-type .more", state="attached")


def test_the_first_screen_shows_the_library_and_questions_about_its_headings(site, opened):
    site.model = False
    headings = ["Preface", "Chapter 3", "志 卷三", "志 卷三 潼关。", "1.2 The Siege", "IV. Salt", "Civil war", "Index"]
    site.passages = [passage(place, "Text.", section=["Part", one]) for place, one in enumerate(headings)]
    site.sources = [source("tang.epub", "The Tang"), *(source(f"{n}.txt", None) for n in range(9))]
    page = opened(site.url + "/")
    page.wait_for_selector(".samples button")
    assert page.locator(".titles li").all_inner_texts() == ["The Tang", *(f"{n}.txt" for n in range(7)), "and 2 more"]
    samples = page.locator(".samples button").all_inner_texts()
    assert len(samples) == 3
    assert set(samples) <= {
        "What does the book say about the Siege?", "What does the book say about Salt?", "关于潼关，书中怎么说？",
        "What does the book say about Civil war?",
    }  # fmt: skip
    page.locator(".samples button").first.click()
    assert page.locator("#question").input_value() == samples[0]
    modes = page.locator("#mode option").all_inner_texts()
    assert [one.split(":")[0] for one in modes] == ["Simple", "Advanced", "Precise", "Agent"]
    assert all(": " in one for one in modes)
    assert "every mode quotes the same passages" in page.locator(".composer").inner_text()
    site.sources.append(source("new.txt", "New"))
    site.job = {"id": "j", "source": "new.txt", "state": "done", "progress": {}, "error": None,
                "result": {"parents": 1, "new": 1, "vectors": 1, "warnings": [], "skipped": []}}  # fmt: skip
    page.set_input_files("#files", {"name": "new.txt", "mimeType": "text/plain", "buffer": b"text"})
    page.wait_for_selector(".titles >> text=and 3 more")


@pytest.mark.parametrize("heading", [
    "SUGGESTIONS FOR READING", "Further Reading", "Selected bibliography", "INTRODUCTORY", "List of Illustrations",
    "Works cited", "Translator's Note", "Notes on the text", "Author’s preface to the second edition", "Afterword",
    "参考书目", "主要参考文献", "延伸阅读", "译者序", "再版前言", "出版说明", "导论", "结语", "作者简介", "插图目录", "第三章 结论",
])  # fmt: skip
def test_no_question_is_suggested_about_what_comes_before_or_behind_the_text(site, opened, heading):
    assert samples(site, opened, heading, "The Salt Tax") == {"the Salt Tax"}


def test_a_heading_in_capitals_is_asked_about_in_small_letters(site, opened):
    found = samples(site, opened, "193 THE EMPEROR'S NEW CLOTHES", "KING HENRY VIII", "NASA")
    assert found == {"the Emperor's New Clothes", "King Henry VIII", "NASA"}


def samples(site, opened, *headings):
    """What the questions that a library of these headings suggests are about."""
    site.passages = [passage(place, "Text.", section=[one]) for place, one in enumerate(headings)]
    page = opened(site.url + "/")
    page.wait_for_selector(".samples button")
    told = page.locator(".samples button").all_inner_texts()
    assert all(one.startswith("What does the book say about ") for one in told)
    return {one.removeprefix("What does the book say about ").removesuffix("?") for one in told}


def test_words_of_the_library_are_not_broken(site, opened):
    site.sources = [source("a.epub", "A", language="zh-Hant", passages=26_300, complete=False, vectors=3)]
    page = opened(site.url + "/#/library", width=1180)
    page.wait_for_selector(".source")
    lines = page.locator(".facts span").evaluate_all(
        "all => all.map((one) => one.offsetHeight / parseFloat(getComputedStyle(one).lineHeight))"
    )
    assert max(lines) < 1.5


def test_the_library_is_listed_by_year_with_conversions_as_such(site, opened):
    site.passages[0]["text"] = "Before.\nKeeper | From\nMarsh | 1841"
    page = opened(site.url + "/#/library")
    page.fill("#years", "755..763")
    page.press("#years", "Enter")
    page.wait_for_selector(".found .when")
    assert page.inner_text(".found .when") == "[天寶十四載] = 16 December 755"
    lines = page.locator(".found blockquote p").all_inner_texts()
    assert [line.strip() for line in lines] == ["755..763 Before.", "Keeper | From", "Marsh | 1841"]
    assert page.get_attribute(".found a.link", "href").startswith("#/book?")
    chinese = opened(site.url + "/#/library", locale="zh-CN")
    chinese.fill("#years", "755")
    chinese.press("#years", "Enter")
    chinese.wait_for_selector(".found .when")
    assert chinese.inner_text(".found .when") == "[天寶十四載] = 755年12月16日"
    page.fill("#years", "")
    page.fill("#search", "fanyang ROSE 755")
    page.press("#search", "Enter")
    page.wait_for_selector(".hit .passage")
    assert page.locator(".hit .passage strong").all_inner_texts() == ["rose", "Fanyang", "755"]
