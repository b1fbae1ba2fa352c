import sqlite3
from contextlib import closing

import pytest

from shiguan.errors import ConfigurationError
from shiguan.text import dictionary
from shiguan.text.dictionary import translated_terms, translations

TABLE = """# CC-CEDICT
鯨魚 鲸鱼 [jing1 yu2] /whale/CL:條|条[tiao2]/
捕鯨 捕鲸 [bu3 jing1] /to hunt whales (at sea)/whaling/
捕鯨船 捕鲸船 [bu3 jing1 chuan2] /whaler; whale catcher/
象 象 [xiang4] /elephant/form/appearance/
大象 大象 [da4 xiang4] /elephant/
戰象 战象 [zhan4 xiang4] /variant of 象[xiang4]/
流亡 流亡 [liu2 wang2] /to be in exile/
的 的 [de5] /of/
船 船 [chuan2] /boat/vessel/ship/junk/barge/craft/
法 法 [Fa3] /France/abbr. for 法國|法国[Fa3 guo2]/
法 法 [fa3] /law/
法國 法国 [Fa3 guo2] /France/
秦 秦 [Qin2] /Qin/abbr. for 陝西|陕西[Shan3 xi1]/
陝西 陕西 [Shan3 xi1] /Shaanxi/
A 错 [broken
"""


def translated(question, language, into):
    return translated_terms(translations(question, language, into))


def forget():
    if dictionary._dictionary.cache_info().currsize:
        dictionary._dictionary().close()
    dictionary._dictionary.cache_clear()


@pytest.fixture
def small(tmp_path, monkeypatch):
    package = tmp_path / "package"
    (package / "cedict").mkdir(parents=True)
    (package / "__init__.py").touch()
    path = package / "cedict" / "words.txt"
    path.write_text(TABLE, encoding="utf-8")
    monkeypatch.setattr(dictionary, "_TABLE", ("package", "cedict/words.txt", "the-package"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SHIGUAN_CACHE_DIR", str(tmp_path / "cache"))
    forget()
    yield path
    forget()


@pytest.mark.parametrize(
    ("question", "language", "found"),
    [
        ("鲸鱼", "zh", {"whale": 1.0}),
        # Traditional characters are those of the dictionary; the longest word wins; two meanings share its weight.
        ("捕鯨船", "zh", {"whaler": 0.5, "whale": 0.5, "catcher": 0.5}),
        ("捕鲸", "zh", {"hunt": 0.5, "whale": 1.0}),
        # What carries grammar is no word of a question, nor is what the dictionary does not have.
        ("的", "zh", {}), ("魁魁格", "zh", {}),
        # Five meanings at most.
        ("船", "zh", dict.fromkeys(["boat", "vessel", "ship", "junk", "barg"], 0.2)),
        # Shorter words of the first meaning first; a phrase before its words; stems.
        ("elephants", "en", {"象": 1.0, "大": 0.5, "大象": 0.5}),
        ("Who was in exile?", "en", {"流": 1.0, "亡": 1.0, "流亡": 1.0}),
        ("whale catchers", "en", dict.fromkeys(["捕", "鲸", "船", "捕鲸", "鲸船"], 1.0)),
        # A character that abbreviates a place is no sign of it; what else it means stays.
        ("France", "en", dict.fromkeys(["法", "国", "法国"], 1.0)),
        ("law", "en", {"法": 1.0}), ("Qin", "en", {"秦": 1.0}), ("", "zh", {}), ("?", "en", {}),
    ],
)  # fmt: skip
def test_the_words_of_a_question_in_the_other_language(small, question, language, found):
    into = {"zh": "en", "en": "zh"}[language]
    assert translated(question, language, into) == pytest.approx(found)


@pytest.mark.parametrize(("language", "into"), [("fr", "zh"), ("zh", "fr"), ("zh", "zh"), ("und", "en")])
def test_other_languages_have_no_dictionary(small, language, into):
    assert translated("鲸鱼 whale", language, into) == {}


def test_it_is_made_once_and_kept(small, tmp_path):
    assert translated("鲸鱼", "zh", "en")
    (kept,) = (tmp_path / "cache").iterdir()
    small.write_text(TABLE.replace("whale/", "shark/"), encoding="utf-8")  # as long as before
    forget()
    assert translated("鲸鱼", "zh", "en") == {"whale": 1.0}
    # Another table, and a damaged file, are made anew.
    small.write_text(TABLE + "鯊魚 鲨鱼 [sha1 yu2] /shark/\n", encoding="utf-8")
    forget()
    assert translated("鲨鱼", "zh", "en") == {"shark": 1.0}
    small.write_text(TABLE, encoding="utf-8")
    kept.write_bytes(b"no database")
    forget()
    assert translated("鲸鱼", "zh", "en") == {"whale": 1.0}
    with closing(sqlite3.connect(kept)) as written:
        assert written.execute("SELECT count(*) FROM meanings").fetchone()[0] > 0


def test_a_folder_that_cannot_be_written_keeps_nothing_and_says_so(small, tmp_path, caplog):
    (tmp_path / "cache").write_text("in the way")
    assert translated("鲸鱼", "zh", "en") == {"whale": 1.0}
    assert "SHIGUAN_CACHE_DIR" in caplog.text


def test_a_missing_table_says_what_to_install(small):
    small.unlink()
    with pytest.raises(ConfigurationError, match="pip install --force-reinstall the-package"):
        translated("鲸鱼", "zh", "en")


def test_the_packaged_table_knows_both_ways():
    assert translated("抹香鲸", "zh", "en").keys() >= {"sperm", "whale"}
    assert "象" in translated("How many elephants?", "en", "zh")
    assert translated("鲸" * 100_000, "zh", "en").keys() == {"whale"}
