"""Questions are encoded together where they wait together, once each, and never left waiting."""

import asyncio
import threading

import numpy as np
import pytest

from shiguan.errors import ConfigurationError
from shiguan.support.question_encoder import QuestionEncoder
from shiguan.support.token_encoder import EncodedText

pytestmark = pytest.mark.transformers


def encoded(text):
    """A text's length is its embedding, and each of its words is a token."""
    words = text.split()
    return EncodedText(np.array([len(text)], np.float32), np.zeros(len(words), np.int32), np.zeros((len(words), 1)))


class Gate:
    """Stands for the model: the first batch waits until the test opens the gate, and every batch is written down."""

    def __init__(self, *, is_open=False, fails_on=()):
        self.batches = []
        self.started = threading.Event()
        self.gate = threading.Event()
        self.fails_on = fails_on
        if is_open:
            self.gate.set()

    def warm_up(self):
        """Nothing to load."""

    def encode(self, texts):
        self.batches.append(list(texts))
        self.started.set()
        assert self.gate.wait(30)
        for text in texts:
            if text in self.fails_on:
                raise ConfigurationError(f"cannot encode {text}")
        return [encoded(text) for text in texts]


def ask_all(encoder, texts):
    """Ask from one thread each; gives what each got, and waits until all stand in the queue."""
    results = {}

    def ask(number, text):
        try:
            results[number] = encoder.encode(text)
        except ConfigurationError as error:
            results[number] = error

    threads = [threading.Thread(target=ask, args=pair) for pair in enumerate(texts)]
    for thread in threads:
        thread.start()
    return threads, results


def wait_until_waiting(encoder, count):
    with encoder._changed:
        pass
    while len(encoder._waiting) < count:
        threading.Event().wait(0.001)


def with_a_busy_model(texts, **options):
    """Let one question keep the model busy while the others come."""
    model = Gate(**options)
    encoder = QuestionEncoder(model)
    first, _ = ask_all(encoder, ["first"])
    assert model.started.wait(30)
    threads, results = ask_all(encoder, texts)
    wait_until_waiting(encoder, len(texts))
    model.gate.set()
    for thread in [*first, *threads]:
        thread.join(30)
    return model, results


def test_a_lone_question_is_encoded_at_once():
    model = Gate(is_open=True)
    assert QuestionEncoder(model).encode("salt").embedding == [4]
    assert model.batches == [["salt"]]


def test_questions_that_come_while_the_model_works_are_encoded_together():
    model, results = with_a_busy_model(["a", "bb", "ccc"])
    assert model.batches[0] == ["first"]
    assert sorted(model.batches[1]) == ["a", "bb", "ccc"]
    assert {number: result.embedding[0] for number, result in results.items()} == {0: 1, 1: 2, 2: 3}


def test_the_same_question_of_several_people_goes_through_the_model_once():
    model, results = with_a_busy_model(["same", "same", "same"])
    assert model.batches == [["first"], ["same"]]
    assert [result.embedding[0] for result in results.values()] == [4, 4, 4]


def test_a_question_that_cannot_be_encoded_fails_alone():
    _, results = with_a_busy_model(["good", "bad", "fine"], fails_on=("bad",))
    assert str(results[1]) == "cannot encode bad"
    assert (results[0].embedding[0], results[2].embedding[0]) == (4, 4)


def test_each_waiting_question_hears_of_an_error_and_the_next_one_is_tried_again():
    model = Gate(is_open=True, fails_on=("a", "b"))
    encoder = QuestionEncoder(model)
    for text in ("a", "b"):
        with pytest.raises(ConfigurationError, match=f"cannot encode {text}"):
            encoder.encode(text)
    model.fails_on = ()
    assert encoder.encode("a").embedding == [1]


def test_a_remembered_question_needs_no_second_pass():
    model = Gate(is_open=True)
    encoder = QuestionEncoder(model)
    assert encoder.encode("salt tax") is encoder.encode("salt tax")
    assert len(model.batches) == 1


def test_the_question_that_was_wanted_longest_ago_is_forgotten_first():
    model = Gate(is_open=True)
    encoder = QuestionEncoder(model, remembered=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        encoder.encode(text)
    assert model.batches == [["a"], ["b"], ["c"], ["b"]]


def test_long_texts_do_not_fill_the_memory():
    model = Gate(is_open=True)
    encoder = QuestionEncoder(model, remembered_rows=5)
    for text in ("one two three", "four five", "six", "four five", "one two three"):
        encoder.encode(text)
    assert [batch[0] for batch in model.batches] == ["one two three", "four five", "six", "one two three"]
    encoder.encode("a text that alone is longer than all that may be remembered")
    encoder.encode("six")
    assert encoder._rows == 1


def test_a_batch_is_no_larger_than_allowed():
    model = Gate()
    encoder = QuestionEncoder(model, batch_size=2)
    first, _ = ask_all(encoder, ["first"])
    assert model.started.wait(30)
    threads, results = ask_all(encoder, list("abcde"))
    wait_until_waiting(encoder, 5)
    model.gate.set()
    for thread in [*first, *threads]:
        thread.join(30)
    assert [len(batch) for batch in model.batches] == [1, 2, 2, 1]
    assert len(results) == 5


def test_a_cancelled_request_takes_nobody_with_it():
    model = Gate()
    encoder = QuestionEncoder(model)

    async def requests():
        busy = asyncio.create_task(encoder.encode_async("first"))
        await asyncio.to_thread(model.started.wait, 30)
        cancelled, kept = (asyncio.create_task(encoder.encode_async("same")) for _ in range(2))
        await asyncio.sleep(0)  # both stand in the queue now
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        model.gate.set()
        return (await kept).embedding[0], (await busy).embedding[0], cancelled.cancelled()

    assert asyncio.run(requests()) == (4, 5, True)
    assert model.batches == [["first"], ["same"]]


def test_a_thread_that_is_gone_is_replaced():
    """As after a fork, which copies the queue but not the thread."""
    model = Gate(is_open=True)
    encoder = QuestionEncoder(model)
    encoder.encode("a")
    gone = threading.Thread(target=print)
    encoder._thread = gone
    assert encoder.encode("b").embedding == [1]
    assert encoder._thread is not gone
