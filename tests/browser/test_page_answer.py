"""What stands around an answer: its marks, its passages, its sources, and what is said where nothing clearly answers."""

import re

import pytest
from tests.doubles.page_site import WAIT, Script, ask, passage, source

from shiguan.serving.error_replies import ApiError

pytestmark = pytest.mark.browser
SENTENCES = ["An Lushan rose in 755.", "He took Luoyang."]
HEBREW = "הקברניט ציווה לקפל את המפרש. הרוח התחזקה."


def written(page):
    """What each sentence is followed by, in order."""
    return page.locator(".sentence").evaluate_all(
        "all => all.map((one) => one.innerText.replace(/\\s+/gu, ' ').trim())"
    )


@pytest.mark.parametrize("behind", [False, True])
def test_marks_stay_with_their_sentence_while_it_is_written_and_after(site, asked, behind):
    script = Script(SENTENCES, marks_behind=behind)
    told = script.events()
    site.script = [*told[:6], (WAIT, None), *told[6:]]
    expected = ["An Lushan rose in 755. 1", "He took Luoyang. 1 partly supported"]
    page = asked(done=False)
    page.locator(".sentence").wait_for()
    assert [one.replace("755.1", "755. 1") for one in written(page)] == expected[:1]
    site.go.set()
    page.wait_for_selector(".more")
    assert [re.sub(r"\.(?=1)", ". ", one) for one in written(page)] == expected
    site.receipts["cd" * 32] = script.answer()
    page.goto(f"{site.url}/#/answer/{'cd' * 32}")
    page.wait_for_selector(".turn .sentence")
    assert [re.sub(r"\.(?=1)", ". ", one) for one in written(page)] == expected


def test_a_mark_that_comes_late_is_put_behind_its_own_sentence(site, asked):
    told = Script(SENTENCES, marks_behind=True).events()
    told[4] = ("token", {"text": told[4][1]["text"].replace(" [1]", "")})
    told[6] = ("token", {"text": "[1] " + told[6][1]["text"]})
    page = asked(done=False, told=[*told[:-1], (WAIT, None), told[-1]])
    page.locator(".sentence").nth(1).wait_for()
    assert page.locator(".sentence").first.locator("sup.mark").inner_text() == "1"
    assert page.locator(".answer p").inner_text().count("[1]") == 0
    site.go.set()


def test_a_mark_opens_its_passage_and_is_a_link_into_the_book(asked):
    page = asked(width=390, told=Script(SENTENCES).events())
    mark = page.locator(".sentence").nth(1).locator("sup.mark a")
    assert mark.get_attribute("href") == "#/book?source=tang.epub&passage=p1&start=0&end=9"
    mark.click()
    page.wait_for_selector(".beside.open .reason >> text=reason 1")
    assert "#/ask/" in page.url


@pytest.mark.parametrize(("width", "opens"), [(1280, True), (390, False)])
def test_the_first_passage_opens_by_itself_where_there_is_room(asked, width, opens):
    page = asked(width=width)
    if opens:
        page.locator(".beside mark").wait_for()
    assert page.locator(".beside mark").count() == int(opens)
    assert page.locator(".sentence.chosen").count() == int(opens)
    assert page.evaluate("document.activeElement.id") == "question"


@pytest.mark.parametrize(("width", "place", "said", "then"), [
    (1280, ".beside", "Passages read: 1", ".beside h2 >> text=The passage"), (390, ".readings", "The Tang", ".more"),
])  # fmt: skip
def test_passages_are_shown_while_the_model_writes(site, asked, width, place, said, then):
    told = Script(SENTENCES).events()
    page = asked(done=False, width=width, told=[*told[:3], (WAIT, None), *told[3:]])
    page.wait_for_selector(f"{place} .passage >> text=An Lushan rose at Fanyang in 755.")
    assert said in page.locator(place).inner_text()
    site.go.set()
    page.wait_for_selector(then)
    assert page.locator(".readings").count() == 0


@pytest.mark.parametrize("width", [1280, 390])
def test_a_quote_in_a_table_is_scrolled_to(site, asked, width):
    rows = "\n".join(f"{700 + row} | {'a long name of a place ' * 6} | Fanyang {row}" for row in range(80))
    text = f"{'Before the table. ' * 40}\n\n{rows}"
    site.passages[1] = passage(1, text, blocks=[{"start": 0, "end": text.index("700 |"), "kind": "text"},
                                                {"start": text.index("700 |"), "end": len(text), "kind": "table"}])  # fmt: skip
    at = text.index("Fanyang 77")
    page = asked(width=width, told=Script(SENTENCES, quote=(at, at + 10)).events())
    page.locator(".sentence").first.click()
    page.locator(".beside mark").wait_for()
    place, frame = page.locator(".beside mark").bounding_box(), page.locator(".beside-body").bounding_box()
    assert frame["y"] <= place["y"] <= frame["y"] + frame["height"] - place["height"]
    assert frame["x"] <= place["x"] <= frame["x"] + frame["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_evidence_is_not_marked_in_the_colour_of_a_contradiction(asked, scheme):
    page = asked(scheme=scheme, told=Script(["He rose.", "a", "b", "c"]).events())
    page.locator(".beside mark").wait_for()
    red = page.locator(".verdict.contradicted").first.evaluate("one => getComputedStyle(one).color")
    drawn = page.locator(".beside mark").evaluate(
        "one => { const s = getComputedStyle(one); return s.boxShadow + s.backgroundColor + s.color }"
    )
    assert red not in drawn


CAUSES = {
    "no_model": ("No language model is set up, ", "未配置语言模型，"),
    "unreachable": ("The language model could not be reached, ", "语言模型没有响应，"),
    "refused_key": ("The language model refused its API key, ", "语言模型不接受所设的 API 密钥，"),
    "no_credit": ("The account of the language model has no credit left, ", "语言模型的账户余额不足，"),
    "budget": ("The question’s budget was spent before a language model could answer, ", "本题的预算已经用完，"),
}


@pytest.mark.parametrize("reason", CAUSES)
def test_quotations_say_why_no_model_answered_in_one_sentence(site, asked, reason):
    warning = "No model answered: connection refused."
    script = Script(SENTENCES).quotations("quoted", warnings=[warning], reason=reason, time_to_first_token_ms=640)
    site.script = [("generation_complete", script)]
    english, chinese = CAUSES[reason]
    page = asked(locale="zh-CN")
    assert page.locator(".notice").inner_text().split("\n")[-1].startswith(f"{chinese}故只引原文")
    page = asked()
    assert page.locator(".quotation").count() == 1
    assert page.locator(".notice").inner_text().split("\n")[-1] == (
        f"{english}so you see the passages themselves. Judge for yourself whether they answer the question."
    )
    assert page.locator(".failure").count() == 0
    page.locator("summary >> text=Why").click()
    page.wait_for_selector(".why dl")  # made when it is unfolded
    assert warning in page.locator(".why").inner_text()
    assert "Time to first word" not in page.locator(".why").inner_text()  # nobody wrote one


@pytest.mark.parametrize(("locale", "language", "told"), [
    ("en-US", "zh", "最接近的原文\n\n未配置语言模型，故只引原文，不另作陈述；是否回答了问题，请自行判断。"),
    ("zh-CN", "en", "Closest passages, word for word\n\nNo language model is set up, so you see the passages themselves. "
     "Judge for yourself whether they answer the question."),
    ("zh-CN", "de", "最接近的原文\n\n未配置语言模型，故只引原文，不另作陈述；是否回答了问题，请自行判断。"),
])  # fmt: skip
def test_what_is_said_of_an_answer_is_in_its_language(asked, locale, language, told):
    script = Script(SENTENCES).quotations("quoted", reason="no_model", language=language)
    page = asked(locale=locale, told=[("generation_complete", script)])
    assert page.locator(".notice").inner_text() == told
    opening = {"zh": "以下是该章各标题下或各段的第一句，一字未改。没有设置语言模型。"}.get(
        language, "These are first sentences. No model."
    )
    script["answer"] = f"{opening}\n\n> An Lushan"
    ask(page, "What is chapter 2 about?")
    first = {"zh": "以下是该章各标题下或各段的第一句，一字未改。", "en": "These are first sentences."}.get(
        language, told.split("\n")[0]
    )
    assert page.locator(".turn:last-of-type .notice strong").inner_text() == first


def test_what_was_read_stays_where_the_model_fails(asked):
    told = Script(SENTENCES).events()
    page = asked(done=False, width=390, told=[*told[:3], ("error", ApiError("upstream_unavailable").body())])
    page.wait_for_selector(".failure >> text=The language model could not be reached.")
    assert page.locator(".readings .hit").count() == 1


def test_passages_that_are_only_the_closest_are_said_to_be_unsure(site, asked):
    absent = [{"term": "Rokhshan", "near": ["Roxana", "Rokshan"]}, {"term": "Nurhaci", "near": []}]
    site.script = [("generation_complete", Script(SENTENCES).quotations("closest", absent=absent, waiting=1204))]
    page = asked("Who was Rokhshan?", width=390)
    told = page.locator(".notice").inner_text()
    assert told.startswith("No passage clearly answers this; these come closest.")
    assert "Rokhshan does not occur in your library. Similar names that do: Roxana, Rokshan" in told
    assert "Nurhaci does not occur in your library." in told
    assert "Your library is still being indexed: 1,204 passages cannot be searched by meaning yet." in told
    page.locator(".notice button >> text=Rokshan").click()
    assert page.locator("#question").input_value() == "Who was Rokshan?"
    page.locator(".quotation").click()
    page.locator(".beside mark").wait_for()
    page.evaluate("document.querySelector('.beside .close').click()")
    page.locator("summary >> text=Export").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Markdown", exact=True).click()
    assert "> An Lushan" in waiting.value.path().read_text(encoding="utf-8")


def test_what_was_not_found_says_so_and_how_far_the_library_is(asked):
    answer = Script(SENTENCES).quotations("not_found", absent=[{"term": "朱元璋", "near": ["朱全忠"]}], waiting=3)
    page = asked("朱元璋是谁？", locale="zh-CN", told=[("generation_complete", answer)])
    told = page.locator(".notice").inner_text()
    assert "你的书库中没有朱元璋。相近的有：朱全忠" in told.replace("“", "").replace("”", "")
    assert "书库还在建立索引：尚有3段不能按意义检索。" in told


def test_an_empty_library_is_not_taken_for_one_that_does_not_say(site, asked):
    site.sources = []
    page = asked(told=[("generation_complete", Script(SENTENCES).quotations("not_found"))])
    page.wait_for_selector(".notice >> text=Your library is empty")
    assert page.locator(".notice a").get_attribute("href") == "#/library"


def test_a_mistyped_source_is_named(site, asked):
    message = "There is no source `tang.ebup` in this library. Did you mean `tang.epub`? `shiguan sources` lists them."
    site.refusal = ApiError("refused", message=message)
    page = asked(done=False)
    page.wait_for_selector(".failure >> text=Did you mean `tang.epub`?")
    page = asked(done=False, locale="zh-CN")
    page.wait_for_selector(".failure >> text=书库中没有“tang.ebup”。是否指“tang.epub”？")


def test_what_is_printed_has_its_sources_with_their_words(site, opened):
    page = opened(site.url + "/")
    site.script = Script(SENTENCES).events()
    ask(page)
    assert page.locator(".sources li").inner_text() == "The Tang › 1 War"
    page.emulate_media(media="print")
    assert "An Lushan" in page.locator(".sources li").inner_text().split("\n")[-1]
    for hidden in (".composer", ".beside", ".rail", ".judge", ".more"):
        assert not page.locator(hidden).first.is_visible(), hidden
    page.emulate_media(media="screen")
    site.script = [("generation_complete", Script(SENTENCES).quotations("quoted"))]
    ask(page, "Again?")
    assert not page.locator(".turn:last-of-type .sources").is_visible()
    page.emulate_media(media="print")
    assert page.locator(".turn:last-of-type .sources").is_visible()


def test_text_runs_as_its_language_does_and_the_frame_as_that_of_the_page(site, asked):
    site.passages = [passage(place, HEBREW, title="סיפורי הים", section=["פרק שלישי"]) for place in range(3)]
    site.sources = [source("ships.epub", "סיפורי הים")]
    page = asked("מדוע ציווה הקברניט?", told=Script([HEBREW.split(". ", maxsplit=1)[0] + "."], quote=(0, 9)).events())
    page.locator(".beside mark").wait_for()

    def runs(selector):
        return page.locator(selector).first.evaluate("one => getComputedStyle(one).direction")

    for selector in (".query", ".answer p", ".beside .passage p", ".beside .where", ".beside cite"):
        assert runs(selector) == "rtl", selector
    for selector in ("html", ".tally", ".beside h2", ".judge"):
        assert runs(selector) == "ltr", selector
    page.fill("#question", "ומה אחר כך?")
    assert runs("#question") == "rtl"
    site.script = [("generation_complete", Script(SENTENCES).quotations("quoted"))]
    site.script[0][1]["citations"][0]["quote"] = HEBREW
    ask(page, "ומה אחר כך?")
    assert runs(".turn:last-of-type .quotations") == "rtl"
    page.goto(f"{site.url}/#/book?source=tang.epub")
    page.wait_for_selector(".page .passage")
    for selector in (".page h1", ".page h2", ".page .passage p", ".contents .chapters a"):
        assert runs(selector) == "rtl", selector
    page.goto(f"{site.url}/#/library")
    page.wait_for_selector(".source")
    assert runs(".source .name a") == "rtl"
    assert runs(".source") == "ltr"


def test_numbers_stand_in_no_boxes_and_in_one_row(asked):
    page = asked(width=390)
    page.evaluate("document.querySelectorAll('.more details').forEach((one) => { one.open = true })")
    page.fill(".lost textarea", "words")
    page.locator(".lost button").click()
    page.wait_for_selector(".ranks .missed")
    figures = page.locator(".why .figure")
    assert figures.evaluate_all("all => all.every((one) => getComputedStyle(one).borderTopWidth === '0px')")
    row = page.locator(".times tr").first.evaluate(
        "one => [one.offsetHeight, parseFloat(getComputedStyle(one).fontSize)]"
    )
    assert row[0] < 3 * row[1]


ALLOWED = set("English Markdown Word HTML BibTeX RIS JSON EPUB DOCX JSONL PDF CSL tang epub Tang Lushan War".split())


@pytest.mark.parametrize("status", ["answered", "quoted", "closest", "not_found"])
def test_the_chinese_page_is_chinese_throughout(site, asked, status):
    site.passages = [
        passage(place, "安禄山反于范阳。", title="旧唐书", section=["卷二百上"], author="刘昫") for place in range(3)
    ]
    site.sources = [source("tang.epub", "旧唐书"), source("tang.epub", "新唐书", complete=False, vectors=3)]
    site.conversations = [{"id": "c1", "title": "安禄山", "turns": 2}]
    change = {
        "claim": "又反。", "kind": "replaced", "was": [7], "numbers": [1], "reason": "[7]: there is no such source",
    }  # fmt: skip
    script = Script(
        ["安禄山反。", "陷东京。", "入关。", "至罗马。"],
        changes=[change],
        warnings=["1 of the answer's 4 sentences are not supported by the sources."],
        query="安禄山何时反？",
    )
    reasons = [
        "a passage says so word for word", "a passage says so in nearly the same words", "no passage has 755",
        "another number: 3",
    ]  # fmt: skip
    told = script.events()
    claims = [data for name, data in told if name == "claim"] + told[-1][1]["metadata"]["claims"]
    for place, claim in enumerate(claims):
        claim["reason"] = reasons[place % 4]
    citations = [one for claim in claims for one in claim.get("citations", [])] + told[-1][1]["citations"]
    if status != "answered":
        answer = script.quotations(status, warnings=["Searched by words alone, not by meaning. X."], waiting=4)
        answer["answer"] = "资料没有回答这个问题。"
        citations, told = answer["citations"], [("generation_complete", answer)]
    for citation in citations:
        citation |= {"title": "旧唐书", "section": ["卷二百上"], "quote": "安禄山反"}
    told[-1][1]["metadata"] |= {"confidence": 0.3675, "model": "", "time_to_first_token_ms": 640}
    page = asked("安禄山何时反？", locale="zh-CN", told=told)
    page.evaluate("document.querySelectorAll('.more details, .judge details').forEach((one) => { one.open = true })")
    page.fill(".lost textarea", "范阳")
    page.locator(".lost button").click()
    page.wait_for_selector(".ranks .missed")
    page.locator(".judge .link").click()
    page.wait_for_selector(".judge [role=status] p")
    seen = [page.locator("body").inner_text()]
    for view, ready in (("library", ".source"), ("past", ".past li"), ("book?source=tang.epub", ".page .passage")):
        page.goto(f"{site.url}/#/{view}")
        page.wait_for_selector(ready)
        seen.append(page.locator("body").inner_text())
    foreign = {word for text in seen for word in re.findall(r"[A-Za-z]{3,}", text)} - ALLOWED
    hexadecimal = {word for word in foreign if re.fullmatch(r"[a-f]+", word)}
    assert foreign - hexadecimal == set()
