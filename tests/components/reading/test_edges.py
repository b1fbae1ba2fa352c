"""Where a piece may be cut out of a text."""

import re
from html import unescape
from pathlib import Path

import pytest

from shiguan.reading.edges import NUMERALS, barred_spans, hidden_denial, number_around, splits_number
from shiguan.text.quantities import quantities

BOOK = Path(__file__).parents[3] / "examples" / "book" / "EPUB" / "text"
SPLIT = [
    "十五|万", "12|,500", "12,|500", "3|.5", "3.|5", "1861|–1865", "三百|余人", "七十|里", "第|三章", "百分之|三", "三|分之一",
    "-|5 度", "three| and a half", "twenty|-five men", "two |hundred men", "5| per cent", "3|%", "15 |million", "1900|多个",
    "二千五|百", "三年|半", "一|百", "一九三八|年", "十五|[脚注：一说五万]万", "十五[脚注：一说五万]|万", "12| [Note: or 15],500",
]  # fmt: skip
WHOLE = [
    "he lost 12|, and then", "in 1938|. 24 men", "三千|人", "统一|年代", "十|、二十", "it had 3| men", "3%| of", "他有三|个",
    "十五万|", "|十五万", "in 755| [Note: or 756] he", "又|十五日",
]  # fmt: skip
DENIED = [
    "No |soldiers came", "did not |come", "didn’t |come", "not “|recognized”", "hardly any |came", "almost |all", "only |one",
    "not yet |done", "few |men", "fewer than |500 men", "未|攻下", "不能|攻下", "没有|来", "几乎|全部", "仅|三人", "并非|如此",
]  # fmt: skip
SAID = [
    "辛未，|郭子仪", "辛未|郭子仪", "三只|羊", "he knew |it", "a few |men", "No, |he came", "no. |5", "the north |wind", "|No one",
]  # fmt: skip

# What the lead or heading before it bars stands between two signs.
BARRED = [
    "Do not:\n|- Mix bleach.\n\n- Leave the gas on.|\n\nThe museum is open.", "**Don'ts:**\n|1. Mix bleach.|\nDo:\n2. Rest.",
    "## Forbidden\n|- Dogs|\n\n## Allowed\n- Cats", "Common myths:| Bats are blind. Goldfish forget.| Fact: Bats see.",
    "The following are not allowed:| dogs. Fires.|", "True or false?| Karl fled.|", "❌| Mix bleach.|\n✅ Rest.",
    "馆内不得：\n|- 吸烟\n- 带犬|", "误区：|蝙蝠是瞎的。金鱼健忘。|事实：蝙蝠能看见。", "判断：|蝙蝠是瞎的。（错）|",
    "Otto never came: Karl had fled.", "The book was banned: it mocked the king.", "Why he did not flee:\n- He was ill.",
    "If you were never ill, you need:\n- a letter",
    "馆内严禁吸烟。博物馆每天开放。",
]  # fmt: skip


@pytest.mark.parametrize("marked", BARRED)
def test_what_a_lead_bars_ends_with_its_list_or_at_another_label(marked):
    text = marked.replace("|", "")
    begin, *end = (part.start() - at for at, part in enumerate(re.finditer(r"\|", marked))) if "|" in marked else (0,)
    assert barred_spans(text) == ([(begin, *end)] if end else [])


def cut(marked: str) -> tuple[str, int]:
    return marked.replace("|", ""), marked.index("|")


@pytest.mark.parametrize("marked", [*SPLIT, *WHOLE])
def test_only_a_cut_inside_a_number_splits_it(marked):
    assert splits_number(*cut(marked)) is (marked in SPLIT)


@pytest.mark.parametrize("marked", [*DENIED, *SAID])
def test_only_what_begins_behind_a_denial_hides_it(marked):
    assert bool(hidden_denial(*cut(marked))) is (marked in DENIED)


def test_the_whole_number_is_named():
    text = "叛军至城下者凡十五万，粮 12,500 石"
    assert [text[slice(*number_around(text, at))] for at in (9, 15)] == ["十五万", "12,500"]


def sample_texts() -> list[str]:
    pages = [re.sub(r"<[^>]+>", "", path.read_text(encoding="utf-8")) for path in sorted(BOOK.glob("ch*.xhtml"))]
    return [unescape(line).strip() for page in pages for line in re.split(r"\n\s*\n", page) if line.strip()]


def test_no_number_of_the_sample_book_can_be_cut():
    seen = 0
    for text in sample_texts():
        for number in quantities(text):
            stop = number.start + len(text[number.start : number.end].rstrip(" ."))
            for at in range(number.start + 1, stop):
                if not any(sign in NUMERALS or (sign.isalnum() and sign.isascii()) for sign in text[number.start : at]):
                    continue  # the name of an era
                # Inside a word (`thir|teen`) is no place to cut either, but another rule's.
                if not (text[at - 1].isascii() and text[at - 1].isalpha() and text[at].isalpha()):
                    seen += 1
                    assert splits_number(text, at), (text[number.start : number.end], text[at - 20 : at + 20])
    assert seen > 500


def test_nothing_of_the_sample_book_can_be_taken_from_behind_a_denial():
    denials = re.compile(
        r"\b(?:not|never|no|nobody|hardly|almost|only|without)\s(?=\w)|(?<![乙丁己辛癸])[不未无没非](?=[\u4e00-\u9fff])"
    )
    found = [(text, match.end()) for text in sample_texts() for match in denials.finditer(text)]
    assert len(found) > 100
    assert all(hidden_denial(text, at) for text, at in found)
