"""Names, passages and answers that would like to be markup: nothing of them runs, nothing breaks the page."""

import itertools

import pytest
from tests.doubles.page_site import Script, passage, source

from shiguan.serving.error_replies import ApiError

pytestmark = pytest.mark.browser

HIT = "window.hit=(window.hit||0)+1"
MARKUP = [
    "<script>{0}</script>", "<img src=x onerror='{0}'>", '"><svg onload="{0}">', "<iframe srcdoc='<script>parent.hit=1</script>'>",
    "javascript:{0}", "<a href='javascript:{0}'>x</a>", "<style>*{{display:none}}</style>", "</title><script>{0}</script>",
    "<math><mtext><script>{0}</script>", "' autofocus onfocus='{0}", "{{{{constructor.constructor('{0}')()}}}}", "${{{0}}}",
    "<details open ontoggle='{0}'>", "<base href='https://example.org/'>", "<meta http-equiv=refresh content='0;url=javascript:{0}'>",
    "data:text/html,<script>{0}</script>", "<template><script>{0}</script></template>", "<form action='javascript:{0}'><button>", "<!--<script>{0}</script>-->", "]]><script>{0}</script>",
]  # fmt: skip
TWISTS = [
    lambda text: text, lambda text: text.upper(), lambda text: "\u202e" + text,
    lambda text: text.replace("<", "\u003c\u200b"), lambda text: text + "W" * 400,
    lambda text: "e" + "\u0301" * 60 + text, lambda text: text.replace(" ", "\t"),
    lambda text: "**" + text + "** [1][2] [999999]", lambda text: "__proto__ constructor " + text,
    lambda text: "%3Cscript%3E " + text, lambda text: "\ufeff\u2066" + text + "\u2069",
    lambda text: "&lt;b&gt;" + text, lambda text: "- " + text, lambda text: "# " + text,
    lambda text: text + "\U000e0001\U0001f600" * 20,
]  # fmt: skip
HOSTILE = [
    f"{twist(text.format(HIT))} {number}" for number, (text, twist) in enumerate(itertools.product(MARKUP, TWISTS))
]


def quiet(page):
    """Nothing ran, nothing was made of a text, and the page is as wide as its window."""
    assert page.evaluate("window.hit") is None
    assert page.locator("main :is(script, iframe, img, object, embed, style, base, meta, math, template)").count() == 0
    assert not page.evaluate(
        "[...document.querySelectorAll('*')].some((one) => [...one.attributes].some((it) => it.name.startsWith('on')))"
    )
    assert page.evaluate(
        "[...document.querySelectorAll('[href]')].every((one) => /^(#|\\/|http)/.test(one.getAttribute('href')))"
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("header.rail nav a").count() == 4


@pytest.mark.parametrize("width", [390, 1280])
def test_none_of_them_runs_as_the_name_of_a_book(site, opened, width):
    site.sources = [
        source(f"{number} {text}.epub", text, language=text[:40], complete=number % 2)
        for number, text in enumerate(HOSTILE)
    ]
    site.conversations = [{"id": f"c{number}", "title": text, "turns": 1} for number, text in enumerate(HOSTILE)]
    page = opened(site.url + "/#/library", width=width)
    page.locator(".shelf > button").click()
    assert page.locator(".source").count() == len(set(HOSTILE)) == 300
    assert page.locator(".source .name a").nth(1).evaluate("one => one.textContent") == HOSTILE[1]
    quiet(page)
    page.goto(site.url + "/#/past")
    page.wait_for_selector(".past li")
    quiet(page)


@pytest.mark.parametrize("width", [390, 1280])
def test_none_of_them_runs_in_an_answer_or_a_passage(site, asked, width):
    site.passages = [
        passage(number, f"{text}\n\n{text} | {text}", title=text, section=[text, text[:90]], author=text, language=text[:30],
                blocks=[{"start": 0, "end": len(text), "kind": text[:20]}, {"start": len(text) + 2, "end": 2 * len(text) + 2, "kind": "table"}])
        for number, text in enumerate(HOSTILE)
    ]  # fmt: skip
    for start in range(0, 300, 100):
        some = HOSTILE[start : start + 100]
        script = Script(some, verdicts=("supported", "<b>", "quoted\" onclick='x"), quote=(0, 12), warnings=some[:20])
        page = asked(some[0][:1900], width=width, told=script.events())
        page.locator(".why summary").click()
        page.locator(".sentence").nth(3).evaluate("one => one.click()")
        page.wait_for_selector(".beside .passage")
        quiet(page)
    for number in (0, 4, 7):
        page.goto(f"{site.url}/#/book?source=tang.epub&at={number}")
        page.wait_for_selector(".page .passage")
        quiet(page)


def test_none_of_them_runs_in_a_kept_answer_its_reasons_or_what_the_stream_tells(site, opened, asked):
    answer = Script(HOSTILE[:40], warnings=HOSTILE[40:60]).answer()
    answer |= {"query": HOSTILE[60], "mode": HOSTILE[61]}
    answer["metadata"] |= {
        "model": HOSTILE[62], "explain": {"searched": HOSTILE[63], "steps": HOSTILE[64:70]}, "queries": HOSTILE[70:80],
        "sub_questions": [{"number": 1, "question": HOSTILE[80], "needs": [], "status": HOSTILE[81], "answer": HOSTILE[82]}],
        "timings_ms": {HOSTILE[83]: 1.0, "total": 2.0}, "changes": [{"from": HOSTILE[84], "to": HOSTILE[85], "reason": HOSTILE[86]}],
    }  # fmt: skip
    for claim, text in zip(answer["metadata"]["claims"], HOSTILE[90:], strict=False):
        claim["reason"] = text
    site.receipts["cd" * 32] = answer
    page = opened(f"{site.url}/#/answer/{'cd' * 32}")
    page.wait_for_selector(".turn .more")
    for summary in page.locator(".turn summary").all():
        summary.evaluate("one => one.click()")
    quiet(page)
    told = [
        ("query_rewritten", {"query": HOSTILE[100], "queries": HOSTILE[100:110], "method": HOSTILE[110]}),
        ("generation_start", {"attempt": 1}),
        ("tool_call", {"tool": HOSTILE[113], "arguments": {HOSTILE[114]: HOSTILE[115]}}),
        ("tool_result", {"tool": HOSTILE[113], "arguments": {}, "outcome": HOSTILE[116], "numbers": [1], "reason": HOSTILE[117]}),
        *(("draft_rejected", {"attempt": 1, "verdicts": {HOSTILE[118]: 1}, "feedback": text, "queries": [text]}) for text in HOSTILE[119:140]),
        ("generation_complete", answer),
    ]  # fmt: skip
    page = asked(told=told)
    page.locator(".why summary").click()
    quiet(page)


def test_none_of_them_runs_in_an_error(site, asked):
    for text in HOSTILE[::30]:
        site.script = [("error", ApiError("internal", message=text, next_step=text, stage=text[:40]).body())]
        page = asked(done=False)
        page.wait_for_selector("[role=alert], .failure, .failed")
        quiet(page)
