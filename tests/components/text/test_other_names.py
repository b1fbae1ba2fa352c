import pytest
from haystack.document_stores.in_memory import InMemoryDocumentStore
from hypothesis import given
from hypothesis import strategies as st

from shiguan.tenants import TermStore
from shiguan.text.names import name_terms, names_in_library, other_name_weights, other_names
from shiguan.text.terms import terms


class Library(InMemoryDocumentStore, TermStore):
    """A store of texts that are found whatever is asked for."""

    def __init__(self, *texts):
        super().__init__()
        self.texts = texts

    def texts_with(self, terms, filters):
        return list(self.texts)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("杜甫，字子美，本襄阳人。", [("杜甫", "子美")]),
        ("裴度，字中立，河東聞喜人。", [("裴度", "中立")]),
        ("郭子儀字子儀。", [("郭子儀", "子儀")]),
        ("李密李密，字玄邃，本辽东襄平人。", [("李密", "玄邃")]),
        ("李白（701年－762年），字太白，號青蓮居士，又號謫仙人。", [("李白", "太白"), ("李白", "青蓮居士"), ("李白", "謫仙人")]),
        ("欧阳修，字永叔，号醉翁，晚号六一居士。", [("欧阳修", "永叔"), ("欧阳修", "醉翁"), ("欧阳修", "六一居士")]),
        ("仝卒。李靖，本名药师，雍州三原人。", [("李靖", "药师")]),
        ("太宗文武大圣大广孝皇帝讳世民，高祖第二子也。", [("太宗", "世民")]),
        ("Du Fu (courtesy name Zimei) was born.", [("Du Fu", "Zimei")]),
        ("In 1876 Mark Twain, the pen name of Samuel Clemens, wrote.", [("Mark Twain", "Samuel Clemens")]),
        ("Zhu Quanzhong, born Zhu Wen, ended it.", [("Zhu Quanzhong", "Zhu Wen")]),
        ("Li Shimin, also known as Emperor Taizong, won.", [("Li Shimin", "Emperor Taizong")]),
    ],
)  # fmt: skip
def test_a_text_says_another_name(text, pairs):
    assert list(other_names(text)) == pairs


@pytest.mark.parametrize(
    "text",
    [
        "李密军法严肃，号令画一，以是出战皆捷。",  # his orders
        "王师号二十万，次南河。",
        "至其门，字刻纪功。",
        "成公英，字不详。",
        "父播，字明扬。",  # his father Bo
        "不相与者，号为沽誉。",
        "The Fresno Station, later called Fresno, burned.",  # a part of the name
        "Vanessa (née Salmon) sang.",  # Salmon alone may be anybody
        "He was born in London, and was called Tom.",
    ],
)
def test_what_is_not_another_name(text):
    assert not list(other_names(text))


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("子美弃官后去了哪里？", [("子美", "杜甫")]),
        ("杜子美去了哪里？", [("子美", "杜甫")]),
        ("杜甫弃官後去了哪裡？", [("杜甫", "子美")]),
        ("杜甫字子美吗？", []),  # it says both
        ("他持守中立吗？", []),  # an ordinary word
        ("裴中立是谁？", [("中立", "裴度")]),
        ("陈子美人如何？", []),  # another family, and beauty
        ("What did Samuel Clemens's brother do?", [("Samuel Clemens", "Mark Twain")]),
        ("What did Clemens do?", []),
        ("", []),
    ],
)
def test_a_name_of_a_question_has_the_other_names_that_the_library_says(question, found):
    library = Library("杜甫，字子美。", "裴度，字中立。", "Mark Twain, born Samuel Clemens, wrote.")
    assert names_in_library(question, library, None) == found


def test_a_person_is_searched_as_if_asked_for_and_another_name_counts_half_and_as_a_whole():
    assert other_name_weights([("子美", "杜甫")]) == {"杜": 1.0, "甫": 1.0, "杜甫": 0.5}
    assert other_name_weights([("杜甫", "子美")]) == {"子美": 0.25}


@given(st.text(alphabet="杜甫李白，字号名讳子美。皇帝宗Du Fu(born )'’", max_size=200))
def test_any_text_is_read_and_no_word_finds_what_says_another_name(text):
    assert not {*name_terms(text)} & {*terms(text)}
    assert all(name and other for name, other in other_names(text))
    assert names_in_library(text, Library(text), None) is not None


def test_a_question_without_a_name_is_not_looked_up():
    class Asked(TermStore):
        def texts_with(self, terms, filters):
            raise AssertionError(terms)

    for question in ("Who was it and when did it end?", "What did the king say?", "Why?"):
        assert names_in_library(question, Asked(), None) == []
    assert names_in_library("子美弃官后去了哪里？", InMemoryDocumentStore(), None) == []  # which cannot look them up
    with pytest.raises(AssertionError, match="=guo ziyi"):
        names_in_library("Who was Guo Ziyi?", Asked(), None)
