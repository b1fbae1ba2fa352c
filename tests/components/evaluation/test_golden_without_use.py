"""A model whose replies are of no use is not asked for every passage of a library."""

from haystack import Document

from shiguan.evaluation.golden_maker import MOST_FRUITLESS, GoldenMaker
from shiguan.evaluation.results import RunStore
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator

PARENTS = [
    Document(id=f"p{number:03}", content=f"In the year {700 + number} the town was taken. " * 4)
    for number in range(100)
]


def test_it_stops_after_some_passages_that_gave_nothing_and_says_so(stand_in_llm, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_BASE_URL", stand_in_llm.url)
    stand_in_llm.default = "I cannot do that."
    maker = GoldenMaker(ConfiguredChatGenerator(max_retries=0))
    with RunStore(tmp_path, {"kind": "golden"}) as store:
        made = maker.make(PARENTS, 6, store, lambda left: left)
        assert (len(made.accepted), made.llm_calls, made.stopped) == (0, MOST_FRUITLESS, True)
        assert stand_in_llm.calls == MOST_FRUITLESS
        again = maker.make(PARENTS, 6, store, lambda left: left)
    assert (again.llm_calls, again.stopped) == (2 * MOST_FRUITLESS, True)
