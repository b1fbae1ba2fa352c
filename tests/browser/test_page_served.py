"""The page with the real server, the sample book and a model by rules; its pictures for the README."""

import os
import re
from pathlib import Path

import pytest
from examples.build_book import build_book
from tests.doubles.page_site import ask
from tests.doubles.server_process import ServerProcess
from tests.doubles.stand_in_llm import StandInLlm

pytestmark = pytest.mark.browser
PICTURES = os.environ.get("SHIGUAN_PICTURES")
MOST_BYTES = 150_000
QUESTION = "Who held Suiyang in 757, and what became of them?"
ANSWER = (
    "The town that stood in the way was Suiyang, in the east of modern Henan [1]. "
    "From the first month of 757 it was held by the prefect Xu Yuan and by Zhang Xun, a county magistrate [1]. "
    "Yin Ziqi came against them with 130,000 men [1]. "
    "Zhang Xun was executed with thirty-six of his officers; Xu Yuan was killed later, on the way north [1]. "
    "The town fell in November 759 [1]. The emperor wept for them in public [1]."
)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return build_book(tmp_path_factory.mktemp("book") / "an-lushan-rebellion.epub")


@pytest.fixture(scope="module")
def llm():
    with StandInLlm(default=ANSWER) as llm:
        yield llm


def with_book(server, book):
    job = server.upload("an-lushan-rebellion.epub", book.read_bytes()).json()
    assert server.wait_for_job(job["id"], seconds=120)["state"] == "done"
    return server


@pytest.fixture(scope="module")
def server(tmp_path_factory, book, llm):
    model = {"OPENAI_BASE_URL": llm.url, "OPENAI_API_KEY": "sk", "OPENAI_MODEL": "stand-in"}
    with ServerProcess(tmp_path_factory.mktemp("answering"), **model) as server:
        yield with_book(server, book)


@pytest.fixture(scope="module")
def quoting(tmp_path_factory, book):
    with ServerProcess(tmp_path_factory.mktemp("quoting")) as server:
        yield with_book(server, book)


def picture(page, name, tmp_path):
    """Take a picture; with SHIGUAN_PICTURES it goes into that folder, for the README."""
    page.evaluate("document.fonts.ready")
    path = (Path(PICTURES) if PICTURES else tmp_path) / f"{name}.png"
    page.screenshot(path=path, animations="disabled", caret="hide")
    if PICTURES:
        from PIL import Image

        # 64 shades are enough for ink on paper, and a third of the bytes.
        Image.open(path).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
        assert path.stat().st_size < MOST_BYTES


def test_an_answer_of_a_model_stands_beside_its_passages_in_the_book(server, llm, opened, tmp_path):
    page = opened(server.url + "/", width=1180, height=700)
    ask(page, QUESTION)
    words = page.locator("button.verdict").all_inner_texts()
    assert words == ["partly supported", "contradicted", "not supported"]
    assert page.locator(".sentence").count() == 6
    page.locator("button.verdict.contradicted").click()
    page.wait_for_selector(".beside .against mark strong >> text=757")
    page.locator(".sentence sup.mark a").first.click()
    page.wait_for_selector(".beside mark >> text=Suiyang")
    marked = page.locator(".beside mark")
    marked.first.wait_for()
    quote = "".join(marked.all_inner_texts())
    assert "Suiyang" in quote
    picture(page, "ask", tmp_path)
    page.locator(".beside a.button").click()
    page.wait_for_selector(".page mark")
    assert "".join(page.locator(".page mark").all_inner_texts()) == quote
    assert "3.2 Suiyang" in page.locator(".contents a[aria-current]").inner_text()
    picture(page, "book", tmp_path)
    asked = llm.calls
    page.locator(".book .bar a").click()
    page.wait_for_selector(".turn .sentence")
    assert llm.calls == asked
    page.locator(".turn .why summary").click()
    page.locator(".lost textarea").fill("about four hundred defenders were left")
    page.locator(".lost button").click()
    page.locator(".ranks .met").first.wait_for(timeout=30_000)
    receipt = page.locator(".why dl a").get_attribute("href")
    page.goto(server.url + "/" + receipt)
    page.wait_for_selector(".turn .sentence")
    assert page.locator("button.verdict").all_inner_texts() == words


def test_a_reload_finds_the_conversation_again(server, opened):
    page = opened(server.url + "/")
    ask(page, QUESTION)
    ask(page, "And Xu Yuan?")
    page.reload()
    page.wait_for_selector(".turn:nth-of-type(2) .sentence")
    assert page.locator(".query").all_inner_texts() == [QUESTION, "And Xu Yuan?"]
    page.goto(server.url + "/#/past")
    page.locator(".past a").first.click()
    page.wait_for_selector(".turn .sentence")


def test_without_a_model_the_chinese_page_quotes_on_a_phone(quoting, opened, tmp_path):
    page = opened(quoting.url + "/", width=390, height=844, locale="zh-CN", scheme="dark")
    ask(page, "谁诬告封常清、高仙芝克扣军粮？")
    page.locator("button", has_text="整段原文").first.click()
    page.wait_for_selector(".beside mark")
    picture(page, "phone", tmp_path)
    quote = page.locator(".quotation .closest").first.inner_text()
    mark = "".join(page.locator(".beside mark").all_inner_texts())
    assert re.sub(r"\s", "", quote) == re.sub(r"\s", "", mark)


def test_a_book_is_put_in_read_searched_and_taken_out(quoting, opened, tmp_path):
    page = opened(quoting.url + "/#/library", width=1180, height=700)
    salt = ("The salt monopoly was set up by Diwu Qi in 758. " * 3).encode()
    page.set_input_files("#files", {"name": "salt.txt", "mimeType": "text/plain", "buffer": salt})
    page.wait_for_selector(".jobs >> text=1 passages, 1 new", timeout=60_000)
    assert page.locator(".count").inner_text() == "Sources: 2"
    picture(page, "library", tmp_path)
    page.fill("#search", "salt monopoly")
    page.press("#search", "Enter")
    page.wait_for_selector(".hit")
    page.locator(".source", has_text="salt.txt").get_by_role("button", name="Ask only this").click()
    page.wait_for_selector(".limit .chip")
    ask(page, "Who set up the salt monopoly?")
    begun = {one.split(" ")[0] for one in page.locator("figcaption span").all_inner_texts()}
    assert begun <= {"salt.txt", "salt", "", "\u201c", "quoted"}
    page.goto(quoting.url + "/#/library")
    page.locator(".source", has_text="salt.txt").get_by_role("button", name="Delete").click()
    with page.expect_response(lambda reply: reply.request.method == "DELETE"):
        page.evaluate("dispatchEvent(new Event('pagehide'))")
    page.wait_for_selector(".count >> text=Sources: 1")


def test_the_interface_is_documented_on_a_page_of_the_package(server, opened):
    page = opened(server.url + "/docs", wait=False)
    page.wait_for_selector("h2 >> text=library")
    page.locator("summary", has_text="POST /api/v1/rag/query").first.click()
    assert "When did An Lushan rise" in page.locator("details[open] pre").first.inner_text()
