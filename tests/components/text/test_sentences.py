import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiguan.text.sentences import sentence_spans


def sentences(text):
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    "expected",
    [
        ["安祿山反。", "玄宗幸蜀。"], ["你来吗？！", "我来！"], ["诸镇跋扈；", "朝廷姑息。"],
        ["“你来吗？”", "他问道。"], ["（营州柳城人也。）", "本姓康。"], ["他说：“好……”", "然后走了。"],
        ["我不知道……", "也许吧。"], ["「来たか。」と言った。", "そして去った。"], ["他来了.", "我走了."],
        ["事见《旧唐书》[1]。", "又见《新唐书》。[2]", "后面【3】。", "再后。【4】"],
        ["安祿山者營州柳城雜種胡人也母為巫者"], ["長慶初，幽、鎮復亂……，河朔再失。"],
        ['他說："好。"', '又說："不好。"', "完。"],
    ],
    ids=lambda expected: expected[0],
)  # fmt: skip
def test_chinese_sentences_end_at_their_own_marks_without_spaces(expected):
    assert sentences("".join(expected)) == expected


@pytest.mark.parametrize(
    "caption",
    [
        "Table 1. The three commands of An Lushan.",
        "FIGURE II. A canal lock.",
        "Map 3.2. The Yangzi in 780.",
        "Chapter 4. The Counterpane.",
    ],
)
def test_the_number_of_a_caption_belongs_to_it(caption):
    assert sentences(f"{caption} It is not to scale.") == [caption, "It is not to scale."]
    assert sentences(f"We had to go to {caption}")[0].count(".") == caption.split(" ")[1].count(".")


@pytest.mark.parametrize(
    "expected",
    [
        ["Mr. Li met Dr. Wang.", "They talked."],
        ["He read texts (e.g. annals, i.e. lists) vs. tales.", "Then he slept."],
        ["J. K. Rowling and W. E. B. Du Bois never met.", "A pity."],
        ["Pi is about 3.14.", "It is not 3."], ["See No. 5, vol. II and p. 12.", "No.", "I will not."],
        ["St. Petersburg fell.", "He lived in Main St.", "The house stands."],
        ["Wait... what?", "Well...", "Then he left."],
        ["“Stop!” he cried.", '"Is it you?!"', "Nobody answered."],
        ["(He left.)", "Nobody saw [him].", "‘True.’", "Good."],
        ["*He left.*", "**Nobody saw him.**", "_True._", "Good."],
        ["The U.S. Army came at 5 p.m. on Oct. 5.", "It rained."],
        ["He works at Apple Inc.", "The firm is large."], ["Vitamin C.", "It helps."], ["I like art.", "I always did."],
        ["1. Introduction.", "IV. The whale."],
        ["Claim one [1].", "Claim two.[2]", "Claim three. [3][4]", "Claim four. [5, 6]", "Five."],
        ["Visit example.com or www.example.org/a.b now.", "Thanks."],
        ["Smith et al. showed it.", "We agree."], ["Yahoo! announced it.", "Who cares?"],
        ["A spaced . . . pause.", "Done."],
        ["The case of Fletcher v. Peck was heard in 1810.", "Brown v. The Board came later."],
        ["Let w be orthogonal to v.", "Then w is zero."],
        ["It lies 3 km S. of the centre and 2 miles N.E. of the bridge.", "Nobody lives there."],
        ["W. E. Allen, Wm. Blake & Co. (London) and S. Nutsubidze wrote it.", "It sold."],
        ["Add 22⁄3 cups, approx. ⅔ of No. ½.", "The ratio is 22⁄3.", "Stir."],
        ["See Vol. I of the work, Vols. II-IV, Figs. A and B, Fig. S1 and Eq. (3).", "There it stands."],
        ["By Prop. 3.2, Thm. 4 and Op. 27 it holds.", "Suppose not."],
        ["Jane Doe, Ph.D. Yale and LL.B. Oxford, taught with a D.Phil. student.", "She left."],
        ["At lat. 41° N. Greenwich time is kept.", "It was 20 °C.", "Cold winds blew."],
        ["He lived c. 1200 (r. 1184, d. 1213, fl. 1190).", "His U.S. $5 bill is new."],
        ["Take T in V.", "Let S be zero.", "Hence B is.", "Done."],
        ["Lieut. Brown and Geo. Smith cite op. cit. Jones, 2nd ed. Oxford.", "They err."],
        ["So he says [Woodcock, Op. Cit., pp. 139-40] of 1886.", "Loc. Cit. is not the end."],
    ],
    ids=lambda expected: expected[0],
)  # fmt: skip
def test_english_sentences_keep_abbreviations_initials_numbers_and_quotes_together(expected):
    assert sentences(" ".join(expected)) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["هل جاء؟", "نعم."],
        ["राम गया।", "वह आया॥"],
        ["Он пришёл.", "Ушёл?", "Да."],
        ["Il dit : « Non ! »", "Puis rien.", "»Gut.«", "»Ja!«"],
        ["הוא הפליג לארה״ב.", "האם חזר?", "״לא!״", "סוף הפסוק׃", "ועוד אחד."],
        ['ח. נ. ביאליק וד״ר א. כהן באו בתש"ח.', "כך כתבה פרופ. לוי בעמ. 5."],
        ["הוא הלך.\u200f", "\u200fהיא נשארה.\u200e", "סוף."],
        ["قال د. طه حسين ذلك في ص. ٥.", "انتهى۔", "ثم نام؛", "«هل جاء؟»، قال المعلم.", "نعم."],
    ],
    ids=["arabic", "devanagari", "russian", "french", "hebrew", "hebrew initials", "direction marks", "arabic marks"],
)
def test_other_scripts_end_at_their_own_stops(expected):
    assert sentences(" ".join(expected)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A blank line always ends a sentence, and a line break never does.
        ("a wrapped\nline\n \nnext, unfinished\r\n\r\nlast", ["a wrapped\nline", "next, unfinished", "last"]),
        ("in C # one\n\nnext", ["in C # one", "next"]),
        ("# Head, one, two\nBody text\n- item a\n- item b\n2. third\n　　新段落",
         ["# Head, one, two", "Body text", "- item a", "- item b", "2. third", "新段落"]),
        # Every row of a table is a sentence of its own, not divided within a cell at a semicolon.
        ("Chronology\n742 | Pinglu | 平卢\n16 Dec. 755 | An Lushan rises. At Fanyang | 起兵范阳",
         ["Chronology", "742 | Pinglu | 平卢", "16 Dec. 755 | An Lushan rises.", "At Fanyang | 起兵范阳"]),
        ("Date | Event\n742 | Ten | 十节度；安禄山任平卢节度使\n763 | 十二月；退兵 | The end",
         ["Date | Event", "742 | Ten | 十节度；安禄山任平卢节度使", "763 | 十二月；退兵 | The end"]),
        ("他在；她不在。\n742 | 十节度；退兵", ["他在；", "她不在。", "742 | 十节度；退兵"]),
    ],
)  # fmt: skip
def test_lines_end_sentences_where_they_are_rows_items_or_headings(text, expected):
    assert sentences(text) == expected


PIECES = st.sampled_from([
    *"aB1 .!?。！？；…，\"'”“’()（）[]】\n\t\u3000",
    "\n\n", "Mr. ", "3.14", "。”", "[1]", "e.g. ", "\r\n", "𠀀", "e\u0301", "\x1f", "# ",
])  # fmt: skip


@settings(max_examples=150)
@given(st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=60).map("".join)))
def test_spans_are_ordered_trimmed_and_hold_every_visible_character_once(text):
    spans = sentence_spans(text)
    at = 0
    for start, end in spans:
        assert at <= start < end
        assert not text[at:start].strip()
        assert text[start:end] == text[start:end].strip()
        at = end
    assert not text[at:].strip()


@pytest.mark.parametrize("unit", ["x", ".", "A. ", '。"', ".[1", "a\n", "#", "\n        ", "no stop "])
def test_a_text_of_one_repeated_unit_takes_no_more_than_its_share_of_steps(unit):
    # Quadratic rules would need hours here; the run itself is the check.
    text = unit * (400_000 // len(unit))
    assert sum(len(text[a:b].split()) for a, b in sentence_spans(text)) == len(text.split()) or "。" in unit
