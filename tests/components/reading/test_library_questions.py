"""Questions about the library itself are recognised when they ask nothing else."""

import pytest

from shiguan.reading.question import asked_chapter, asked_work, asks_for_books, is_titled

BOOKS = [
    "What books do you have?", "which sources are there", "List all books.", "what is in the library", "What's in your library?",
    "how many books do you have?", "Please list the documents in the library", "Show me the books you have",
    "你有哪些书？", "库里有什么书", "有哪些资料？", "列出所有书籍", "图书馆里有多少本书？", "请列出你的藏书", "你都有什麼書？",
    "what books are in your library", "which documents can I ask about?", "what can I ask you about?", "list the books please",
    "tell me which books you have", "Do you have any books?", "What have you read?",
    "你读过哪些书？", "我可以问哪些书？", "书单", "你的资料库里有什么？", "列一下书目",
]  # fmt: skip
CHAPTERS = [
    ("summarise chapter 3", 3, "章", ""), ("What is chapter three about?", 3, "章", ""), ("What is the third chapter about?", 3, "章", ""),
    ("Please give me a short summary of Chapter XII", 12, "章", ""), ("what happens in part 2?", 2, "部", ""),
    ("what does chapter 4 of Moby Dick say?", 4, "章", "Moby Dick"), ("Could you summarize book four", 4, "卷", ""),
    ("第三章讲什么", 3, "章", ""), ("第十二回讲了什么内容？", 12, "章", ""), ("总结一下第二章", 2, "章", ""), ("请概括《旧唐书》第5章的主要内容", 5, "章", "旧唐书"),
    ("What is ch. 3 about?", 3, "章", ""), ("summarize chap 4 please", 4, "章", ""), ("Chapter two: what does it say?", 2, "章", ""),
    ("Part 2, what happens in it?", 2, "部", ""), ("Tell me what chapter 2 is about", 2, "章", ""),
    ("Chapter 2 讲什么？", 2, "章", ""), ("总结一下 chapter III", 3, "章", ""), ("《白鲸》chapter 12 的主要内容是什么", 12, "章", "白鲸"),
    ("What is 第二章 about?", 2, "章", ""), ("please summarise 卷十", 10, "卷", ""), ("what does 第十二回 say", 12, "章", ""),
    ("第三章主要內容是什麼？", 3, "章", ""), ("卷三写了什么", 3, "卷", ""), ("第廿三回讲什么", 23, "章", ""), ("卷一千讲什么", 1000, "卷", ""), ("《白鲸》第一章是什么内容", 1, "章", "白鲸"),
]  # fmt: skip
NAMED = [
    ("What is section A.3 about?", "A.3"), ("Summarise chapter 1.6.2", "1.6.2"), ("what does section 1.6 say", "1.6"),
    ('What is the chapter "The Whiteness of the Whale" about?', "The Whiteness of the Whale"), ("Summarise the chapter called “The Inn”", "The Inn"),
    ("what is the “Inn” chapter about", "Inn"), ("第1.6节讲什么？", "1.6"), ("总结一下 1.6 节", "1.6"), ("《案例呈现》这一章讲了什么？", "案例呈现"),
    ("What is the introduction about?", "introduction"), ("前言讲了什么？", "前言"), ("总结一下《白鲸》的尾声", "尾声"),
    ("概括“起兵”一节", "起兵"), ("請概括《案例呈現》那章", "案例呈现"),
]  # fmt: skip
OTHERS = [
    "Which books did Sima Guang write?", "What books does the emperor burn?", "Who dies in chapter 3?", "Chapter 3",
    "What does chapter 3 say about Guo Ziyi?", "Summarise the third campaign", "What is the Book of Changes about?",
    "How many books were in the imperial library?", "In chapter 3, why does he flee?", "What is in the letter?",
    "Compare chapter 3 and chapter 4", "Which chapter describes the siege?", "Why is chapter 2 so short?", "",
    "What happens in part because of the drought?", "Who wrote the first book of Livy?", "List the kings of Wei",
    "What sources do historians have for the rebellion?", "Where was the library?", "Summarise the rebellion",
    "What is act 5 of the law, and who passed it?", "Tell me about the section of the wall at Suiyang",
    "Which documents did he sign?", "What books do you have about salt?", "Who has the third part of the map?",
    "你有哪些书提到安禄山？", "第三章里谁死了？", "第三章为什么这么短", "司马光写了哪些书？", "第三章第二节哪句话提到睢阳？",
    "史书有哪些记载？", "他有什么书？", "第三次北伐讲什么", "卷三和卷四有何不同？", "库里有多少粮食？", "列出安史之乱的资料中提到的将领",
    "《旧唐书》讲什么人的事最多？", "第三章", "有哪些文件证明他谋反？", "图书馆在哪里？", "总结一下安史之乱", "第五章提到的桥在哪里？",
    'What is "anarchy"?', "《案例呈现》讲了什么案例？", "第1.6节里谁负责发布？", "What does section 1.6 say about freezes?", "What is version 1.6 about?",
    "《旧唐书》是什么书？", 'Who wrote the chapter "The Inn"?', "“起兵”是什么意思？",
    "Who dies in 第二章?", "Chapter 2 里谁死了？", "chapter 2 和 chapter 3 有何不同？", "What is 第二章 of 《白鲸》 compared with 第三章?",
    "Do you have sources?", "Which documents can I ask the emperor about?", "What can I ask a ghost?", "What have you read about salt?",
    "Who wrote the introduction?", "What is the conclusion of the treaty?", "库里有什么粮食", "你读过哪些关于盐的书？", "书单是谁写的？", "前言是谁写的？",
]  # fmt: skip


@pytest.mark.parametrize("question", BOOKS)
def test_a_question_for_the_books_is_recognised(question):
    assert asks_for_books(question)
    assert asked_chapter(question) is None


@pytest.mark.parametrize(("question", "number", "level", "book"), CHAPTERS)
def test_a_question_what_a_chapter_is_about_is_read(question, number, level, book):
    found = asked_chapter(question)
    assert (found.number, found.level, found.book) == (number, level, book)
    assert not asks_for_books(question)


@pytest.mark.parametrize(("question", "name"), NAMED)
def test_a_chapter_may_be_named_by_its_heading(question, name):
    found = asked_chapter(question)
    assert (found.number, found.name) == (None, name)


@pytest.mark.parametrize(
    ("question", "heading", "how"),
    [
        ("What is section A.3 about?", "A.3 What types of anarchism are there?", "level"),
        ("What is section a.3 about?", "Section A.3: Types", "level"),
        ("What is section A.3 about?", "A.3.2 Are there different types?", ""),
        ("What is section A.3 about?", "A.31 Others", ""), ("第1.6节讲什么？", "1.6. 发布周期", "level"),
        ("第1.6节讲什么？", "1.6.5. 旧稳定版", ""), ("第1.6节讲什么？", "第1.6节 发布周期", "level"),
        ("《案例呈现》这一章讲了什么？", "第 2 章 案例呈現", "level"),
        ("《案例呈现》这一章讲了什么？", "第 2 章 案例", ""),
        ('What is the chapter "The Inn" about?', "Chapter 3. The Inn", "level"),
        ("What is the introduction about?", "Introduction: before the rising", "level"),
        ("序讲了什么？", "序", "level"), ("序讲了什么？", "程序", ""),
    ],
)  # fmt: skip
def test_a_named_chapter_has_its_name_in_its_heading(question, heading, how):
    assert asked_chapter(question).heads(heading) == how


@pytest.mark.parametrize("question", OTHERS)
def test_a_question_that_only_names_a_book_or_a_chapter_is_searched(question):
    assert not asks_for_books(question)
    assert asked_chapter(question) is None


@pytest.mark.parametrize(
    ("heading", "how"),
    [
        ("Chapter 3. The Inn", "level"), ("CHAPTER III", "level"), ("第三章 河朔三镇", "level"), ("第3回", "level"),
        ("III. THE FIRE SERMON", "number"), ("3 The Inn", "number"), ("三、起兵", "number"),
        ("3.1 The Inn", ""), ("Part 3", ""), ("卷三", ""), ("33 The Inn", ""), ("Third World", ""), ("I saw him", ""), ("Mix", ""),
    ],
)  # fmt: skip
def test_a_heading_is_the_chapters_by_its_number(heading, how):
    assert asked_chapter("summarise chapter 3").heads(heading) == how


@pytest.mark.parametrize("written", ["卷一百八十五", "卷第一百八十五", "卷之一百八十五", "第一百八十五卷", "卷185"])
def test_a_scroll_is_found_however_its_number_is_written(written):
    chapter = asked_chapter(f"{written}讲了什么？")
    assert (chapter.number, chapter.level) == (185, "卷")
    for heading in ("卷第一百八十五 唐紀一", "卷一百八十五", "第一百八十五卷", "卷之一百八十五", "卷第185"):
        assert chapter.heads(heading) == "level"
    assert not any(map(chapter.heads, ("卷第一百八十六", "卷首", "第一百八十五章")))


@pytest.mark.parametrize(
    ("question", "scrolls"),
    [
        ("卷十讲了什么？", ["本纪 卷十", "志 卷十 礼仪", "列传 卷十"]),
        ("本纪卷十讲了什么？", ["本纪 卷十"]),
        ("概括一下列傳 卷十", ["列传 卷十"]),
    ],
)
def test_a_scroll_may_be_headed_by_the_part_of_its_book(question, scrolls):
    headings = ("本纪 卷十", "志 卷十 礼仪", "列传 卷十", "列传 卷十一", "本纪 卷一百十", "本纪 卷首")
    assert [heading for heading in headings if asked_chapter(question).heads(heading)] == scrolls


def test_a_book_is_meant_by_a_part_of_its_title():
    chapter = asked_chapter("what does chapter 4 of the Moby Dick say?")
    assert chapter.names("Moby-Dick; or, The Whale")
    assert not chapter.names("The Waste Land")


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Who wrote Moby-Dick?", "Moby-Dick"), ("who is the author of the waste land", "The Waste Land"),
        ("Please, who was the writer of “Walden”?", "Walden"), ("旧唐书的作者是谁？", "旧唐书（选卷）"),
        ("请问《舊唐書》是谁写的？", "旧唐书"), ("谁写了《荒原》？", "荒原"), ("Who wrote Emma?", "Emma: A Novel"),
    ],
)  # fmt: skip
def test_a_question_who_wrote_a_work_names_it_as_its_title_does(question, title):
    assert is_titled(title, asked_work(question))
    assert not is_titled("Another", asked_work(question))


@pytest.mark.parametrize(
    "question",
    [
        "Who wrote to Ahab about the whale, and why?", "谁是作者？", "Who wrote?", "作者是谁", "",
        "谁写的信最长，送到了哪里？",
    ],
)  # fmt: skip
def test_any_other_question_names_no_title(question):
    assert not any(is_titled(title, asked_work(question)) for title in ("", "Ahab", "whale", "信"))
