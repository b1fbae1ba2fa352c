"""Markdown of models: a safe subset as elements, with sentences whole, while it is written and after."""

import pytest
from haystack import Document
from haystack.dataclasses import ChatMessage
from tests.browser.test_page_hostile import HOSTILE, quiet
from tests.doubles.page_site import WAIT, Script

from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.claims.answer_check import AnswerCheck

pytestmark = pytest.mark.browser
PASSAGE = (
    "Zhang Xun held the town. He beat drums through the night. No relief came. Xu Yuan was killed on the way. "
    "About four hundred defenders were left. The army came three days late. Yin Ziqi lost an eye."
)
MARKDOWN = """## Zhang Xun

**Zhang Xun** held the town [1]. *Enemy:* Yin Ziqi lost an eye [1].

1. He beat drums through the night [1].
   - *No relief came.* [1]
2. **About four hundred defenders were left. The emperor flew to Rome.**

| Who | Fate |
|---|---|
| Xu Yuan | Xu Yuan was killed on the way [1] |

> No relief came [1].

```
He held the town.
```

The `army` came three days late [1]. 2*3 is \\*six\\*, snake_case_name."""


def told(text):
    """The stream of an answer as the server tells it."""
    documents = [Document(id="p1", content=PASSAGE, meta={"number": 1, "source": "tang.epub", "title": "The Tang"})]
    (answer,) = CitationExtractor().run([ChatMessage.from_assistant(text)], documents)["answers"]
    whole = Script([]).answer()
    whole |= {"answer": answer.data, "citations": answer.meta["citations"]}
    whole["metadata"] |= {"claims": answer.meta["claims"], "changes": []}
    stream, events = AnswerCheck(documents), Script([]).events()[:3]
    for piece in text.split("\n"):
        if stream.add(piece + "\n"):
            found = stream.finished()
            events += [event for pair in zip(stream.pieces, found, strict=True) for event in tokens(*pair)]
    stream.close()
    found = stream.finished()
    events += [event for pair in zip(stream.pieces, found, strict=True) for event in tokens(*pair)]
    return [*events, ("generation_complete", whole)]


def tokens(piece, claim):
    return [("token", {"text": piece}), ("claim", claim)]


def shape(page):
    """The elements of the answer, without what a sentence is wrapped in, and the text of each leaf."""
    return page.locator(".answer").evaluate(
        """answer => { const walk = (one) => one.nodeType === 3 ? one.data : one.matches('button') ? '{' + one.innerText.trim() + '}'
        : one.matches('span, div, sup, tbody, thead') ? [...one.childNodes].map(walk).join('')
        : `<${one.localName}>${[...one.childNodes].map(walk).join('')}</${one.localName}>`;
        return walk(answer).replace(/<a>\\d<.a>/g, '').replace(/\\s+/g, ' ').replace(/ ?\\n ?/g, '') }"""
    )


def test_eight_kinds_of_markdown_are_elements_around_whole_sentences(asked):
    page = asked(done=False, told=told(MARKDOWN))
    page.wait_for_selector(".more")
    assert shape(page) == (
        "<h3>Zhang Xun</h3>"
        "<p><strong>Zhang Xun</strong> held the town. <em>Enemy:</em> Yin Ziqi lost an eye.{partly supported}</p>"
        "<ol><li>He beat drums through the night.<ul><li><em>No relief came.</em></li></ul></li>"
        "<li><strong>About four hundred defenders were left.</strong> <strong>The emperor flew to Rome.</strong>{not supported}</li></ol>"
        "<table><tr><th>Who</th><th>Fate</th></tr><tr><td>Xu Yuan</td><td>Xu Yuan was killed on the way{partly supported}</td></tr></table>"
        "<blockquote><p>No relief came.</p></blockquote>"
        "<pre>He held the town.{partly supported}</pre>"
        "<p>The <code>army</code> came three days late. 2*3 is *six*, snake_case_name.{not supported}</p>"
    )
    # No sentence, and no verdict, inside emphasis.
    assert page.locator(":is(em, strong, code) :is(.sentence, button, sup)").count() == 0


def test_it_has_the_same_form_while_it_is_written(site, asked):
    *events, complete = told(MARKDOWN)
    page = asked(done=False, told=[*events, (WAIT, None), complete])
    page.locator(".sentence >> text=2*3").last.wait_for()
    written = shape(page)
    site.go.set()
    page.wait_for_selector(".more")
    # The words that are still to come have a paragraph of their own behind a table.
    assert written.replace(" <", "<").replace("<p></p>", "") == shape(page).replace(" <", "<")


def test_nothing_hostile_runs_in_any_of_them(asked):
    kinds = ("# {}", "- {}", "1. {}", "> {}", "| {} | x |\n|---|---|\n| {} | y |", "```\n{}\n```", "*{}* **{}** `{}`")
    text = "\n\n".join(kinds[number % len(kinds)].replace("{}", one) for number, one in enumerate(HOSTILE[::4]))
    answer = Script([]).answer() | {"answer": text + "\n\n" + "> " * 2000 + "- " * 2000 + "*" * 2000 + "|" * 2000}
    page = asked(done=False, width=390, told=[("generation_complete", answer)])
    page.wait_for_selector(".more")
    quiet(page)
