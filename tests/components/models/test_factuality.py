"""Whether a text means what it has the words of: pairs in which what differs stands outside the stretch."""

import pytest

from shiguan.errors import ModelMissingError
from shiguan.models.factuality import ADAPTER, FactualityReader

PAIRS = [
    ("the mill had burned", "The clerk saw that {} in the night.", "The clerk dreamed that {} in the night."),
    ("he sold the horses", "When {} in May, nobody objected.", "If {} in May, nobody would object."),
    ("the bishop poisoned the well", "It was proved that {} in 1340.", "It was whispered that {} in 1340."),
    (
        "They crossed the pass in June",
        "The diary has been checked. {}. They lost two mules.",
        "The diary is a forgery. It runs: “{}. They lost two mules.”",
    ),
    ("节度使杀了使者", "众人亲眼看见{}。", "众人误以为{}。"),
    ("城中已经断粮", "探子回来后证实{}。", "敌军散布谣言，说{}。"),
    ("河水冲毁了大堤", "因为{}，县令被免职。", "倘若{}，县令就会被免职。"),
]


@pytest.fixture(scope="module")
def reader():
    return FactualityReader()


def log_odds(reader, text, stretch):
    return reader.log_odds(text, text.index(stretch), text.index(stretch) + len(stretch))


@pytest.mark.parametrize(("stretch", "stated", "other"), PAIRS)
def test_what_a_text_states_is_told_from_what_it_only_has_the_words_of(reader, stretch, stated, other):
    told = [log_odds(reader, frame.format(stretch), stretch) for frame in (stated, other)]
    assert told[0] > max(0, told[1] + 1)


def test_in_one_sentence_one_clause_may_be_stated_and_another_not(reader):
    text = "The clerk wrote that the mill had burned, and the owner sold the land in 1820."
    assert log_odds(reader, text, "the owner sold the land") > log_odds(reader, text, "the mill had burned") + 2


def test_of_a_long_text_what_stands_around_the_stretch_is_read(reader):
    filler = "The weather was fine and the harvest was good that year. " * 60
    near = log_odds(reader, f"{filler}Nobody believed that the mill had burned. {filler}", "the mill had burned")
    assert near < log_odds(reader, f"{filler}The mill had burned. {filler}", "mill had burned") - 2


@pytest.mark.parametrize("text", ["", " \n", "\x00", "He rose. \x00 He fell.", "a" * 100_000, "，" * 5_000])
def test_any_text_is_read_and_a_place_without_text_says_nothing(reader, text):
    assert isinstance(reader.log_odds(text, 0, len(text)), float)
    assert reader.log_odds(text, len(text), len(text) + 9) == 0


def test_a_missing_or_broken_adapter_is_a_missing_model(tmp_path):
    broken = tmp_path / "factuality.npz"
    with pytest.raises(ModelMissingError, match=r"factuality\.npz"):
        FactualityReader(broken)
    broken.write_bytes(ADAPTER.read_bytes()[:5_000])
    with pytest.raises(ModelMissingError, match="force-reinstall"):
        FactualityReader(broken)
