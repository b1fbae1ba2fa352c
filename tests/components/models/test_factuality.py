"""Whether a text means what it has the words of: pairs in which what differs stands outside the stretch."""

import pytest

from shiguan.claims.stated import _LEAST
from shiguan.models.factuality import FactualityReader

PAIRS = [
    ("the bishop poisoned the well", "It was proved that {} in 1340.", "It was whispered that {} in 1340."),
    (
        "They crossed the pass in June",
        "The diary has been checked. {}. They lost two mules.",
        "The diary is a forgery. It runs: “{}. They lost two mules.”",
    ),
    (
        "he sold the horses to the monks of the valley",
        "Karl kept the inn for ten years. After {}, nobody came any more, and he went back to the coast.",
        "Karl kept the inn for ten years. If {}, nobody would come any more, and he would go back to the coast.",
    ),
    ("节度使杀了使者", "众人亲眼看见{}。", "众人误以为{}。"),
    ("城中已经断粮", "探子回来后证实{}。", "敌军散布谣言，说{}。"),
    ("河水冲毁了大堤", "因为{}，县令被免职。", "倘若{}，县令就会被免职。"),
    # Whose words they are, and how far they go.
    ("the miller drowned", "In the spring {}.", "The wife of {}."),
    ("the pilots were paid in gold", "In 1790 {}.", "Few of {}."),
    ("dogs are allowed in the garden", "The rules were changed in May: {}.", "Only on Sundays {}."),
    ("将军死于军中", "是岁，{}。", "使者见{}之兄。"),
    # In other languages than English and Chinese.
    ("Otto die Mühle verkaufte", "Weil {}, kam niemand mehr.", "Karl träumte, dass {}, und lachte."),
    ("le roi mourut à Tours", "En 1410 {}.", "On raconte que {}."),
    ("Король умер в Туле", "{}, и его сын занял престол.", "{}, как гласит легенда, но его сын жив."),
]


@pytest.fixture(scope="module")
def reader():
    return FactualityReader()


def log_odds(reader, text, stretch):
    return reader.log_odds(text, [(text.index(stretch), text.index(stretch) + len(stretch))])


@pytest.mark.parametrize(("stretch", "stated", "other"), PAIRS)
def test_what_a_text_states_is_told_from_what_it_only_has_the_words_of(reader, stretch, stated, other):
    told = [log_odds(reader, frame.format(stretch), stretch) for frame in (stated, other)]
    assert told[0] > told[1] + 1


def test_in_one_sentence_one_clause_may_be_stated_and_another_not(reader):
    text = "The clerk wrote that the mill had burned. The owner sold the land in 1820, and he moved to Acre."
    reported = log_odds(reader, text, "the mill had burned")
    assert (
        min(log_odds(reader, text, "The owner sold the land"), log_odds(reader, text, "he moved to Acre"))
        > reported + 2
    )


def test_what_is_left_out_between_two_pieces_may_be_another_ones(reader):
    def log_odds_of(text, *pieces):
        return reader.log_odds(text, [(text.index(piece), text.index(piece) + len(piece)) for piece in pieces])

    own = log_odds_of("The king, who had sold the mill, moved to Acre.", "The king", "moved to Acre")
    assert own > log_odds_of("The king wrote to a smith, who moved to Acre.", "The king", "moved to Acre") + 2


def test_of_a_long_text_what_stands_around_the_stretch_is_read(reader):
    filler = "The weather was fine and the harvest was good that year. " * 60
    near = log_odds(reader, f"{filler}Nobody believed that the mill had burned. {filler}", "the mill had burned")
    assert near < log_odds(reader, f"{filler}The mill had burned. {filler}", "The mill had burned") - 2


@pytest.mark.parametrize(
    ("text", "stretch"),
    [
        ("It rained. An Lushan rose at Fanyang. It snowed.", "An Lushan rose at Fanyang"),
        ("Otto sold the land.", "Otto sold the land"),
        ("The toll on salt was raised in 1820.", "The toll on salt was raised in 1820"),
        ("张巡守睢阳。城破，张巡死。", "张巡守睢阳"),
        ("大雁塔高64米。", "大雁塔高64米"),
    ],
)
def test_a_plain_sentence_is_stated(reader, text, stretch):
    assert log_odds(reader, text, stretch) > _LEAST


@pytest.mark.parametrize("text", ["", " \n", "\x00", "He rose. \x00 He fell.", "a" * 100_000, "，" * 5_000])
def test_any_text_is_read_and_a_place_without_text_says_nothing(reader, text):
    assert isinstance(reader.log_odds(text, [(0, len(text))]), float)
    assert reader.log_odds(text, [(len(text), len(text) + 9)]) == 0
