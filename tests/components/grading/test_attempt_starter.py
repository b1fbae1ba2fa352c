"""What enters the loop comes out of it in every round."""

import pytest
from haystack import Pipeline

from shiguan.grading.attempt_reader import AttemptReader
from shiguan.grading.attempt_starter import AttemptStarter

CARRY = {"filters": "dict", "language": "str"}


def test_the_first_state_is_that_of_the_first_attempt():
    state = AttemptStarter().run("Who?")["state"]
    assert (state["attempt"], state["question"], state["query"], state["queries"]) == (1, "Who?", "Who?", ["Who?"])
    assert (state["documents"], state["feedback"], state["best"]) == ([], "", None)


def test_queries_are_kept_each_once_and_empty_ones_dropped():
    assert AttemptStarter().run("Who?", ["Who?", " ", "Whom?", "Who?"])["state"]["queries"] == ["Who?", "Whom?"]
    assert AttemptStarter().run("Who?", [])["state"]["queries"] == ["Who?"]


def test_carried_values_come_out_of_the_reader():
    state = AttemptStarter(CARRY).run("Who?", filters={"a": 1}, language="en")["state"]
    read = AttemptReader(CARRY).run(state)
    assert (read["filters"], read["language"], read["attempt"]) == ({"a": 1}, "en", 1)
    assert read["state"] == state


def test_a_carried_value_that_nobody_gave_is_an_error():
    with pytest.raises(ValueError, match="`language`"):
        AttemptStarter(CARRY).run("Who?", filters={})
    with pytest.raises(ValueError, match="the same `carry`"):
        AttemptReader(CARRY).run(AttemptStarter().run("Who?")["state"])


@pytest.mark.parametrize("carry", [{"query": "str"}, {"state": "dict"}, {"a b": "str"}, {"x": "tuple"}])
@pytest.mark.parametrize("cls", [AttemptStarter, AttemptReader])
def test_taken_names_and_unknown_types_are_refused(cls, carry):
    with pytest.raises(ValueError, match="`carry`"):
        cls(carry)


def test_both_survive_yaml_with_their_sockets():
    pipeline = Pipeline()
    pipeline.add_component("starter", AttemptStarter(CARRY))
    pipeline.add_component("reader", AttemptReader(CARRY))
    again = Pipeline.loads(pipeline.dumps())
    assert again.get_component("starter").carry == again.get_component("reader").carry == CARRY
    assert {"filters", "language"} <= again.inputs()["starter"].keys()
    assert {"filters", "language"} <= again.outputs()["reader"].keys()
