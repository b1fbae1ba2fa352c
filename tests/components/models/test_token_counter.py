from shiguan.models import token_counter, weights
from shiguan.models.token_counter import TokenCounter, estimated_tokens


def test_tokens_are_the_embedders_own_without_start_and_end_marks():
    # The, old, general, we, pt and the stop.
    assert TokenCounter().count("The old general wept.") == 6


def test_every_token_has_its_place_also_behind_a_character_written_as_several():
    assert TokenCounter().offsets("安祿山 fled") == [(0, 1), (1, 2), (2, 3), (4, 7), (7, 8)]
    assert TokenCounter().offsets("a ⑫ b")[-1] == (4, 5)


def test_counts_of_a_batch_are_those_of_its_texts():
    counter = TokenCounter()
    texts = ["", "one", "word " * 1000]
    assert counter.counts(texts) == [counter.count(text) for text in texts]
    assert (counter.counts(texts)[:2], counter.counts([])) == ([0, 1], [])
    sentences = ["安禄山在范阳起兵。", "他的军队有十五万人。"]
    assert sum(counter.counts(sentences)) == counter.count("".join(sentences))


def test_missing_weights_estimate_by_characters_and_say_so(monkeypatch):
    monkeypatch.setattr(weights, "PACKAGE", "no_such_package")
    token_counter.tokenizer.cache_clear()
    counter = TokenCounter()
    assert counter.warnings == []
    # Two Han characters, and two runs of at most four letters.
    assert counter.count("十二 abcdef") == 4
    assert counter.offsets("二 a") == [(0, 1), (2, 3)]
    (warning,) = counter.warnings
    assert "estimated" in warning
    assert "pip install" in warning


def test_tokens_of_a_model_that_is_not_here_are_estimated_by_script():
    # .863 for each token of the embedder, .238 more for each Han character, .379 more for each traditional one.
    assert estimated_tokens("The old general wept.", 6) == 5
    assert estimated_tokens("国马龙门", 4) == 4
    assert estimated_tokens("國馬龍門", 4) == 6
    ours, models = TokenCounter(), TokenCounter("somebody-elses")
    text = "安禄山反于范阳，河北皆降。" * 20
    assert models.count(text) == estimated_tokens(text, ours.count(text)) > ours.count(text)
