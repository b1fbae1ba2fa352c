"""The page as its readers meet it, in a real browser, with a server that says what each test wants."""

from pathlib import Path

import pytest
from tests.doubles.page_site import CUT, WAIT, Script, ask, passage, source

from shiguan.serving.error_replies import ApiError

pytestmark = pytest.mark.browser
UI = Path(__file__).resolve().parents[2] / "hayhooks" / "ui"


def no_sideways(page):
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_page_is_small_and_loads_nothing_twice(site, opened):
    assert sum(path.stat().st_size for path in UI.iterdir()) < 170_000
    opened(site.url + "/")
    files = [line for line in site.seen if line.startswith("GET /ui/")]
    assert len(files) == len(set(files)) > 10


def test_a_sentence_is_judged_as_soon_as_its_event_comes(site, asked):
    told = Script(["An Lushan rose in 755.", "He took Luoyang."]).events()
    page = asked(done=False, told=[*told[:6], (WAIT, None), *told[6:]])
    first = page.locator(".turn .sentence")
    first.wait_for()
    assert first.count() == 1
    assert page.locator(".answer").get_attribute("aria-busy") == "true"
    page.locator(".sentence").click()
    assert page.locator(".beside mark").inner_text() == "An Lushan"
    site.go.set()
    page.wait_for_selector(".more")
    # What is well needs no word; what was chosen while the answer came is still chosen.
    assert page.locator("button.verdict").all_inner_texts() == ["partly supported"]
    assert page.locator(".sentence.chosen").get_attribute("data-claim") == "0"
    assert page.locator(".tally").inner_text() == "Sentences checked: 2. 1 partly supported."


def test_arrows_go_from_sentence_to_sentence(asked):
    page = asked(told=Script(["One.", "Two.", "Three."]).events())
    page.locator(".sentence sup a").first.focus()
    for keys, reason in ((("Enter", "ArrowDown"), 1), (("ArrowDown",), 2), (("ArrowUp", "ArrowUp"), 0)):
        for key in keys:
            page.keyboard.press(key)
        page.wait_for_selector(f".beside .reason >> text=reason {reason}")


def test_footnotes_tables_and_quotations_of_a_passage_are_shown_as_such(site, opened):
    text = "He rose.[Note: In 755.] Then\n\nA | B\n1 | 2\n\nSo it is said."
    note = text.index("[Note")
    table, quote = text.index("A |"), text.index("So it")
    blocks = [
        {"start": 0, "end": table - 2, "kind": "text", "notes": [{"start": note, "end": text.index("]") + 1}]},
        {"start": table, "end": quote - 2, "kind": "table"},
        {"start": quote, "end": len(text), "kind": "quote"},
    ]
    site.passages[1] = passage(1, text, blocks=blocks)
    page = opened(site.url + "/#/book?source=tang.epub")
    page.wait_for_selector(".page .passage")
    assert page.locator(".page .passage").all_inner_texts()[::2] == ["Before.", "After."]
    assert page.locator(".page sup.note").inner_text() == "1"
    assert page.locator(".notes li").inner_text() == "In 755."
    assert [cell.strip() for cell in page.locator(".page td").all_inner_texts()] == ["A", "B", "1", "2"]
    assert page.locator(".page blockquote").inner_text() == "So it is said."


def test_spans_count_code_points(site, asked):
    site.passages[1] = passage(1, "𠀀𠀁安禄山反。")  # two characters beyond the first plane
    page = asked(told=Script(["An Lushan rose."], quote=(2, 5)).events())
    page.locator(".sentence").click()
    assert page.locator(".beside mark").inner_text() == "安禄山"


def test_a_broken_line_keeps_what_came_and_offers_another_try(site, asked):
    told = Script(["An Lushan rose in 755.", "He took Luoyang."]).events()
    page = asked(done=False, told=[*told[:6], (CUT, None)])
    page.wait_for_selector(".failure >> text=The connection was lost")
    assert page.locator(".turn .sentence").count() == 1
    site.script = told
    page.locator(".failure button").click()
    page.wait_for_selector(".more")
    assert page.locator(".turn").count() == 1


def test_a_refusal_says_what_to_do(site, asked):
    site.refusal = ApiError("too_many_requests", headers={"Retry-After": "7"})
    page = asked(done=False)
    page.wait_for_selector(".failure >> text=Too many questions")
    assert "Try again in 7 s." in page.locator(".failure").inner_text()
    assert "r-3" in page.locator(".failure").inner_text()


@pytest.mark.parametrize(("locale", "said"), [("en-US", "has 2,001 characters"), ("zh-CN", "问题有2,001个字")])
def test_a_question_that_is_too_long_is_neither_cut_nor_sent(site, opened, locale, said):
    page = opened(site.url + "/", locale=locale)
    page.fill("#question", "😀" * 2001)
    page.press("#question", "Enter")
    assert said in page.evaluate("document.querySelector('#question').validationMessage")
    assert (page.locator(".turn").count(), page.input_value("#question")) == (0, "😀" * 2001)
    page.fill("#question", "Who rose?")
    page.press("#question", "Enter")
    page.wait_for_selector(".turn")


def test_stopping_ends_the_stream(site, asked):
    told = Script(["An Lushan rose in 755."]).events()
    page = asked(done=False, told=[*told[:4], (WAIT, None), *told[4:]])
    page.wait_for_selector(".pending >> text=An Lushan")
    page.locator(".composer .primary").click()
    page.wait_for_selector(".failure >> text=Stopped.")
    site.go.set()


def test_the_key_is_asked_once_kept_for_the_tab_and_again_when_it_is_revoked(site, opened):
    site.keys = {"sk-1"}
    page = opened(site.url + "/", wait=False)

    def give(key, then):
        page.fill("dialog #key", key)
        page.press("dialog #key", "Enter")
        page.wait_for_selector(then)

    give("wrong", "dialog >> text=not valid")
    give("sk-1", ".welcome")
    page.reload()
    page.wait_for_selector(".welcome")
    assert page.locator("dialog").count() == 0
    assert page.evaluate("JSON.stringify(localStorage)").find("sk-1") < 0
    site.keys = {"sk-2"}
    ask(page, done=False)
    page.wait_for_selector("dialog >> text=not valid")
    give("sk-2", ".more")
    other = page.context.new_page()
    other.goto(site.url + "/")
    other.wait_for_selector("dialog #key")


def test_two_thousand_sources_can_be_looked_through(site, opened):
    site.sources = [source(f"book-{number}.epub", f"Book {number}") for number in range(2000)]
    page = opened(site.url + "/#/library")
    page.wait_for_selector(".source")
    assert page.locator(".count").inner_text() == "Sources: 2,000"
    assert page.locator(".source").count() == 200
    page.fill("#filter", "book 1999")
    page.wait_for_selector(".source .name a >> text=Book 1999")
    assert page.locator(".source .name a").all_inner_texts() == ["Book 1999"]
    page.fill("#filter", "")
    page.locator("button >> text=Show all 2,000").click()
    assert page.locator(".source").count() == 2000


def test_a_deletion_can_be_undone_for_some_seconds(site, opened):
    page = opened(site.url + "/#/library")
    page.clock.install()
    page.locator(".source .actions >> text=Delete").click()
    assert page.locator(".source").count() == 0
    page.locator(".toast >> text=Undo").click()
    assert page.locator(".source").count() == 1
    page.clock.run_for(10_000)
    assert site.deleted == []
    page.locator(".source .actions >> text=Delete").click()
    with page.expect_response(lambda reply: reply.request.method == "DELETE"):
        page.clock.run_for(7_000)
    assert site.deleted == ["tang.epub"]


def test_an_upload_tells_its_progress_and_what_was_skipped(site, opened):
    site.job = {
        "id": "j1", "source": "new.zip", "state": "done", "progress": {"stage": None, "done": 0, "total": 0},
        "error": None,
        "result": {
            "parents": 4, "new": 3, "vectors": 9, "warnings": ["No cover."],
            "skipped": [{"source": "x.pdf", "cause": "it is encrypted", "next_step": "Remove the password"}],
        },
    }  # fmt: skip
    page = opened(site.url + "/#/library")
    page.set_input_files("#files", {"name": "new.txt", "mimeType": "text/plain", "buffer": b"text"})
    page.wait_for_selector(".jobs >> text=4 passages, 3 new, 9 vectors")
    page.locator(".jobs summary").click()
    assert "x.pdf: it is encrypted. Remove the password." in page.locator(".jobs").inner_text()


def test_a_question_can_be_limited_to_a_chapter(site, opened):
    page = opened(site.url + "/#/book?source=tang.epub")
    page.locator("text=Ask only this chapter").click()
    page.wait_for_selector(".limit .chip")
    ask(page)
    assert site.asked[-1]["sources"] == ["tang.epub"]
    assert site.asked[-1]["sections"] == ["1 War"]
    page.locator(".limit button").click()
    ask(page)
    assert "sources" not in site.asked[-1]
    assert site.asked[0]["conversation_id"] == site.asked[1]["conversation_id"]


def test_what_was_removed_and_why_can_be_opened(site, asked):
    site.script = Script(
        ["An Lushan rose."],
        changes=[
            {"claim": "He was tall.", "kind": "removed", "was": [2], "numbers": [], "reason": "nothing says so"},
            {"claim": "An Lushan rose.", "kind": "replaced", "was": [2], "numbers": [1], "reason": ""},
        ],
        warnings=["3 units have no vector yet."],
    ).events()
    page = asked()
    page.locator("summary >> text=Removed from the answer (1)").click()
    assert page.locator(".changes del").inner_text() == "He was tall."
    page.locator("summary >> text=Why").click()
    page.wait_for_selector(".why dl")  # made when it is unfolded
    assert "3 units have no vector yet." in page.locator(".why").inner_text()
    assert "321" in page.locator(".why dl").inner_text()
    page.fill(".lost textarea", "rose at Fanyang")
    page.locator(".lost button").click()
    page.wait_for_selector(".lost >> text=It was found, but other passages were preferred.")
    assert page.locator(".ranks .missed").inner_text().split("\n") == ["found by meaning", "not among 50"]


def test_an_answer_is_taken_away_in_every_form(asked):
    page = asked()
    page.locator("summary >> text=Export").click()
    saved = {}
    for name in ("Markdown", "BibTeX", "RIS", "CSL JSON", "Word"):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=name, exact=True).click()
        saved[name] = Path(waiting.value.path()).read_bytes().decode("utf-8", "replace")
    begin = {"Markdown": "# Who rose?", "BibTeX": "@", "RIS": "TY  - ", "CSL JSON": "[", "Word": "PK"}
    assert {name: text[: len(begin[name])] for name, text in saved.items()} == begin


@pytest.mark.parametrize(("locale", "right", "wrong", "tell", "kept"), [
    ("en-US", "Helpful", "Something is wrong", "Send", "Thank you. Noted: “A passage does not say this”."),
    ("zh-CN", "对", "有误", "提交", "谢谢，已记下：所引原文没有这样说。"),
])  # fmt: skip
def test_an_answer_is_judged_with_the_keyboard_alone(site, asked, locale, right, wrong, tell, kept):
    page = asked(locale=locale)
    button = page.locator(".judge").get_by_role("button", name=right, exact=True)
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".judge button[aria-pressed=true]")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == wrong
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.type("another year")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == tell
    page.keyboard.press("Enter")
    page.wait_for_selector(f".judge [role=status] >> text={kept}")
    assert page.evaluate("document.activeElement.textContent") == wrong
    assert button.get_attribute("aria-pressed") == "false"
    receipt = "ab" * 32
    assert site.judged == [
        {"receipt": receipt, "kind": "right", "note": ""},
        {"receipt": receipt, "kind": "wrong_citation", "note": "another year"},
    ]


def test_a_judgement_that_is_not_taken_keeps_what_was_typed(site, asked):
    page = asked()
    site.refusal = ApiError("not_found", message="There is no such receipt.")
    page.locator(".judge summary").click()
    page.fill(".judge textarea", "another year")
    page.locator(".judge form button").click()
    page.wait_for_selector(".judge .failure >> text=There is no such receipt.")
    assert page.locator(".judge textarea").input_value() == "another year"


def test_a_link_by_receipt_shows_the_answer_and_whether_it_is_stale(site, opened):
    site.receipts["cd" * 32] = Script(["An Lushan rose."]).answer()
    page = opened(f"{site.url}/#/answer/{'cd' * 32}")
    page.wait_for_selector(".turn .sentence")
    assert "replaced or deleted" in page.locator(".notice").inner_text()
    gone = opened(f"{site.url}/#/answer/{'ee' * 32}")
    gone.wait_for_selector(".failure >> text=There is no such receipt.")


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("width", [320, 390, 768, 1600])
def test_every_view_fits_its_sheet_in_both_languages(site, opened, width, locale):
    site.passages = [passage(n, "text " * 80, section=[f"{n} Chapter", f"{n}.1 Part"]) for n in range(30)]
    site.sources = [source("x" * 180 + ".epub", "y" * 300, complete=False, vectors=3)]
    page = opened(site.url + "/", width=width, locale=locale)
    assert page.evaluate("document.documentElement.lang") == ("zh-Hans" if locale == "zh-CN" else "en")
    assert no_sideways(page)
    # No word of the frame is broken over two lines.
    assert page.evaluate(
        "[...document.querySelectorAll('.rail span, .tools button')].every((one) => one.scrollWidth <= one.clientWidth + 1 || !one.clientWidth)"
    )
    ask(page)
    page.locator(".sentence").click()
    page.wait_for_selector(".beside mark")
    for more in page.locator(".more summary, .judge summary").all():
        more.evaluate("one => { one.parentElement.open = true }")
    assert no_sideways(page)
    for view, ready in (("library", ".source"), ("book?source=tang.epub&at=7", ".page .passage"), ("past", ".wide h1")):
        page.goto(f"{site.url}/#/{view}")
        page.wait_for_selector(ready)
        assert no_sideways(page), view


def test_without_a_model_quotations_look_like_quotations(site, asked):
    answer = Script(["An Lushan rose."]).answer()
    answer["status"], answer["metadata"]["claims"] = "quoted", []
    answer["citations"] = [
        {**answer["citations"][0], "verdict": "quoted", "quote": "He rose. In 755 he fell. So.", "start": 0, "end": 28,
         "sentence": [9, 24], "words": [[12, 15]], "title": "Tang", "section": ["Tang", "Fall"]}
    ]  # fmt: skip
    site.script, site.model = [("generation_complete", answer)], False
    page = asked(width=390)
    # A title is not repeated as the first heading, and beside what says so the modes can still be read.
    assert page.locator("figcaption span").first.inner_text().startswith("Tang › Fall")
    assert page.locator("#mode").bounding_box()["width"] > 120
    assert page.locator("blockquote.quotation p").all_inner_texts() == ["In 755 he fell.", "He rose. […] So."]
    assert page.locator(".notice strong").inner_text() == "Closest passages, word for word"


@pytest.mark.parametrize(("before", "after", "around"), [
    ("He rose. ", " Dr. J. Tull saw it. So.", "He rose. […] Dr. J. Tull saw it."),
    ("He rose. ", " It burned in Jan. 1893. So.", "He rose. […] It burned in Jan. 1893."),
    ("She left. He rose. [Note: Id. iii, verse 24.] ", " So.", "He rose. [Note: Id. iii, verse 24.] […] So."),
    ("He rose. ", " So. [Note: See Bede. Not Gildas.] Or not.", "He rose. […] So. [Note: See Bede. Not Gildas.]"),
])  # fmt: skip
def test_the_sentences_beside_a_quotation_are_whole_with_their_notes(asked, before, after, around):
    answer = Script(["An Lushan rose."]).quotations("quoted")
    own = "In 755 he fell."
    quote, start = f"{before}{own}{after}", len(before)
    answer["citations"][0] |= {"quote": quote, "start": 0, "end": len(quote), "language": "en",
                               "sentence": [start, start + len(own)]}  # fmt: skip
    page = asked(told=[("generation_complete", answer)])
    assert page.locator("blockquote.quotation p").all_inner_texts() == [own, around]
